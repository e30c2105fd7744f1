"""Which files are linted, what is shown of them, and the exit status."""

from __future__ import annotations

import os
import subprocess

import pytest
from pathspec import GitIgnoreSpec

from spmdlint.files.ignore import configured_patterns
from spmdlint.nearby import FOR_COMMITS


def test_a_clean_project(project):
    project.write({"a.py": "x = 1\n"})
    outcome = project.run("check")
    assert (outcome.status, outcome.out, outcome.err) == (0, "All checks passed!\n", "")


def test_findings_exit_with_1_unless_told_otherwise(project):
    project.write({"a.py": project.hazard})
    assert project.check().found == [("a.py", 7, "SPMD301")]
    assert project.check().status == 1
    outcome = project.check("--exit-zero")
    assert (outcome.status, len(outcome.json)) == (0, 1)


NOT_CHECKED = {
    "nothing to lint": ({"a.txt": ""}, [], "no Python file"),
    "a path that is no Python file": ({"a.py": "x = 1\n", "b.yaml": ""}, ["a.py", "b.yaml"], "b.yaml is not linted"),
    "a file that does not parse": ({"a.py": "import jax\ndef f(:\n"}, ["--exit-zero"], "a.py, line 2: "),
    "the same, and nobody is told": ({"a.py": "import jax\ndef f(:\n"}, ["--ignore", "SPMD901"], "a.py, line 2: "),
    "a rule that did not run": ({"a.py": "x = 1\n"}, ["--select", "SPMD607"], "only preview rules"),
}


@pytest.mark.parametrize("case", NOT_CHECKED)
def test_a_run_that_did_not_check_everything_fails_if_it_is_told_to(project, case):
    files, options, said = NOT_CHECKED[case]
    project.write(files)
    assert project.check(*options).status == 0
    outcome = project.check("--fail-on-unchecked", *options)
    assert outcome.status == 2
    assert outcome.err.count(said) == 1
    assert outcome.err.endswith("Not everything was checked, so the status is 2 (--fail-on-unchecked).\n")


def test_a_run_that_checked_everything_ends_as_usual(project):
    project.write({"a.py": "x = 1\n", "c.py": project.hazard.replace("saved", "kept")})
    assert project.check("--fail-on-unchecked").status == 1
    assert project.check("--fail-on-unchecked", "a.py").status == 0
    outcome = project.check("--fail-on-unchecked", "--exit-zero")
    assert (outcome.status, outcome.err) == (0, "")


def test_the_current_folder_is_the_default(project):
    project.write({"a.py": project.hazard, "sub/b.py": project.hazard})
    assert project.check().found == project.check(".").found == [("a.py", 7, "SPMD301"), ("b.py", 7, "SPMD301")]


def test_a_path_that_does_not_exist(project):
    outcome = project.check("nowhere.py")
    assert outcome.status == 2
    assert "nowhere.py" in outcome.err
    assert outcome.out == ""


def test_nothing_to_lint_is_said(project):
    outcome = project.run("check")
    assert outcome.status == 0
    assert "no Python file and no notebook" in outcome.err


def test_a_file_says_the_same_alone_and_with_its_folder(project):
    """The caller of the collective stands in another file: only the whole program knows that no axis is bound."""
    project.write(
        {
            "losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
            "train.py": "import losses\n\nlosses.mean(1.0)\n",
        }
    )
    alone = project.check("losses.py")
    assert alone.found == [("losses.py", 5, "SPMD101")]
    assert alone.json == project.check().json
    assert project.check("train.py").json == []


def test_stubs_and_other_files_are_never_linted(project):
    project.write({"a.pyi": "def f(:", "notes.txt": "def f(:", "data.json": "{}"})
    assert "no Python file" in project.run("check").err
    outcome = project.run("check", "a.pyi", "notes.txt")
    assert outcome.status == 0
    assert "a.pyi is not linted" in outcome.err
    assert "notes.txt is not linted" in outcome.err


def test_a_script_without_a_suffix_is_linted_when_it_is_named(project):
    project.write({"bin/train": project.hazard})
    assert project.check("bin/train").found == [("train", 7, "SPMD301")]


def test_a_file_that_does_not_parse_is_a_finding_and_the_rest_is_linted(project):
    project.write({"a.py": "def f(:\n", "b.py": project.hazard})
    outcome = project.check()
    assert outcome.status == 1
    assert outcome.found == [("a.py", 1, "SPMD901"), ("b.py", 7, "SPMD301")]
    assert outcome.json[0]["message"].startswith("This file was not linted.")


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [
        ("x = 1\n\ny = 'abc\nz = 2\n", 3, 5),
        ("x = 1\n'''abc\n", 2, 1),
        ("def f():\n  x = 1\n\ty = 2\n", 3, 1),
        ("x = 1\nf(2,\n", 2, 2),
    ],
)
def test_a_file_that_does_not_parse_is_told_where_it_goes_wrong(project, text, row, column):
    project.write({"a.py": text})
    outcome = project.check()
    assert outcome.found == [("a.py", row, "SPMD901")]
    assert outcome.json[0]["location"]["column"] == column


def test_a_sentence_of_python_ends_once(project):
    project.write({"a.py": 'print "saved"\n', "b.py": "x = (\n"})
    first, second = (each["message"] for each in project.check().json)
    assert first.endswith("Did you mean print(...)?")
    assert second.endswith("was never closed.")


def test_a_file_that_cannot_be_linted_is_told_whatever_is_selected(project):
    project.write({"a.py": "def f(:\n"})
    assert project.check("--select", "SPMD301").found == [("a.py", 1, "SPMD901")]
    assert project.check("--select", "SPMD301", "--ignore", "SPMD901").found == []


@pytest.mark.parametrize(
    ("data", "row", "column"),
    [
        (b"x = 1\ny = '\xff'\n", 2, 6),
        (b"x = 1\n\n\ny = '\xff'\n", 4, 6),
        (b"# coding: klingon\nx = 1\n", 1, 1),
        (b"# coding: rot13\nx = 1\n", 1, 1),
        (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", 1, 1),
    ],
)
def test_bytes_that_do_not_decode(project, data, row, column):
    project.write({"a.py": data})
    outcome = project.check()
    assert outcome.found == [("a.py", row, "SPMD901")]
    assert outcome.json[0]["location"]["column"] == column


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + b"x = 1\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe4'\n",
        b"x = 1\r\ny = 2\r\n",
        b"",
        b"\n\n\x0c\n",
    ],
)
def test_bytes_that_python_reads(project, data):
    project.write({"a.py": data})
    assert project.check().json == []


def test_rows_and_columns_with_windows_line_ends_and_a_byte_order_mark(project):
    project.write({"a.py": b"\xef\xbb\xbf" + project.hazard.replace("\n", "\r\n").encode()})
    (finding,) = project.check().json
    assert finding["location"] == {"row": 7, "column": 9}


def test_a_file_without_permission(project, monkeypatch):
    project.write({"a.py": "x = 1\n"})
    (project.root / "a.py").unlink()
    (project.root / "a.py").symlink_to("/proc/self/mem")
    outcome = project.check("a.py")
    assert outcome.found == [("a.py", 1, "SPMD901")]
    assert "cannot be opened" in outcome.json[0]["message"]


# -- what is left out


def test_default_exclusions(project):
    project.write({f"{folder}/a.py": project.hazard for folder in (".venv", "build", "node_modules", "x/__pycache__")})
    assert "no Python file" in project.run("check").err


def test_gitignore_nested_negated_and_above(project, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("generated_*.py\n")
    project.write(
        {
            ".gitignore": "/out/\n*.tmp.py\n",
            "out/a.py": project.hazard,
            "sub/out/b.py": project.hazard,
            "c.tmp.py": project.hazard,
            "keep/.gitignore": "!d.tmp.py\n",
            "keep/d.tmp.py": project.hazard,
            "generated_e.py": project.hazard,
        }
    )
    assert [name for name, _, _ in project.check().found] == ["d.tmp.py", "b.py"]


def test_files_that_git_ignores_for_this_clone(project):
    subprocess.run(["git", "init", "-q", project.root], check=True)
    project.write({".git/info/exclude": "a.py\n", "a.py": project.hazard})
    assert "no Python file" in project.run("check").err


def test_exclude_option_and_key_add_up(project):
    project.write(
        {
            "spmdlint.toml": 'exclude = ["legacy/"]\n',
            "legacy/a.py": project.hazard,
            "old_b.py": project.hazard,
            "c.py": project.hazard,
        }
    )
    assert [name for name, _, _ in project.check("--exclude", "old_*.py").found] == ["c.py"]


def test_gitignore_classes_of_characters_and_ranges_the_wrong_way_round(project):
    names = ("a.py", "b1.py", "bx.py", "c d.py", "z.py")
    lines = "[z-a].py\n[[:upper:][:lower:]].py\nb[![:digit:]].py\nc[[:space:]]d.py\n[[:none:]].py\n"
    project.write({".gitignore": lines, **dict.fromkeys(names, project.hazard)})
    outcome = project.check()
    assert ([name for name, _, _ in outcome.found], outcome.err) == (["b1.py"], "")
    outcome = project.check("--exclude", "[z-a].py")
    assert (outcome.status, outcome.err) == (
        2,
        "spmdlint: --exclude contains an invalid .gitignore pattern: bad character range z-a.\n",
    )


def test_a_default_exclusion_can_be_taken_back(project):
    project.write({"spmdlint.toml": 'exclude = ["!build"]\n', "build/a.py": project.hazard})
    assert project.check().found == [("a.py", 7, "SPMD301")]


def test_named_files_are_linted_although_excluded_unless_forced(project):
    project.write({".gitignore": "a.py\n", "a.py": project.hazard, "build/b.py": project.hazard})
    assert len(project.check("a.py", "build/b.py").json) == 2
    assert project.check("--force-exclude", "a.py", "build/b.py").json == []
    assert project.check("--force-exclude", "build").json == []
    project.write({"spmdlint.toml": "force-exclude = true\n"})
    assert project.check("a.py", "build/b.py").json == []
    assert len(project.check("--no-force-exclude", "a.py", "build/b.py").json) == 2


def test_an_excluded_folder_that_is_named_is_linted(project):
    project.write({"build/b.py": project.hazard, "build/__pycache__/c.py": project.hazard})
    assert [name for name, _, _ in project.check("build").found] == ["b.py"]


def test_links_neither_loop_nor_lint_twice(project):
    project.write({"a.py": project.hazard})
    (project.root / "again.py").symlink_to("a.py")
    (project.root / "up").symlink_to("..")
    (project.root / "dangling.py").symlink_to("nowhere.py")
    (project.root / "itself.py").symlink_to("itself.py")
    assert project.check().found == [("a.py", 7, "SPMD301")]
    assert project.check("again.py").found == [("a.py", 7, "SPMD301")]
    assert project.check("up/project/a.py").found == [("a.py", 7, "SPMD301")]


def test_a_linked_folder_that_is_named(project, tmp_path):
    project.write({"rules/a.py": project.hazard})
    (project.root / "linked").symlink_to("rules")
    assert project.check("linked").found == [("a.py", 7, "SPMD301")]


@pytest.fixture
def closed(project):
    """A project with a file and two folders that may not be opened."""
    project.write({"a.py": project.hazard, "secret/b.py": project.hazard, "more/secret/c.py": project.hazard})
    folders = [project.root / "secret", project.root / "more/secret"]
    for folder in folders:
        folder.chmod(0)
    yield project
    for folder in folders:
        folder.chmod(0o700)


def test_a_folder_that_cannot_be_listed(closed):
    outcome = closed.spawn("check", "--output-format", "json", bound=True)
    assert (outcome.status, outcome.found) == (1, [("a.py", 7, "SPMD301")])
    passed_over = f"spmdlint: {closed.root}/more/secret and 1 more folder are not linted: Permission denied."
    assert outcome.err == f"{passed_over} Make them readable, or exclude them.\n"
    outcome = closed.spawn("check", "--exit-zero", "--fail-on-unchecked", "more", bound=True)
    assert outcome.status == 2
    assert outcome.err.count("more/secret is not linted: Permission denied. Make it readable, or exclude it.") == 1


@pytest.mark.parametrize("argv", [["a.py"], ["--exclude", "secret/"]])
def test_a_folder_that_nobody_asked_for_need_not_be_listed(closed, argv):
    outcome = closed.spawn("check", "--fail-on-unchecked", *argv, bound=True)
    assert (outcome.status, outcome.err) == (1, "")


@pytest.mark.parametrize(
    ("argv", "modes"),
    [
        (["check", "secret"], (0, 0o100, 0o400)),
        (["check", "a.py", "secret/b.py"], (0, 0o400)),
        (["check", "--stdin-filename", "secret/b.py", "-"], (0, 0o400)),
        (["explain", "secret/b.py:3"], (0, 0o400)),
        (["explain", "secret/b.ipynb:cell 1:3"], (0, 0o400)),
    ],
)
def test_a_closed_folder_that_is_named(closed, argv, modes):
    (word,) = (word.partition(":")[0] for word in argv if "secret" in word)
    told = f"spmdlint: {closed.root}/{word} cannot be read (Permission denied); make it readable, or leave it out.\n"
    for mode in modes:
        (closed.root / "secret").chmod(mode)
        outcome = closed.spawn(*argv, bound=True)
        assert (outcome.status, outcome.out, outcome.err) == (2, "", told)


def test_a_closed_folder_in_an_option(closed):
    outcome = closed.spawn("check", "--baseline", "secret/known.json", "--write-baseline", "a.py", bound=True)
    told = f"There is no access to {closed.root}/secret/known.json (Permission denied); change its permissions.\n"
    assert (outcome.status, outcome.err) == (2, f"spmdlint: {told}")


@pytest.mark.parametrize("argv", [["check", "pipe.py"], ["explain", "pipe.py:1"], ["rule", "--test", "pipe.py"]])
@pytest.mark.timeout(60)
def test_a_pipe_is_no_file(project, argv):
    os.mkfifo(project.root / "pipe.py")
    outcome = project.run(*argv)
    assert outcome.status == 2
    assert "pipe.py is not a regular file; name a file, or pass the text to standard input with '-'." in outcome.err
    assert "There is no Python file and no notebook to lint here" in project.check().err


# -- the project


def test_the_root_is_the_work_tree_where_nothing_is_configured(project):
    (project.root / "spmdlint.toml").unlink()
    subprocess.run(["git", "init", "-q", project.root], check=True)
    project.write(
        {
            "losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
            "tools/pyproject.toml": "",
            "tools/train.py": "import losses\n\nlosses.mean(1.0)\n",
        }
    )
    assert project.check("losses.py").found == [("losses.py", 5, "SPMD101")]


def test_the_nearest_configuration_marks_the_root(project):
    project.write(
        {
            "spmdlint.toml": 'select = ["SPMD101"]\n',
            "inner/pyproject.toml": "[tool.other]\n",
            "inner/a.py": project.hazard,
            "own/pyproject.toml": '[tool.spmdlint]\nselect = ["SPMD301"]\n',
            "own/a.py": project.hazard,
        }
    )
    assert project.check("inner").json == []
    assert len(project.check("own").json) == 1


def test_an_environment_in_the_work_tree_is_not_part_of_it(project):
    project.write({"spmdlint.toml": 'select = ["SPMD101"]\n', ".venv/lib/pkg/a.py": project.hazard})
    assert project.check(".venv/lib/pkg").found == [("a.py", 7, "SPMD301")]


def test_a_lone_file_outside_any_project(project, tmp_path):
    (project.root / "spmdlint.toml").unlink()
    project.write(
        {
            "losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
            "pkg/__init__.py": "import losses\n\nlosses.mean(1.0)\n",
            "unrelated/deep/a.py": "def f(:",
        }
    )
    if any((folder / name).exists() for folder in tmp_path.parents for name in (".git", "pyproject.toml")):
        pytest.skip("the temporary folder lies in a project")
    assert project.check("losses.py").found == [("losses.py", 5, "SPMD101")]


# -- standard input


def test_standard_input_stands_for_a_file(project):
    project.write({"a.py": "x = 1\n", "b.py": project.hazard})
    outcome = project.check("-", "--stdin-filename", "a.py", stdin=project.hazard.encode())
    assert outcome.found == [("a.py", 7, "SPMD301")]
    assert outcome.json[0]["filename"] == str(project.root / "a.py")


def test_standard_input_without_a_name(project):
    outcome = project.run("check", "-", "--output-format", "concise", stdin=project.hazard.encode())
    assert outcome.out.startswith("<stdin>:7:9: error: SPMD301 ")


def test_standard_input_of_an_excluded_file(project):
    project.write({".gitignore": "a.py\n"})
    argv = ("-", "--stdin-filename", "a.py")
    assert len(project.check(*argv, stdin=project.hazard.encode()).json) == 1
    assert project.check(*argv, "--force-exclude", stdin=project.hazard.encode()).json == []


@pytest.mark.parametrize("argv", [["-", "a.py"], ["--stdin-filename", "a.py"], ["-", "--stdin-filename", "."]])
def test_standard_input_used_wrongly(project, argv):
    project.write({"a.py": "x = 1\n"})
    assert project.check(*argv).status == 2


def test_standard_input_that_does_not_decode(project):
    assert project.check("-", stdin=b"\xff").found == [("<stdin>", 1, "SPMD901")]


# -- rules that fail

CRASHING = '''
from spmdlint.errors import AnalysisError
from spmdlint.diagnostics import Diagnostic, Location, Place
from spmdlint.rule import Rule


class Crashing(Rule):
    """A rule that fails."""

    code = "ACME101"
    name = "crashing-rule"

    def check(self, program):
        path = next(iter(program.project.modules))
        yield Diagnostic(self.code, self.name, "error", "Before.", Place(path, Location(1, 1), Location(1, 2)))
        raise AnalysisError(path, "the axle broke")
'''


def test_a_rule_that_fails_loses_no_findings_of_others(project, plugin):
    project.write({"a.py": project.hazard})
    environment = plugin(CRASHING)
    outcome = project.spawn("check", "--output-format", "json", env=environment)
    assert outcome.status == 2
    assert outcome.found == [("a.py", 1, "ACME101"), ("a.py", 7, "SPMD301")]
    assert "ACME101 (crashing-rule) failed in" in outcome.err
    assert "a.py" in outcome.err
    assert "Traceback" not in outcome.err
    assert project.spawn("check", "--exit-zero", env=environment).status == 2
    assert "Traceback" in project.spawn("check", "--verbose", env=environment).err
    assert "Traceback" in project.spawn("check", env={**environment, "SPMDLINT_TRACEBACK": "1"}).err


def test_a_suppression_of_a_rule_that_failed_is_not_called_unused(project, plugin):
    project.write({"a.py": "x = 1\ny = 2  # spmdlint: ignore[ACME101]\n"})
    outcome = project.spawn("check", "--output-format", "json", "--select", "SPMD900,ACME", env=plugin(CRASHING))
    assert outcome.found == [("a.py", 1, "ACME101")]


def test_a_package_of_rules_that_does_not_load(project, plugin):
    project.write({"a.py": "x = 1\n"})
    outcome = project.spawn("check", env=plugin("import module_that_does_not_exist\n"))
    assert outcome.status == 2
    assert "acme" in outcome.err
    assert "Traceback" not in outcome.err


def test_rules_of_other_packages_are_rules_like_any(project, plugin):
    environment = plugin(CRASHING.replace('        raise AnalysisError(path, "the axle broke")\n', ""))
    project.write({"a.py": "import jax\n\njax.process_index()\n"})
    assert project.spawn("check", "--output-format", "json", env=environment).found == [("a.py", 1, "ACME101")]
    assert "ACME101" in project.spawn("rule", "--all", env=environment).out
    project.write({"a.py": "import jax  # noqa: ACME101, E501\n\njax.process_index()\n"})
    assert project.spawn("check", env=environment).status == 0


@pytest.mark.parametrize("patterns", [["old", "made.py"], ["old/", "made.py/"], ["# nothing", "", "a.b-c_d"], []])
def test_names_are_left_out_as_patterns_are(tmp_path, patterns):
    spec = GitIgnoreSpec.from_lines(patterns)
    names = configured_patterns(tmp_path, patterns, "exclude")
    for path in ("old", "old/x.py", "a/old/b/x.py", "x.py", "older.py", "made.py", "a/made.py", "a.b-c_d/x.py"):
        for folder in (False, True):
            assert names.verdict(tmp_path / path, folder) == spec.check_file(f"{path}/" if folder else path).include


@pytest.mark.parametrize(
    ("files", "argv", "last"),
    [
        ({"notes.txt": "text"}, ("notes.txt",), "No files were checked."),
        ({"empty/notes.txt": "text"}, ("empty",), "No files were checked."),
        ({"a.py": "x = 1\n"}, ("--select", "SPMD607"), "No rules ran."),
        ({"a.py": "x = 1\n"}, (), "All checks passed!"),
    ],
)
def test_nothing_is_not_success(project, files, argv, last):
    project.write(files)
    outcome = project.run("check", *argv)
    assert (outcome.status, outcome.out) == (0, f"{last}\n")


GUARD = """\
import jax
import helper

jax.distributed.initialize()
if jax.process_index() == 0:
    helper.save(1)
"""
PLAIN = "def save(x):\n    print(x)\n"
COLLECTIVE = """\
from jax.experimental import multihost_utils


def save(x):
    multihost_utils.sync_global_devices("saved")
"""


def test_touching_shows_what_a_file_causes_elsewhere(project):
    project.write({"train.py": GUARD, "helper.py": PLAIN, "other.py": project.hazard, "third.py": project.hazard})
    assert project.check("--touching", "helper.py").found == []
    project.write({"helper.py": COLLECTIVE})
    assert project.check("helper.py").found == []
    outcome = project.check("--touching", "helper.py")
    assert (outcome.status, outcome.found) == (1, [("train.py", 6, "SPMD301")])
    others = "2 other findings elsewhere in the project, which these files do not touch; 'spmdlint check' shows all."
    assert outcome.err == f"spmdlint: {others}\n"
    assert project.check("--touching", "helper.py", "other.py").found == [
        ("other.py", 7, "SPMD301"),
        ("train.py", 6, "SPMD301"),
    ]
    assert project.check("--touching").err == ""


def test_touching_fixes_only_the_files_that_were_passed(project):
    losses = "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'bacth')\n"
    train = "import jax\nimport losses\n\nstep = jax.pmap(losses.mean, axis_name='batch')\n"
    project.write({"losses.py": losses, "train.py": train})
    outcome = project.check("--touching", "--fix", "--unsafe-fixes", "train.py")
    assert outcome.found == [("losses.py", 5, "SPMD101")]
    assert outcome.json[0]["fix"] is None
    assert (project.root / "losses.py").read_text() == losses
    assert project.check("--touching", "--fix", "--unsafe-fixes", "losses.py").found == []
    assert "'batch'" in (project.root / "losses.py").read_text().replace('"', "'")


FAR = "import jax\n\nNAMES = {'a', 'b'}\n"
NEAR = """import jax, far, helper

def step(x):
    for name in far.NAMES:
        x = jax.lax.psum(x, name)
    return x

run = jax.pmap(step, axis_name='a')
other = jax.pmap(helper.total)
"""


@pytest.fixture
def large(project):
    """A project of more than twice as many rows as are looked at near a file, in which one file needs a large one."""
    helper = "import jax\n\n\ndef total(x):\n    return jax.lax.psum(x, 'data')\n"
    far = FAR + "value = 1\n" * (FOR_COMMITS + 1)
    project.write({"train.py": NEAR, "helper.py": helper, "far.py": far, "spmdlint.toml": ""})
    project.write({"apart.py": "import jax\n\nprint(jax.device_count())\n" + "value = 1\n" * FOR_COMMITS})
    return project


def test_near_looks_only_at_the_files_near_those_passed(large):
    near = large.check("--near", "--touching", "train.py", "helper.py")
    assert near.found == [("helper.py", 5, "SPMD101")]
    assert "2 of 4 files were looked at, the nearest (--near)." in near.err
    assert large.check("--near", "helper.py", "--fail-on-unchecked").status == 2
    # What is kept of a whole run is told, as long as nothing has changed that it depends on.
    whole = large.check()
    assert whole.found == [("helper.py", 5, "SPMD101"), ("train.py", 4, "SPMD201")]
    again = large.check("--near", "train.py", "helper.py")
    assert again.found == whole.found
    assert "nearest" not in again.err


def test_near_does_not_say_that_anything_is_gone(large):
    hushed = NEAR.replace("far.NAMES:", "far.NAMES:  # spmdlint: ignore[SPMD201] for another time")
    large.write({"train.py": hushed})
    assert large.check("--no-cache").found == [("helper.py", 5, "SPMD101")]
    assert large.check("--near", "--no-cache", "train.py").found == []
    large.write({"train.py": NEAR})
    assert large.check("--baseline", "known.json", "--write-baseline").status == 0
    large.write({"train.py": NEAR + "print(jax.device_count())\n"})
    outcome = large.check("--baseline", "known.json", "--near", "train.py", "helper.py")
    assert (outcome.status, outcome.found) == (0, [])
    assert "gone" not in outcome.err
    refused = large.check("--baseline", "known.json", "--near", "--write-baseline")
    assert refused.status == 2
    assert "leave --near out" in refused.err


GUARDED = """import jax, far
from jax.experimental import multihost_utils

def save(x):
    if far.is_main():
        return multihost_utils.process_allgather(x)
"""
MAIN = "import jax\n\n\ndef is_main():\n    return jax.process_index() == 0\n"


def test_near_keeps_what_is_known_of_the_whole_while_it_fixes(large):
    step = "\ndef step(x):\n    for name in {'a', 'b'}:\n        x = jax.lax.psum(x, name)\n    return x\n"
    mended = GUARDED + step + "\nrun = jax.pmap(step, axis_name='a')\n"
    large.write({"far.py": MAIN + "value = 1\n" * (FOR_COMMITS + 1), "train.py": mended})
    assert large.check("train.py").found == [("train.py", 6, "SPMD301"), ("train.py", 9, "SPMD201")]
    fixed = large.check("--near", "train.py", "--fix")
    assert fixed.found == [("train.py", 6, "SPMD301")]
    assert "sorted(" in (large.root / "train.py").read_text()


def test_near_takes_no_other_finding_for_a_known_one(large):
    large.write({"far.py": MAIN + "value = 1\n" * (FOR_COMMITS + 1), "train.py": GUARDED})
    assert large.check("--baseline", "known.json", "--write-baseline").status == 0
    other = "\ndef other(x):\n    if jax.process_index() == 0:\n        return multihost_utils.process_allgather(x)\n"
    large.write({"train.py": GUARDED + other})
    assert large.check("--baseline", "known.json", "--near", "train.py").found == [("train.py", 10, "SPMD301")]


def test_near_does_not_look_at_all_files_for_one_that_cannot_matter(large):
    large.write({"alone.py": "x = 1\n"})
    outcome = large.check("--near", "--no-cache", "--fail-on-unchecked", "alone.py")
    assert (outcome.status, outcome.found, outcome.err) == (0, [], "")


def test_near_does_not_say_what_the_rest_of_the_project_may_do(large):
    large.write({"jobs.py": "import jax\n\n\ndef begin():\n    jax.distributed.initialize()\n" + "x = 1\n" * 20_001})
    large.write({"train.py": "import jax, jobs\n\njobs.begin()\nprint(jax.process_index())\n"})
    assert large.check("--near", "--preview", "--no-cache", "train.py").found == []


@pytest.mark.parametrize(
    "spelling",
    [
        "import helper",
        "from helper import (  # :)\n    other,  # (old)\n    total,\n)",
        "from helper import other, \\\n    total",
        "x = 1; import helper",
        "try: import helper\nexcept ImportError: pass",
    ],
)
def test_near_follows_imports_however_they_are_written(large, spelling):
    helper = "import jax\n\n\ndef total(x):\n    return jax.lax.psum(x, 'data')\n\n\nother = 1\n"
    called = "total" if "total" in spelling else "helper.total"
    large.write({"helper.py": helper, "train.py": f"import jax\n{spelling}\n\nrun = jax.pmap({called})\n"})
    assert large.check("--near", "--no-cache", "--touching", "train.py").found == [("helper.py", 5, "SPMD101")]


def test_near_is_the_whole_of_a_small_project(project):
    project.write({"train.py": NEAR, "helper.py": "", "far.py": FAR, "spmdlint.toml": ""})
    outcome = project.check("--near", "train.py")
    assert outcome.found == [("train.py", 4, "SPMD201")]
    assert outcome.err == ""


def test_touching_with_a_baseline(project):
    project.write({"train.py": GUARD, "helper.py": COLLECTIVE, "other.py": project.hazard})
    project.run("check", "--baseline", "known.json", "--write-baseline")
    known = (project.root / "known.json").read_text()
    outcome = project.run("check", "--touching", "helper.py", "--baseline", "known.json", "--prune-baseline")
    assert (outcome.status, outcome.out) == (0, "All checks passed! (2 more in the baseline.)\n")
    assert "0 findings removed" in outcome.err
    assert "other finding" not in outcome.err
    assert (project.root / "known.json").read_text() == known


LEAD = "import jax\n\n\ndef is_main():\n    return jax.process_index() == 0\n"
SAVES = (
    "from jax.experimental.multihost_utils import sync_global_devices\n{imported}\n\n\n"
    "def save():\n    if {asked}():\n        sync_global_devices('saved')\n"
)
IMPORTS = {
    "a name": ("from acme.hosts import is_main", "is_main"),
    "a module of the package": ("from acme import hosts", "hosts.is_main"),
    "the package": ("import acme.hosts", "acme.hosts.is_main"),
}


@pytest.mark.parametrize("case", IMPORTS)
@pytest.mark.parametrize("file", ["train.py", "loops/train.py"])
def test_a_folder_that_is_a_namespace_package_is_found_by_its_own_name(project, case, file):
    imported, asked = IMPORTS[case]
    project.write({"acme/hosts.py": LEAD, f"acme/{file}": SAVES.format(imported=imported, asked=asked)})
    (project.root / "spmdlint.toml").unlink()
    found = project.check().found
    assert found == project.check("acme").found == [("train.py", 7, "SPMD301")]
    assert "SPMD301" in project.run("explain", f"acme/{file}:7").out


@pytest.fixture
def unmarked(project):
    """A tree of namespace packages that nothing marks: a part of it asks another one which process it is."""
    imported = "from acme.hosts.lead import is_main"
    project.write({"acme/hosts/lead.py": LEAD, "acme/train/__init__.py": ""})
    project.write({"acme/train/run.py": SAVES.format(imported=imported, asked="is_main")})
    (project.root / "spmdlint.toml").unlink()
    return project


OUTSIDE = "which is outside of the project: nothing says where that begins, so it is taken to be"


def test_a_file_is_in_the_project_that_its_folder_is_in(unmarked):
    found = [("run.py", 7, "SPMD301")]
    for argv in (["."], ["acme/train/run.py"], ["acme/train/run.py", "acme/hosts/lead.py"]):
        outcome = unmarked.check("--fail-on-unchecked", *argv)
        assert (outcome.status, outcome.found, outcome.err) == (1, found, "")
    text = (unmarked.root / "acme/train/run.py").read_bytes()
    assert unmarked.check("--stdin-filename", "acme/train/run.py", "-", stdin=text).found == found
    outcome = unmarked.run("explain", "acme/train/run.py:7")
    assert "SPMD301" in outcome.out
    assert outcome.err == ""


@pytest.mark.parametrize("imported", ["from acme.hosts.lead import is_main", "from ..hosts.lead import is_main"])
def test_an_import_from_outside_of_a_project_that_was_guessed_is_told(unmarked, imported):
    unmarked.write({"acme/train/run.py": SAVES.format(imported=imported, asked="is_main")})
    file = unmarked.root / "acme/train/run.py"
    told = f"{imported.split()[1]}, {OUTSIDE} {file.parent}. Findings may be missing; an empty spmdlint.toml in "
    told = f"spmdlint: {file} imports {told}{unmarked.root / 'acme'} makes that the project.\n"
    for argv in ([str(file)], ["acme/train"]):
        outcome = unmarked.check(*argv)
        assert (outcome.status, outcome.found, outcome.err) == (0, [], told)
    assert unmarked.check("--fail-on-unchecked", str(file)).status == 2
    outcome = unmarked.run("explain", f"{file}:7")
    assert ("SPMD301" in outcome.out, outcome.err) == (False, told)
    unmarked.write({"acme/spmdlint.toml": ""})
    outcome = unmarked.check(str(file))
    assert (outcome.found, outcome.err) == ([("run.py", 7, "SPMD301")], "")


def test_an_import_of_a_folder_beside_a_lone_file_is_told(unmarked):
    unmarked.write({"run.py": SAVES.format(imported="from acme.hosts.lead import is_main", asked="is_main")})
    outcome = unmarked.check(f"{unmarked.root}/run.py")
    assert outcome.found == []
    assert f"run.py imports acme.hosts.lead, {OUTSIDE} {unmarked.root}. " in outcome.err


@pytest.mark.parametrize("imported", ["import jax.numpy as is_main", "from acme.hosts import nothing as is_main"])
def test_an_import_of_what_is_not_there_is_not_told(unmarked, imported):
    unmarked.write({"acme/train/run.py": SAVES.format(imported=imported, asked="is_main")})
    assert unmarked.check("--fail-on-unchecked", "acme/train").err == ""


@pytest.mark.parametrize("shared", ["the home folder", "a folder of everybody"])
def test_a_folder_of_all_sorts_of_things_is_no_project(unmarked, monkeypatch, shared):
    if shared == "the home folder":
        monkeypatch.setenv("HOME", str(unmarked.root))
    else:
        unmarked.root.chmod(0o1777)
    assert OUTSIDE in unmarked.check("acme/train/run.py").err
    assert OUTSIDE in unmarked.run("explain", "acme/train/run.py:7").err


def test_a_file_that_the_current_folder_leaves_out_is_with_its_neighbours(unmarked):
    (unmarked.root / "acme").rename(unmarked.root / "build")
    unmarked.write({"build/train/lead.py": LEAD})
    unmarked.write({"build/train/run.py": SAVES.format(imported="from .lead import is_main", asked="is_main")})
    assert unmarked.check("build/train/run.py").found == [("run.py", 7, "SPMD301")]


@pytest.mark.parametrize("asked", ["acme", "acme/run", "."])
def test_a_part_of_a_namespace_package_is_found_by_its_whole_name(project, asked):
    train = SAVES.format(imported="from acme.run.hosts import is_main", asked="is_main")
    project.write({"acme/run/hosts.py": LEAD, "acme/run/train.py": train})
    (project.root / "spmdlint.toml").unlink()
    assert project.check(asked).found == [("train.py", 7, "SPMD301")]


INSIDE = {
    "from acme.train.hosts import is_main": "acme/train/hosts.py",
    "from .hosts import is_main": "acme/train/hosts.py",
    "from acme.hosts import is_main": "acme/hosts.py",
    "from ..hosts import is_main": "acme/hosts.py",
    "from acme.tools.hosts import is_main": "acme/tools/hosts.py",
}


@pytest.mark.parametrize("asked", [".", "acme", "acme/train", "acme/train/loop.py"])
@pytest.mark.parametrize(("imported", "lead"), INSIDE.items())
def test_a_part_of_a_package_is_found_by_its_whole_name(project, asked, imported, lead):
    files = {f"acme/{folder}__init__.py": "" for folder in ("", "train/", "tools/")}
    project.write(files | {lead: LEAD, "acme/train/loop.py": SAVES.format(imported=imported, asked="is_main")})
    (project.root / "spmdlint.toml").unlink()
    assert project.check(asked).found == [("loop.py", 7, "SPMD301")]


def test_a_folder_that_its_package_excludes_is_a_project_of_its_own(project):
    files = {f"acme/{folder}__init__.py": "" for folder in ("", "build/")}
    train = SAVES.format(imported="from acme.build.hosts import is_main", asked="is_main")
    project.write(files | {"acme/build/hosts.py": LEAD, "acme/build/train.py": train})
    (project.root / "spmdlint.toml").unlink()
    assert project.check("acme").found == []
    assert project.check("acme/build").found == [("train.py", 7, "SPMD301")]


def test_a_package_in_a_folder_of_its_name_comes_first(project):
    imported, asked = IMPORTS["a name"]
    project.write(
        {
            "acme/hosts.py": LEAD,
            "acme/train.py": SAVES.format(imported=imported, asked=asked),
            "acme/acme/files.py": "import jax\n",
        }
    )
    (project.root / "spmdlint.toml").unlink()
    assert project.check("acme").found == []


def test_what_a_caller_elsewhere_decides_is_explained_as_it_is_found(project):
    """The caller stands in another folder, which only the current folder includes."""
    project.write(
        {
            "lib/losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
            "train.py": "from lib import losses\n\nlosses.mean(1.0)\n",
        }
    )
    (project.root / "spmdlint.toml").unlink()
    assert project.check().found == [("losses.py", 5, "SPMD101")]
    assert "SPMD101" in project.run("explain", "lib/losses.py:5").out


@pytest.mark.parametrize("chosen", [("--select", "SPMD303"), ("--ignore", "SPMD306")])
def test_a_finding_whose_place_another_rule_takes_is_shown_where_that_rule_does_not_run(project, chosen):
    project.write({"a.py": project.two_conditions.format(first="", second="")})
    assert project.check("--preview").found == [("a.py", 22, "SPMD306")]
    assert project.check("--preview", *chosen).found == [("a.py", 22, "SPMD303")]

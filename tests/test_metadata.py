"""The facts as LibCST metadata: the codemod of the page runs, through LibCST's own command too."""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest
from libcst.codemod import CodemodContext, TransformSuccess, transform_module
from libcst.metadata import FullRepoManager

from spmdlint.metadata import ChangedFileError, SpmdFactsProvider

PAGE = Path(__file__).parent.parent / "docs" / "own-rules.md"
PROGRAM = """\
import jax


def is_main():
    return jax.process_index() == 0


def report(x):
    print(x)  # here


def train():
    if is_main():
        print('é', 1)
    report(2)


train()
"""
SAYS_SO = PROGRAM.replace("    print(x)", "    print_on_main(x)")


@pytest.fixture
def codemod():
    """The text of the codemod of the page."""
    return re.search(r"^`codemods/on_main.py`:\n\n```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manager(project, *paths):
    return FullRepoManager(str(project.root), list(paths), {SpmdFactsProvider})


def facts(project, path):
    """The facts about each call in a file, by its name."""
    wrapper = manager(project, path).get_metadata_wrapper_for_path(path)
    found = wrapper.resolve(SpmdFactsProvider)
    return {
        node.func.value: each
        for node, each in found.items()
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name)
    }


@pytest.mark.parametrize("text", [PROGRAM, PROGRAM.replace("\n", "\r\n")])
def test_each_node_has_facts_from_the_whole_project(project, text):
    project.write(
        {
            "a.py": "from helper import asked\n" + text + "asked(jax.process_index())\n",
            "helper.py": "def asked(x): ...\n",
        }
    )
    known = facts(project, "a.py")
    assert known["asked"].callees.includes("helper.asked") == "yes"
    assert known["is_main"].difference.answer == "yes"
    assert known["is_main"].difference.aspects[0].steps[0].place.start.row == 6
    assert known["report"].guards.always(lambda guard: guard.first_process) == "no"


def test_the_codemod_of_the_page(project, codemod):
    project.write({"a.py": PROGRAM, "codemods/__init__.py": "", "codemods/on_main.py": codemod})
    context = CodemodContext(filename="a.py", metadata_manager=manager(project, "a.py"))
    command = loaded(project.root / "codemods/on_main.py").PrintOnMain
    result = transform_module(command(context), PROGRAM)
    assert isinstance(result, TransformSuccess), result
    assert result.code == SAYS_SO


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_codemod_of_the_page_as_a_command(project, codemod, jobs):
    project.write(
        {
            "a.py": PROGRAM,
            "b.py": PROGRAM,
            "codemods/__init__.py": "",
            "codemods/on_main.py": codemod,
            ".libcst.codemod.yaml": "modules: [codemods]\nrepo_root: '.'\n",
        }
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "libcst.tool",
            "codemod",
            "--no-format",
            "on_main.PrintOnMain",
            "-j",
            jobs,
            "a.py",
            "b.py",
        ],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(project.root)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert (project.root / "a.py").read_text() == (project.root / "b.py").read_text() == SAYS_SO


def test_a_tree_that_has_changed_has_no_facts(project):
    project.write({"a.py": PROGRAM})
    cache = manager(project, "a.py").get_cache_for_path("a.py")
    changed = cst.metadata.MetadataWrapper(cst.parse_module(PROGRAM + "more()\n"), cache=cache)
    with pytest.raises(ChangedFileError, match=r"a\.py is not that of the file"):
        changed.resolve(SpmdFactsProvider)


def test_an_edit_is_seen_by_the_next_manager(project):
    project.write({"a.py": PROGRAM})
    assert facts(project, "a.py")["is_main"].difference.answer == "yes"
    project.write({"a.py": PROGRAM.replace("jax.process_index()", "0")})
    assert facts(project, "a.py")["is_main"].difference.answer == "no"


def test_the_cache_can_be_sent_to_another_process(project):
    project.write({"a.py": PROGRAM})
    cache = pickle.loads(pickle.dumps(manager(project, "a.py").get_cache_for_path("a.py")))
    wrapper = cst.metadata.MetadataWrapper(cst.parse_module(PROGRAM), cache=cache)
    assert any(each.difference.answer == "yes" for each in wrapper.resolve(SpmdFactsProvider).values())


def test_nothing_is_known_about_a_file_outside_of_the_project(project):
    project.write({"spmdlint.toml": 'exclude = ["a.py"]\n', "a.py": PROGRAM, "b.py": "x = 1\n"})
    assert {each.difference.answer for each in facts(project, "a.py").values()} == {"unknown"}


FIXIT = """\
import libcst as cst
from fixit import LintRule

from spmdlint.metadata import SpmdFactsProvider


class PrintOnMain(LintRule):
    MESSAGE = "It prints on every process."
    METADATA_DEPENDENCIES = (SpmdFactsProvider,)

    def visit_Call(self, node: cst.Call) -> None:
        facts = self.get_metadata(SpmdFactsProvider, node)
        if facts.callees.includes("builtins.print") == "yes":
            if facts.guards.always(lambda guard: guard.first_process) == "no":
                self.report(node, replacement=node.with_changes(func=cst.Name("print_on_main")))
"""


def test_a_rule_of_fixit_asks_for_facts(project):
    pytest.importorskip("fixit")  # its click is older than that of check-jsonschema, which other tests need
    settings = "[tool.fixit]\nroot = true\nenable = ['.rules']\n"
    project.write({"a.py": PROGRAM, "rules.py": FIXIT, "pyproject.toml": settings})
    command = [sys.executable, "-m", "fixit", "fix", "--automatic", "a.py"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=200)
    assert "a.py@9:4 PrintOnMain: It prints on every process." in done.stdout
    assert (project.root / "a.py").read_text() == SAYS_SO

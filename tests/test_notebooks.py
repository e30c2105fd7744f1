"""Notebooks: linted as one module, told by cell and line, and written back without touching anything else."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.test_ci import SARIF

IMPORTS = "import jax\nfrom jax.experimental import multihost_utils"
GUARD = "if jax.process_index() == 0:\n    save(1)\ny = jax.tree_map(abs, [])"


def code(source):
    """A code cell with outputs and metadata, as Jupyter writes it."""
    return {
        "cell_type": "code",
        "execution_count": 3,
        "metadata": {"tags": ["é"], "width": 1e-05},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["saved\n"]}],
        "source": source.splitlines(keepends=True),
    }


def notebook(*cells, indent=1, language="python"):
    about = {"kernelspec": {"display_name": "K", "language": language, "name": "k"}}
    made = {"cells": list(cells), "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=indent, ensure_ascii=False) + "\n"


BARRIER = "    multihost_utils.sync_global_devices('x')"
TITLE = {"cell_type": "markdown", "metadata": {}, "source": ["# if jax.process_index() == 0:"]}
SAVE = "def save(x):\n    %time print(x)\n    multihost_utils.sync_global_devices('saved')"
PROGRAM = (
    TITLE,
    code(f"%matplotlib inline\n!pip install jax \\\n    jaxlib\n{IMPORTS}\nfiles = !ls\n?jax"),
    code("%%bash\nif then"),
    code(SAVE),
    code(GUARD),
    code("%%time\nif jax.process_index() == 0:\n    multihost_utils.sync_global_devices('x')"),
)


@pytest.fixture
def training(project):
    project.write({"train.ipynb": notebook(*PROGRAM)})
    return project


def spots(outcome):
    return [(each["cell"], each["location"]["row"], each["code"]) for each in outcome.json]


def test_a_folder_of_nothing_but_notebooks_is_linted(training):
    outcome = training.check()
    assert outcome.status == 1
    assert spots(outcome) == [(5, 2, "SPMD301"), (5, 3, "SPMD602"), (6, 3, "SPMD301")]
    first = outcome.json[0]
    assert first["filename"] == str(training.root / "train.ipynb")
    assert "the condition at line 1 of cell 5" in first["message"]
    assert [(each["cell"], each["location"]["row"]) for each in first["related"]] == [(5, 1), (4, 3)]
    assert training.check("train.ipynb").json == outcome.json


def test_people_see_the_cell_and_its_rows(training):
    lines = training.run("check", "--output-format", "concise").out.splitlines()
    assert lines[0].startswith("train.ipynb:cell 5:2:5: error: SPMD301 ")
    assert lines[2].startswith("train.ipynb:cell 6:3:5: error: SPMD301 ")
    full = training.run("check").out
    assert " --> train.ipynb:cell 5:2:5\n  |\n1 | if jax.process_index() == 0:\n2 |     save(1)\n" in full
    assert "2 | if jax.process_index() == 0:\n3 |     multihost_utils.sync_global_devices('x')\n" in full
    assert "~" not in full


def test_a_bracket_on_another_line_of_a_broken_cell(project):
    project.write({"a.ipynb": notebook(code("import jax\n\n"), code("x = 1\ny = [\n)"))})
    (found,) = project.check().json
    assert (found["cell"], found["location"]["row"]) == (2, 3)
    assert "does not match opening parenthesis '[' on line 2 of cell 2." in found["message"]


def test_servers_get_the_line_of_the_file(training, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(training.root))
    rows = (training.root / "train.ipynb").read_text().splitlines()
    row = rows.index('    "    save(1)\\n",') + 1
    line = training.run("check", "--output-format", "github").out.splitlines()[0]
    assert f"file=train.ipynb,line={row},endLine={row}" in line
    assert "SPMD301 Cell 5, line 2: sync_global_devices" in line
    issue = json.loads(training.run("check", "--output-format", "gitlab").out)[0]
    assert issue["location"]["positions"]["begin"]["line"] == row
    assert f'line="{row}"' in training.run("check", "--output-format", "junit").out
    log = json.loads(training.run("check", "--output-format", "sarif").out)
    jsonschema.Draft4Validator(SARIF).validate(log)
    result = log["runs"][0]["results"][0]
    assert result["message"]["text"].startswith("Cell 5, line 2: ")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == row


@pytest.mark.parametrize("indent", [1, 2, None])
def test_a_fix_changes_its_line_and_no_other_byte(project, indent):
    before = notebook(*PROGRAM, indent=indent)
    project.write({"train.ipynb": before})
    diff = project.run("check", "--diff")
    assert "-y = jax.tree_map(abs, [])\n+y = jax.tree.map(abs, [])\n" in diff.out
    assert (project.root / "train.ipynb").read_text() == before
    project.run("check", "--fix")
    assert (project.root / "train.ipynb").read_text() == before.replace("jax.tree_map", "jax.tree.map")


def test_a_source_in_one_string_stays_in_one(project):
    text = notebook({**code(""), "source": "import jax\ny = jax.tree_map(abs, 'é')"})
    project.write({"a.ipynb": text})
    project.run("check", "--fix")
    assert (project.root / "a.ipynb").read_text() == text.replace("jax.tree_map", "jax.tree.map")


def test_a_file_in_ascii_stays_in_ascii(project):
    text = notebook(code("import jax\nname = 'é'\ny = jax.tree_map(abs, [])"))
    text = text.replace("é", "\\u00e9")
    project.write({"a.ipynb": text})
    project.run("check", "--fix")
    assert (project.root / "a.ipynb").read_text() == text.replace("jax.tree_map", "jax.tree.map")


def test_suppressions_are_written_into_cells(training):
    before = json.loads((training.root / "train.ipynb").read_text())
    assert training.run("check", "--add-ignore", "a tool for one host").err == "spmdlint: 3 findings silenced.\n"
    assert training.run("check").out == "All checks passed!\n"
    after = json.loads((training.root / "train.ipynb").read_text())
    assert after["cells"][4]["source"][1] == "    save(1)  # spmdlint: ignore[SPMD301] a tool for one host\n"
    for old, new in zip(before["cells"], after["cells"], strict=True):
        assert {**old, "source": 0} == {**new, "source": 0}
    assert after["cells"][:4] == before["cells"][:4]


def test_a_suppression_without_effect_is_removed_from_its_cell(project):
    text = notebook(code("x = 1  # spmdlint: ignore[SPMD301] old\ny = 2"))
    project.write({"a.ipynb": text})
    assert spots(project.check()) == [(1, 1, "SPMD900")]
    project.run("check", "--fix")
    cell = json.loads((project.root / "a.ipynb").read_text())["cells"][0]
    assert cell["source"] == ["x = 1\n", "y = 2"]


def test_standard_input_is_a_notebook_and_so_is_the_output(training):
    text = (training.root / "train.ipynb").read_text()
    typed = ("-", "--stdin-filename", "train.ipynb")
    assert spots(training.check(*typed, stdin=text.encode())) == spots(training.check())
    fixed = training.run("check", "--fix", *typed, stdin=text.encode())
    assert fixed.out == text.replace("jax.tree_map", "jax.tree.map")


def test_a_baseline(training):
    training.run("check", "--baseline", "known.json", "--write-baseline")
    training.write({"train.ipynb": notebook(code("x = 0"), *PROGRAM)})
    outcome = training.run("check", "--baseline", "known.json")
    assert (outcome.status, outcome.out) == (0, "All checks passed! (3 more in the baseline.)\n")


def test_a_line_of_a_cell_is_explained(training):
    told = training.run("explain", "train.ipynb:cell 5:2").out
    assert told.startswith("train.ipynb:cell 5:2: save(1)\n")
    assert "save(1): save (train.ipynb:cell 4:1)" in told
    assert "(train.ipynb:cell 5:1) jax.process_index() differs" in told
    assert "the condition at line 1 of cell 5" in told
    for at, line in (("2:2", "!pip install jax \\"), ("3:1", "%%bash"), ("3:2", "if then"), ("4:2", "%time print(x)")):
        assert training.run("explain", f"train.ipynb:cell {at}").out.startswith(f"train.ipynb:cell {at}: {line}\n")
    assert "name the cell too" in training.run("explain", "train.ipynb:5").err
    assert "no line 9 in a code cell 5" in training.run("explain", "train.ipynb:cell 5:9").err


@pytest.mark.parametrize(
    "source",
    [
        "x = 5 \\\n    % 3\ny = (7\n% 2)\nz = '''\n%matplotlib inline\n!ls?\n'''",  # Python that looks like a magic
        "text = '''\n!ls\n'''\n!ls\n%cd ..\nwhere = %pwd\nif x:\n    !ls\njax?",
        "%%html\n<b>\n<!-- ? -->",
        "await something()",
        "",
        "%%capture out\n",
    ],
)
def test_magics_keep_their_cell_readable_and_come_back(project, source):
    """The finding after them shows that the cell is read, and the fix that they are written back as they were."""
    text = notebook(code(source), code("import jax\ny = jax.tree_map(abs, [])"))
    project.write({"a.ipynb": text})
    assert spots(project.check()) == [(2, 2, "SPMD602")]
    project.run("check", "--fix")
    assert (project.root / "a.ipynb").read_text() == text.replace("jax.tree_map", "jax.tree.map")
    if not source.startswith("%%html"):
        last = f"{source}\nimport jax\ny = jax.tree_map(abs, [])"
        text = notebook(code(last))
        project.write({"a.ipynb": text})
        assert spots(project.check()) == [(1, len(last.split("\n")), "SPMD602")]
        project.run("check", "--fix")
        assert (project.root / "a.ipynb").read_text() == text.replace("jax.tree_map", "jax.tree.map")


def test_a_cell_that_does_not_parse_is_told_with_its_line(project):
    project.write({"a.ipynb": notebook(TITLE, code("x = 1\ndef f(:"))})
    assert spots(project.check()) == [(2, 2, "SPMD901")]


def test_a_cell_that_does_not_parse_hides_no_other(project):
    """It is told again from the cache, and a fix of another cell leaves it as it is."""
    broken = code("%time x = 1\n  def broken(:\n\n    %matplotlib inline")
    text = notebook(
        TITLE, code(IMPORTS), broken, code(f"if jax.process_index() == 0:\n{BARRIER}\njax.tree_map(abs, [])")
    )
    project.write({"a.ipynb": text})
    first = project.check()
    assert spots(first) == [(3, 2, "SPMD901"), (4, 2, "SPMD301"), (4, 3, "SPMD602")]
    assert first.json[0]["message"].startswith("This cell was not linted. It does not parse: ")
    assert project.check().json == first.json
    assert "~" not in project.run("check").out
    assert project.run("explain", "a.ipynb:cell 4:2").status == 0
    refused = project.run("explain", "a.ipynb:cell 3:2")
    assert (refused.status, "does not parse" in refused.err) == (2, True)
    project.run("check", "--fix")
    assert (project.root / "a.ipynb").read_text() == text.replace("jax.tree_map", "jax.tree.map")


def test_another_language_is_not_linted(project):
    project.write({"a.ipynb": notebook(code("x <- 1 ("), language="R")})
    assert project.check().json == []


@pytest.mark.parametrize("text", ["", "{", "{}", '{"cells": 1}', '{"worksheets": []}', "[]"])
def test_what_is_no_notebook_is_a_finding(project, text):
    project.write({"a.ipynb": text})
    (found,) = project.check().json
    assert found["code"] == "SPMD901"
    assert "not a notebook of format 4" in found["message"]


def test_nothing_imports_a_notebook(project):
    """`helper` is the module beside it, whichever is read first."""
    project.write(
        {
            "helper.ipynb": notebook(code("import jax\n\n\ndef lead():\n    return jax.process_index() == 0")),
            "helper.py": "def lead():\n    return True\n",
            "train.py": f"{IMPORTS}\nimport helper\n\nif helper.lead():\n{BARRIER}\n",
        }
    )
    assert project.check().json == []


def test_a_notebook_uses_the_modules_of_the_project(project):
    project.write(
        {
            "hosts.py": "import jax\n\n\ndef lead():\n    return jax.process_index() == 0\n",
            "a.ipynb": notebook(
                code(f"{IMPORTS}\nfrom hosts import lead"),
                code("if lead():\n    multihost_utils.sync_global_devices('x')"),
            ),
        }
    )
    (found,) = project.check().json
    assert (found["cell"], found["location"]["row"]) == (2, 2)
    (elsewhere,) = project.check("--touching", "hosts.py").json
    assert (elsewhere["cell"], elsewhere["location"]["row"]) == (2, 2)
    assert [each["cell"] for each in found["related"]][-1] in (None, 2)


def test_a_notebook_is_told_from_others_with_its_name(project):
    """A module's finding names the line of the cell, and as much of the notebook's path as is needed."""
    runs = code("import jax\nfrom losses import total\n\nrun = jax.pmap(total)")
    project.write(
        {
            "losses.py": "import jax\n\n\ndef total(x):\n    return jax.lax.psum(x, 'data')\n",
            "first/train.ipynb": notebook(TITLE, runs),
            "second/train.ipynb": notebook(code("import losses")),
        }
    )
    (finding,) = project.check().json
    assert "the pmap at line 4 of cell 2 of first/train.ipynb runs it" in finding["message"]

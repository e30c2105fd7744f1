"""Notebooks in `spmdlint server`: each cell is a document of its own for the editor."""

from __future__ import annotations

import json
import random
from copy import deepcopy

import pytest
from lsprotocol import types

from tests.server.client import USUAL, edit

# pygls asks asyncio what Python 3.14 wants it to ask inspect.
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")

IMPORTS = "%matplotlib inline\nimport jax\nfrom jax.experimental import multihost_utils"
SAVE = "def save(step):\n    multihost_utils.sync_global_devices('saved')\n    !date"
GUARD = "if jax.process_index() == 0:\n    save(1)"
OLD = "rows = {'b': 1}\nprint(jax.tree_map(abs, rows))"


def notebook(**cells: str) -> str:
    """A notebook of these cells by their identity; one whose identity begins with ``text`` is no code."""
    made = []
    for identity, source in cells.items():
        kind = "markdown" if identity.startswith("text") else "code"
        cell = {"cell_type": kind, "id": identity, "metadata": {}, "source": source.splitlines(keepends=True)}
        made.append(cell if kind == "markdown" else {**cell, "outputs": [], "execution_count": None})
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


@pytest.fixture
def training(project):
    project.write({"train.ipynb": notebook(a=IMPORTS, text1="# Saving", b=SAVE, c=GUARD, d=OLD)})
    return project


def test_findings_are_in_their_cells_and_a_quick_fix_removes_one(training):
    async def work(editor):
        (selector,) = editor.told.capabilities.notebook_document_sync.notebook_selector
        assert selector.notebook.notebook_type == "jupyter-notebook"
        assert selector.cells is None  # without the other cells, those of Python would have other numbers
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#d", (2, "SPMD602"))
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        await editor.finds("train.ipynb#b")
        found = editor.diagnostic("train.ipynb#c", "SPMD301")
        assert found.range == types.Range(types.Position(1, 4), types.Position(1, 11))
        assert "the condition at line 1 of cell 4" in found.message
        related = [each.location for each in found.related_information]
        assert (related[0].uri, related[0].range.start.line) == (editor.uri("train.ipynb#c"), 0)
        assert (editor.uri("train.ipynb#b"), 1) in [(each.uri, each.range.start.line) for each in related]
        assert editor.found("train.ipynb") == []

        actions = await editor.actions("train.ipynb#d", editor.diagnostic("train.ipynb#d", "SPMD602").range)
        editor.apply("train.ipynb#d", actions["Replace it with jax.tree.map (SPMD602)"])
        await editor.finds("train.ipynb#d")
        assert editor.text("train.ipynb#d") == OLD.replace("jax.tree_map", "jax.tree.map")
        editor.change("train.ipynb#d", "jax.tree.map", "jax.tree_map")
        await editor.finds("train.ipynb#d", (2, "SPMD602"))

    edit(training.root, work)


def test_a_finding_in_a_cell_is_ignored_with_a_reason(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        where = editor.diagnostic("train.ipynb#c", "SPMD301").range
        editor.change("train.ipynb#c", "save(1)", "save(1")
        await editor.finds("train.ipynb#c", (2, "SPMD301"), (2, "SPMD901"))
        assert await editor.actions("train.ipynb#c", where) == {}
        editor.change("train.ipynb#c", "save(1", "save(1)")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        actions = await editor.actions("train.ipynb#c", where)
        editor.apply("train.ipynb#c", actions["Ignore SPMD301 here, and say why in the comment"])
        await editor.finds("train.ipynb#c")
        assert editor.text("train.ipynb#c") == f"{GUARD}  # spmdlint: ignore[SPMD301] TODO: say why"

    edit(training.root, work)


def test_a_comment_above_the_first_row_of_a_cell(project):
    text = 'jax.tree_map(abs, """\n""")'
    project.write({"train.ipynb": notebook(a="import jax", b=text)})

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#b", (1, "SPMD602"))
        where = editor.diagnostic("train.ipynb#b", "SPMD602").range
        actions = await editor.actions("train.ipynb#b", where)
        editor.apply("train.ipynb#b", actions["Ignore SPMD602 here, and say why in the comment"])
        await editor.finds("train.ipynb#b")
        assert editor.text("train.ipynb#b") == f"# spmdlint: ignore[SPMD602] TODO: say why\n{text}"
        assert editor.text("train.ipynb#a") == "import jax"

    edit(project.root, work)


def test_findings_move_along_with_their_code(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        editor.change("train.ipynb#c", "if", "\n\nif")
        editor.insert_cell("train.ipynb", 0, "e", "x = 1\ny = 2\n")
        await editor.finds("train.ipynb#c", (4, "SPMD301"))
        await editor.until(lambda: "at line 3 of cell 5" in editor.diagnostic("train.ipynb#c", "SPMD301").message)
        # From the keystroke on, before anything was examined: each version of a cell has its own number.
        here = [each for each in editor.published if each.uri == editor.uri("train.ipynb#c")]
        rows = {(each.version, found.range.start.line) for each in here for found in each.diagnostics}
        assert rows == {(1, 1), (2, 3)}
        assert all(each.diagnostics for each in here)
        # The cell with the collective goes, and takes the finding with it; that of another cell stays.
        editor.remove_cell("train.ipynb", "b")
        await editor.finds("train.ipynb#c")
        assert editor.found("train.ipynb#d") == [(2, "SPMD602")]
        editor.remove_cell("train.ipynb", "d")
        await editor.finds("train.ipynb#d")

    edit(training.root, work)


def test_the_order_of_cells_counts(project):
    """The second of two calls of initialize() is too many, whichever cell it is in."""
    calls = {"b": "jax.distributed.initialize('localhost:1')", "c": "\njax.distributed.initialize('localhost:2')"}
    project.write({"train.ipynb": notebook(a="import jax", **calls)})

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD604"))
        await editor.finds("train.ipynb#b")
        editor.move_cell("train.ipynb", "c", 1)
        await editor.finds("train.ipynb#b", (1, "SPMD604"))
        await editor.finds("train.ipynb#c")

    edit(project.root, work)


def test_while_a_cell_does_not_parse_its_last_text_that_did_stands_in(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        # Without save() there would be nothing to find in the next cell.
        editor.change("train.ipynb#b", "def save(step):", "\nx = (\ndef save(step):")
        await editor.finds("train.ipynb#b", (2, "SPMD901"))
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        broken = editor.diagnostic("train.ipynb#b", "SPMD901")
        assert "'(' was never closed" in broken.message
        assert "The other findings" in broken.message
        assert broken.range.start == types.Position(1, 4)
        (there,) = {
            each.location.range.start.line
            for each in editor.diagnostic("train.ipynb#c", "SPMD301").related_information
            if each.location.uri == editor.uri("train.ipynb#b")
        }
        assert there == 3
        editor.change("train.ipynb#b", "\nx = (\n", "")
        await editor.finds("train.ipynb#b")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))

    edit(training.root, work)


def test_a_cell_that_never_parsed_hides_nothing(project):
    project.write({"train.ipynb": notebook(a="import jax", b="x = [\n)", c=OLD, d="x = 1")})

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD602"))
        await editor.finds("train.ipynb#b", (2, "SPMD901"))
        editor.change("train.ipynb#b", "[\n)", "{\n)")
        await editor.until(lambda: "'{' on line 1 of cell 2" in editor.diagnostic("train.ipynb#b", "SPMD901").message)
        assert editor.found("train.ipynb#b") == [(2, "SPMD901")]
        assert editor.found("train.ipynb#c") == [(2, "SPMD602")]
        editor.change("train.ipynb#d", "x = 1", "y = 2\nx = [\n)")
        await editor.finds("train.ipynb#d", (3, "SPMD901"))
        assert "'[' on line 2 of cell 4" in editor.diagnostic("train.ipynb#d", "SPMD901").message
        assert editor.found("train.ipynb#b") == [(2, "SPMD901")]

    edit(project.root, work)


def test_a_notebook_that_is_not_open_is_shown_at_the_lines_of_its_file(training):
    training.write({"a.py": "x = 1\n"})
    line = (training.root / "train.ipynb").read_text().splitlines().index('    "    save(1)"') + 1

    async def work(editor):
        editor.open("a.py")
        await editor.until(lambda: (line, "SPMD301") in editor.found("train.ipynb"))
        assert [code for _, code in editor.found("train.ipynb")] == ["SPMD301", "SPMD602"]
        assert editor.diagnostic("train.ipynb", "SPMD301").message.startswith("Cell 4, line 2: ")
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        await editor.finds("train.ipynb")
        assert not editor.diagnostic("train.ipynb#c", "SPMD301").message.startswith("Cell")
        # What was typed and not saved counts no longer once the notebook is closed.
        editor.change("train.ipynb#c", "save(1)", "print(1)")
        await editor.finds("train.ipynb#c")
        editor.close_notebook("train.ipynb")
        await editor.until(lambda: (line, "SPMD301") in editor.found("train.ipynb"))
        assert editor.found("train.ipynb#d") == []

    edit(training.root, work)


def test_an_editor_that_does_not_know_notebooks(training):
    capabilities = deepcopy(USUAL)
    capabilities.notebook_document = None
    capabilities.text_document.publish_diagnostics.related_information = False

    async def work(editor):
        assert editor.told.capabilities.notebook_document_sync is None
        editor.open("train.ipynb")
        editor.write("a.py", "x = 1\n")
        editor.open("a.py")
        await editor.until(lambda: [code for _, code in editor.found("train.ipynb")] == ["SPMD301", "SPMD602"])
        message = editor.diagnostic("train.ipynb", "SPMD301").message
        assert "\ntrain.ipynb:cell 4:1: " in message
        assert "\ntrain.ipynb:cell 3:2: " in message
        assert await editor.actions("train.ipynb", editor.diagnostic("train.ipynb", "SPMD602").range) == {}

    edit(training.root, work, capabilities)


def test_places_in_cells_without_related_information(training):
    capabilities = deepcopy(USUAL)
    capabilities.text_document.publish_diagnostics.related_information = False

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        assert "\ntrain.ipynb:cell 3:2: " in editor.diagnostic("train.ipynb#c", "SPMD301").message

    edit(training.root, work, capabilities)


def test_what_an_edit_counts(project):
    """UTF-16 units and the ends of lines that the protocol knows, of which a form feed is none."""
    project.write(
        {"train.ipynb": notebook(a="import jax", b="name = '\U0001f600\U0001f600\x0c\u2028'; y = abs\nz = y\n")}
    )

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#b")
        editor.change("train.ipynb#b", "y = abs", "y = jax.tree_map(abs, [])")
        await editor.finds("train.ipynb#b", (1, "SPMD602"))
        where = editor.diagnostic("train.ipynb#b", "SPMD602").range
        assert (where.start.character, where.end.character) == (21, 33)
        editor.change("train.ipynb#b", "z = y", "z = jax.tree_map")
        await editor.finds("train.ipynb#b", (1, "SPMD602"), (2, "SPMD602"))

    edit(project.root, work)


def test_all_safe_fixes_of_a_cell(project):
    twice = "%time x = 1\njax.tree_map(abs, [])\njax.tree_map(abs, [])"
    project.write({"train.ipynb": notebook(a="import jax", b=twice, c=OLD)})

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#b", (2, "SPMD602"), (3, "SPMD602"))
        everything = types.Range(types.Position(0, 0), types.Position(3, 0))
        actions = await editor.actions("train.ipynb#b", everything, only=["source.fixAll.spmdlint"])
        editor.apply("train.ipynb#b", actions["Apply all safe fixes of spmdlint"])
        await editor.finds("train.ipynb#b")
        assert editor.text("train.ipynb#b") == twice.replace("tree_map", "tree.map")
        assert editor.found("train.ipynb#c") == [(2, "SPMD602")]

    edit(project.root, work)


def test_hover_explains_the_line_of_a_cell(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#c", (2, "SPMD301"))
        text = await editor.hover("train.ipynb#c", 2)
        assert "jax.process_index()" in text
        assert await editor.hover("train.ipynb#c", 2) == text

    edit(training.root, work)


def test_cells_in_other_languages_are_not_python(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#d", (2, "SPMD602"))
        editor.insert_cell("train.ipynb", 3, "r", OLD, language="r")
        await editor.until(lambda: "of cell 5" in editor.diagnostic("train.ipynb#c", "SPMD301").message)
        assert editor.found("train.ipynb#d") == [(2, "SPMD602")]
        assert editor.found("train.ipynb#r") == []

    edit(training.root, work)


def test_running_a_cell_examines_nothing(training):
    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#d", (2, "SPMD602"))
        before = len(editor.published)
        editor.run_cell("train.ipynb", "d")
        await editor.hover("train.ipynb#d", 2)  # messages are answered in their order
        assert len(editor.published) == before

    edit(training.root, work)


def test_a_module_that_the_notebook_imports(project):
    project.write({"losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'i')\n"})
    project.write({"train.ipynb": notebook(a="import jax, losses", b="jax.pmap(losses.mean, axis_name='i')(x)")})

    async def work(editor):
        editor.open_notebook("train.ipynb")
        editor.change("train.ipynb#b", "'i'", "'j'")
        await editor.finds("losses.py", (5, "SPMD101"))
        related = editor.diagnostic("losses.py", "SPMD101").related_information
        assert editor.uri("train.ipynb#b") in [each.location.uri for each in related]
        editor.change("train.ipynb#b", "'j'", "'i'")
        await editor.finds("losses.py")

    edit(project.root, work)


@pytest.mark.parametrize("seed", range(2))
def test_after_random_edits_the_findings_are_those_of_check(training, seed):
    chance = random.Random(seed)
    pieces = [IMPORTS, SAVE, GUARD, OLD, "x = (", "%%bash\nls", "", "import jax\n"]

    async def work(editor):
        editor.open_notebook("train.ipynb")
        await editor.finds("train.ipynb#d", (2, "SPMD602"))
        cells = ["a", "text1", "b", "c", "d"]
        for number in range(30):
            kind = chance.choice(("type", "type", "insert", "remove"))
            if kind == "insert":
                at = chance.randrange(len(cells) + 1)
                cells.insert(at, f"new{number}")
                editor.insert_cell("train.ipynb", at, cells[at], chance.choice(pieces))
            elif kind == "remove" and len(cells) > 4:
                editor.remove_cell("train.ipynb", cells.pop(chance.randrange(len(cells))))
            else:
                cell = chance.choice([each for each in cells if not each.startswith("text")])
                text = editor.text(f"train.ipynb#{cell}")
                start, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
                if text[start:end]:
                    editor.change(f"train.ipynb#{cell}", text[start:end], chance.choice(pieces))
        # No cell may be left for which another text stands in: `check` has none.
        for cell in cells:
            if not cell.startswith("text"):
                text = editor.text(f"train.ipynb#{cell}")
                editor.change(f"train.ipynb#{cell}", text, chance.choice(pieces[:4])) if text else None
        last = len(cells)
        editor.insert_cell("train.ipynb", last, "last", "import jax\njax.tree_map(abs, [])")
        await editor.finds("train.ipynb#last", (2, "SPMD602"))
        editor.save_notebook("train.ipynb")
        expected = [
            (each["cell"], each["location"]["row"], each["code"]) for each in training.check("train.ipynb").json
        ]
        names = {each: number for number, each in enumerate([*cells, "last"], start=1)}

        def shown():
            return sorted(
                (number, row, code)
                for cell, number in names.items()
                for row, code in editor.found(f"train.ipynb#{cell}")
            )

        await editor.until(lambda: shown() == sorted(expected))
        assert expected

    edit(training.root, work)

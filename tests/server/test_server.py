"""`spmdlint server`, as an editor uses it."""

from __future__ import annotations

import asyncio
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from tests.hanging import HANGING, wait_for_death, wait_for_hanging
from tests.server.client import OURS, USUAL, Editor, edit

# pygls asks asyncio what Python 3.14 wants it to ask inspect.
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
OLD_NAME = "import jax\n\nrows = {'b': 1}\nprint(jax.tree_map(abs, rows))\n"


def test_a_finding_comes_and_its_quick_fix_removes_it(project):
    project.write({"a.py": OLD_NAME})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        found = editor.diagnostic("a.py", "SPMD602")
        assert found.severity == types.DiagnosticSeverity.Error
        assert found.source == "spmdlint"
        assert "jax.tree_map does not exist in JAX 0.6.0" in found.message
        assert "Help: " in found.message
        assert found.range == types.Range(types.Position(3, 6), types.Position(3, 18))
        actions = await editor.actions("a.py", found.range)
        fix = actions["Replace it with jax.tree.map (SPMD602)"]
        assert (fix.kind, fix.is_preferred) == (types.CodeActionKind.QuickFix, True)
        editor.apply("a.py", fix)
        await editor.finds("a.py")
        assert editor.text("a.py") == OLD_NAME.replace("jax.tree_map", "jax.tree.map")
        assert (editor.root / "a.py").read_text() == OLD_NAME  # what is typed need not be saved
        editor.save("a.py")
        editor.change("a.py", "jax.tree.map", "jax.tree_map")
        await editor.finds("a.py", (4, "SPMD602"))

    edit(project.root, work)


def test_what_an_edit_changes_near_it_is_shown_before_the_rest(project):
    filler = "import jax\n\n\n" + "".join(f"def f{n}(x):\n    return jax.numpy.sin(x)\n\n\n" for n in range(700))
    project.write({f"package/filler_{n}.py": filler for n in range(4)} | {"package/__init__.py": ""})
    project.write({"package/leader.py": "import jax\n\n\ndef leads():\n    return jax.process_index() == 0\n"})
    calls = (
        "import jax\nfrom jax.experimental import multihost_utils\nfrom package import leader\n\n\n"
        "def report(values):\n    print(jax.tree_map(abs, values))\n    multihost_utils.process_allgather(values)\n"
    )
    project.write({"package/report.py": calls})

    async def work(editor):
        name = "package/report.py"
        editor.open(name)
        await editor.finds(name, (7, "SPMD602"))
        published = len(editor.published)
        editor.change(name, "    multihost_utils", "    if leader.leads():\n        multihost_utils")
        await editor.finds(name, (7, "SPMD602"), (9, "SPMD301"))

        def shown():
            return [each.diagnostics for each in editor.published[published:] if each.uri == editor.uri(name)]

        # They are moved along, then comes what changes near the edit, and then what is found in the whole project.
        await editor.until(lambda: len(shown()) == 3)
        assert [len(each) for each in shown()] == [1, 2, 2]
        assert shown()[1] == shown()[2]
        editor.change(name, "jax.tree_map", "jax.tree.map")
        await editor.finds(name, (9, "SPMD301"))

    edit(project.root, work)


UNNAMED = "import jax\n\nrun = jax.pmap(\n    lambda x: jax.lax.psum(x, 'k'),  # all\n    in_axes=0,\n)\n"
RULE = """\
import libcst as cst
from spmdlint.visitor_rule import VisitorRule


class NoPrint(VisitorRule):
    code = "ACME101"
    name = "no-print"

    def visit_Call(self, node):
        if self.facts(node).callees.includes("builtins.print") == "yes":
            self.report(node, "It prints.", replacement=node.with_changes(func=cst.Name("log")), safe=True)
"""


def test_a_fix_that_changes_the_syntax_tree(project):
    project.write({"a.py": UNNAMED})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD101"))
        actions = await editor.actions("a.py", editor.diagnostic("a.py", "SPMD101").range)
        editor.apply("a.py", actions["Pass axis_name to the pmap (SPMD101; unsafe, needs review)"])
        await editor.finds("a.py")
        assert editor.text("a.py") == UNNAMED.replace("in_axes=0,\n", 'in_axes=0,\n    axis_name="k",\n')

    edit(project.root, work)


def test_a_rule_of_the_project(project):
    project.write({"spmdlint.toml": 'rules = ["own.py"]\n', "own.py": RULE, "a.py": "print(1)\n"})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (1, "ACME101"))
        actions = await editor.actions("a.py", editor.diagnostic("a.py", "ACME101").range)
        editor.apply("a.py", actions["Apply the rule's replacement (ACME101)"])
        await editor.finds("a.py")
        assert editor.text("a.py") == "log(1)\n"

    edit(project.root, work)


def test_a_finding_is_ignored_with_a_reason(project):
    project.write({"a.py": OLD_NAME})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        # While the text does not parse, the comment has no certain place.
        editor.change("a.py", "rows = {'b': 1}", "rows = {'b': 1")
        await editor.finds("a.py", (3, "SPMD901"), (4, "SPMD602"))
        where = editor.diagnostic("a.py", "SPMD602").range
        assert list(await editor.actions("a.py", where)) == ["Replace it with jax.tree.map (SPMD602)"]
        assert await editor.actions("a.py", editor.diagnostic("a.py", "SPMD901").range) == {}
        editor.change("a.py", "rows = {'b': 1", "rows = {'b': 1}")
        await editor.finds("a.py", (4, "SPMD602"))
        actions = await editor.actions("a.py", types.Range(types.Position(3, 0), types.Position(3, 0)))
        editor.apply("a.py", actions["Ignore SPMD602 here, and say why in the comment"])
        await editor.finds("a.py")
        assert editor.text("a.py").endswith("rows))  # spmdlint: ignore[SPMD602] TODO: say why\n")

    edit(project.root, work)


def test_what_is_typed_in_one_file_shows_in_another(project):
    project.write(
        {
            "hosts.py": "import jax\n\n\ndef leads():\n    return jax.process_count() > 1\n",
            "train.py": "from hosts import leads\nfrom jax.experimental import multihost_utils\n\nif leads():\n"
            '    multihost_utils.sync_global_devices("saved")\n',
        }
    )

    async def work(editor):
        editor.open("train.py")
        await editor.finds("train.py")
        editor.open("hosts.py")
        editor.change("hosts.py", "process_count() > 1", "process_index() == 0")
        await editor.finds("train.py", (5, "SPMD301"))
        related = editor.diagnostic("train.py", "SPMD301").related_information
        assert [(Path(each.location.uri).name, each.location.range.start.line) for each in related] == [
            ("train.py", 3),
            ("hosts.py", 4),
            ("train.py", 3),
        ]
        assert related[1].message == "jax.process_index() differs between processes."
        # The places in the other file move with it, at once.
        editor.change("hosts.py", "import jax\n", "import jax\n\nNUMBER = 1\n")
        editor.change("train.py", "from hosts", "\nfrom hosts")
        await editor.finds("train.py", (6, "SPMD301"))
        assert editor.diagnostic("train.py", "SPMD301").related_information[1].location.range.start.line == 6
        # What was typed and is not saved goes with the document.
        editor.close("hosts.py")
        await editor.finds("train.py")

    edit(project.root, work)


def test_findings_stay_at_their_code_while_the_text_does_not_parse(project):
    project.write({"a.py": project.hazard})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (7, "SPMD301"))
        place = editor.diagnostic("a.py", "SPMD301").range
        await editor.looked(lambda: editor.change("a.py", "def main():\n", "import os\n\n\ndef main():\n    x = (\n"))
        moved = editor.shown[editor.uri("a.py")]
        assert moved.version == 2  # before anything was analysed
        assert editor.found("a.py") == [(11, "SPMD301")]
        assert moved.diagnostics[0].range.start.character == place.start.character
        await editor.finds("a.py", (9, "SPMD901"), (11, "SPMD301"))
        trouble = editor.diagnostic("a.py", "SPMD901").message
        assert trouble.startswith("It does not parse: '(' was never closed.\nHelp: The other findings in this file are")
        editor.change("a.py", "    x = (\n", "    x = ()\n")
        await editor.finds("a.py", (11, "SPMD301"))
        # A finding whose code is deleted is gone at once.
        line = '        multihost_utils.sync_global_devices("saved")\n'
        await editor.looked(lambda: editor.change("a.py", line, ""))
        assert editor.found("a.py") == []

    edit(project.root, work)


def test_after_any_edits_the_findings_are_those_of_check(project):
    """Rows are cut, swapped, deleted and inserted, at every pace; then the files are right again, and longer."""
    shutil.copytree(DEMO, project.root, dirs_exist_ok=True)
    names = ["train.py", "trainer/hosts.py", "trainer/losses.py"]
    chance = random.Random(7)

    async def work(editor):
        right = {name: (editor.root / name).read_text() for name in names}
        for name in names:
            editor.open(name)
        for _ in range(30):
            name = chance.choice(names)
            rows = editor.text(name).split("\n")
            at, other = chance.randrange(len(rows)), chance.randrange(len(rows))
            match chance.randrange(4):
                case 0:
                    rows[at:at] = ["", "x = ("][: chance.choice((1, 2))]
                case 1:
                    del rows[at]
                case 2:
                    rows[at] = rows[at][: len(rows[at]) // 2]
                case _:
                    rows[at], rows[other] = rows[other], rows[at]
            editor.change(name, editor.text(name), "\n".join(rows))
            await asyncio.sleep(chance.choice((0, 0, 0.01, 0.5)))
        for name in names:
            editor.change(name, editor.text(name), f"\n# \N{SNAKE}\n{right[name]}")
            editor.save(name)
        expected = project.spawn("check", "--no-cache", "--output-format", "json", ".").found
        assert expected
        await editor.until(lambda: shown(editor) == expected)

    def shown(editor):
        return [(Path(uri).name, row, code) for uri in sorted(editor.shown) for row, code in found(editor, uri)]

    def found(editor, uri):
        return [(each.range.start.line + 1, each.code) for each in editor.shown[uri].diagnostics]

    edit(project.root, work)


def test_a_file_that_never_parsed(project):
    project.write({"a.py": "def f(\n", "b.py": project.hazard})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (1, "SPMD901"))
        await editor.finds("b.py", (7, "SPMD301"))
        editor.change("a.py", "def f(\n", "\ndef g(\n")
        await editor.looked(lambda: editor.change("a.py", "def g(\n", "\ndef g(\n"))
        await editor.finds("a.py", (3, "SPMD901"))
        assert editor.diagnostic("a.py", "SPMD901").message.startswith("This file was not linted.")
        editor.change("a.py", "def g(\n", "import jax\n\njax.tree_map(abs, {})\n")
        await editor.finds("a.py", (5, "SPMD602"))

    edit(project.root, work)


def test_an_analysis_of_an_older_text_is_given_up(project, plugin, tmp_path):
    """One that would take an hour: the server answers beside it, and the next one does not wait."""
    project.write({"a.py": OLD_NAME})
    noted = tmp_path / "process"

    async def hangs():
        return await asyncio.to_thread(wait_for_hanging, noted)

    async def dies(process):
        await asyncio.to_thread(wait_for_death, process)

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        editor.change("a.py", "rows = ", "def hang(): jax.pmap(abs)\n\n\nrows = ")
        first = await hangs()
        where = types.Range(types.Position(6, 0), types.Position(6, 0))
        assert "Replace it with jax.tree.map (SPMD602)" in await editor.actions("a.py", where)
        editor.change("a.py", "hang", "runs")
        await dies(first)
        await editor.finds("a.py", (7, "SPMD602"))
        editor.change("a.py", "print(jax.tree_map", "print(jax.tree.map")
        await editor.finds("a.py")
        # An editor that leaves leaves no analysis behind.
        editor.change("a.py", "runs", "hang")
        last = await hangs()
        assert await editor.stop() == 0
        await dies(last)

    environment = {**plugin(HANGING), "HANGING": str(noted)}

    async def run():
        editor = Editor(project.root, environment=environment)
        await editor.start()
        try:
            await work(editor)
        finally:
            if editor.process.returncode is None:
                editor.process.kill()

    asyncio.run(run())


@pytest.mark.parametrize("way", ["closes the pipe", "ends it", "is killed"])
def test_an_editor_that_vanishes_leaves_nothing_behind(project, plugin, tmp_path, way):
    """Not even an analysis that would take an hour; only if the server is killed, one that runs comes to its end."""
    busy = way != "is killed"
    noted = tmp_path / "process"
    project.write({"a.py": OLD_NAME})

    async def run():
        editor = Editor(project.root, environment={**plugin(HANGING), "HANGING": str(noted)})
        await editor.start()
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        server = editor.process.pid
        workers = [int(word) for word in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
        if busy:
            editor.change("a.py", "rows = ", "def hang(): jax.pmap(abs)\n\n\nrows = ")
            assert workers == [await asyncio.to_thread(wait_for_hanging, noted)]
        if way == "closes the pipe":
            editor.process.stdin.close()
        elif way == "ends it":
            editor.process.terminate()
        else:
            editor.process.kill()
        status = await editor.process.wait()
        assert status == {"closes the pipe": 1, "ends it": 128 + signal.SIGTERM, "is killed": -signal.SIGKILL}[way]
        wait_for_death(*workers)

    asyncio.run(run())


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-32"])
def test_columns_are_counted_as_the_editor_counts(project, encoding):
    """Before the finding are one character of two units of UTF-16, and one that is two bytes in UTF-8."""
    line = "print('\N{SNAKE}\N{LATIN SMALL LETTER E WITH ACUTE}', jax.tree_map(abs, {}))"
    kinds = "def leads():\n    return '\N{SNAKE}' and jax.process_index() == 0\n"
    project.write({"a.py": f"import jax\n{line}\n", "b.py": f"import jax\n\n\n{kinds}"})
    project.write(
        {
            "c.py": "from b import leads\nfrom jax.experimental import multihost_utils\n\nif leads():\n"
            "    multihost_utils.sync_global_devices('a')\n"
        }
    )
    characters = {None: 13, "utf-8": 16, "utf-32": 12}[encoding]
    general = None if encoding is None else types.GeneralClientCapabilities(position_encodings=[encoding])

    async def work(editor):
        assert editor.told.capabilities.position_encoding == (encoding or "utf-16")
        editor.open("a.py")
        await editor.finds("a.py", (2, "SPMD602"))
        found = editor.diagnostic("a.py", "SPMD602").range
        assert (found.start.character, found.end.character) == (characters, characters + 12)
        fix = (await editor.actions("a.py", found))["Replace it with jax.tree.map (SPMD602)"]
        (edits,) = fix.edit.document_changes
        assert all(characters <= each.range.start.character <= characters + 12 for each in edits.edits)
        # Also in a file that is not open.
        await editor.finds("c.py", (5, "SPMD301"))
        there = editor.diagnostic("c.py", "SPMD301").related_information[1].location
        text = "    return '\N{SNAKE}' and "
        units = {None: "utf-16-le", "utf-8": "utf-8", "utf-32": "utf-32-le"}[encoding]
        width = {None: 2, "utf-8": 1, "utf-32": 4}[encoding]
        assert there.uri == editor.uri("b.py")
        assert there.range.start == types.Position(4, len(text.encode(units)) // width)

    edit(
        project.root,
        work,
        types.ClientCapabilities(text_document=USUAL.text_document, workspace=USUAL.workspace, general=general),
    )


def test_an_unsafe_fix_is_offered_as_such_and_only_alone(project):
    spelled = "import jax\n\nprint(jax.pmap(lambda x: jax.lax.psum(x, 'dat'), axis_name='data')(1))\n"
    project.write({"a.py": f"{spelled}rows = jax.tree_map(abs, {{}})\nmore = jax.tree_map(abs, {{}})\n"})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (3, "SPMD101"), (4, "SPMD602"), (5, "SPMD602"))
        everything = types.Range(types.Position(0, 0), types.Position(5, 0))
        actions = await editor.actions("a.py", types.Range(types.Position(2, 0), types.Position(2, 0)))
        unsafe = next(each for title, each in actions.items() if title.endswith("(SPMD101; unsafe, needs review)"))
        assert not unsafe.is_preferred
        fixes = await editor.actions("a.py", everything, [types.CodeActionKind.SourceFixAll])
        editor.apply("a.py", fixes["Apply all safe fixes of spmdlint"])
        await editor.finds("a.py", (3, "SPMD101"))
        assert await editor.actions("a.py", everything, ["source.fixAll.spmdlint"]) == {}
        assert await editor.actions("a.py", everything, ["refactor"]) == {}
        editor.apply("a.py", unsafe_again(await editor.actions("a.py", everything, ["quickfix"])))
        await editor.finds("a.py")

    def unsafe_again(actions):
        return next(each for title, each in actions.items() if "unsafe" in title)

    edit(project.root, work)


def test_hovering_explains_the_line(project):
    project.write({"a.py": project.hazard})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (7, "SPMD301"))
        text = await editor.hover("a.py", 7)
        assert text.startswith("```text\nin main: it runs on the host")
        assert "if jax.process_index() == 0 (a.py:6): its content varies (identity)" in text
        assert "makes sync_global_devices (strong)" in text
        assert await editor.hover("a.py", 3) == ""
        # It is about the text in the editor.
        editor.change("a.py", "import jax\n", "import jax\n\n")
        assert "(a.py:7): its content varies" in await editor.hover("a.py", 8)
        assert await editor.hover("a.py", 100) == ""

    edit(project.root, work)


def test_the_first_run_shows_its_progress(project):
    project.write({f"m{number}.py": project.hazard for number in range(20)})

    async def work(editor):
        editor.open("m0.py")
        await editor.finds("m0.py", (7, "SPMD301"))
        await editor.until(lambda: bool(editor.progress) and editor.progress[-1]["kind"] == "end")
        kinds = [each["kind"] for each in editor.progress]
        assert kinds.count("begin") == kinds.count("end") == 1
        assert editor.progress[0]["title"] == "spmdlint: analysing project"
        editor.change("m0.py", "import jax\n", "import jax\n\n")
        await editor.finds("m0.py", (8, "SPMD301"))
        editor.change("m0.py", "process_index", "process_count")
        await editor.finds("m0.py")
        assert [each["kind"] for each in editor.progress] == kinds  # later runs are quick, or at least expected

    edit(project.root, work)


def test_the_configuration_is_read_again(project):
    project.write({"a.py": OLD_NAME})

    async def work(editor):
        await editor.until(lambda: bool(editor.registered))
        (registered,) = editor.registered
        assert registered.method == "workspace/didChangeWatchedFiles"
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        editor.write("spmdlint.toml", 'ignore = ["SPMD602"]\n')
        await editor.finds("a.py")
        editor.write("spmdlint.toml", "[severity]\nSPMD602 = 'info'\n")
        await editor.finds("a.py", (4, "SPMD602"))
        assert editor.diagnostic("a.py", "SPMD602").severity == types.DiagnosticSeverity.Information
        # A wrong one is told once, and the findings stay.
        editor.write("spmdlint.toml", "selct = []\n")
        await editor.until(lambda: bool(editor.messages))
        editor.change("a.py", "import jax\n", "import jax\n\n")
        await editor.finds("a.py", (5, "SPMD602"))
        editor.write("spmdlint.toml", "x = [\n")
        await editor.until(lambda: len(editor.messages) > 1)
        assert "sets 'selct', which is not a setting of spmdlint. Did you mean 'select'?" in editor.messages[0]
        assert "is not valid TOML" in editor.messages[1]
        editor.write("spmdlint.toml", 'select = ["SPMD1"]\n')
        await editor.finds("a.py")

    edit(project.root, work)


def test_a_configuration_in_a_folder_makes_it_a_project(project):
    project.write({"part/a.py": OLD_NAME, "b.py": OLD_NAME, "part/c.py": OLD_NAME})

    async def work(editor):
        editor.open("b.py")
        editor.open("part/a.py")
        await editor.finds("part/c.py", (4, "SPMD602"))
        editor.write("part/spmdlint.toml", 'select = ["SPMD1"]\n')
        await editor.finds("part/a.py")
        await editor.finds("part/c.py")
        # The project around it does not show what it finds in there.
        await editor.looked(lambda: editor.change("b.py", "import jax\n", "import jax\n\n"))
        await editor.finds("b.py", (5, "SPMD602"))
        editor.change("b.py", "print(jax.tree_map", "print(jax.tree.map")
        await editor.finds("b.py")
        editor.change("b.py", "print(jax.tree.map", "print(jax.tree_map")
        await editor.finds("b.py", (5, "SPMD602"))
        assert (editor.found("part/a.py"), editor.found("part/c.py")) == ([], [])
        editor.close("part/a.py")
        await editor.finds("part/c.py", (4, "SPMD602"))
        editor.open("part/a.py")
        await editor.finds("part/c.py")
        editor.write("spmdlint.toml", 'select = ["SPMD1"]\n')
        await editor.finds("b.py")
        (editor.root / "part/spmdlint.toml").unlink()
        editor.notice("part/spmdlint.toml", types.FileChangeType.Deleted)
        editor.write("spmdlint.toml", "")
        await editor.finds("part/a.py", (4, "SPMD602"))

    edit(project.root, work)


def test_files_that_come_and_go(project):
    project.write({"a.py": "from b import leads\n" + project.hazard.replace("jax.process_index() == 0", "leads()")})
    b = "import jax\n\n\ndef leads():\n    return jax.process_index() == 0\n"

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py")
        editor.open("b.py", b)  # it is new, and nowhere on disk
        await editor.finds("a.py", (8, "SPMD301"))
        editor.close("b.py")
        await editor.finds("a.py")
        editor.write("b.py", b)
        await editor.finds("a.py", (8, "SPMD301"))
        (editor.root / "b.py").unlink()
        editor.notice("b.py", types.FileChangeType.Deleted)
        await editor.finds("a.py")
        # A document stays when its file is gone.
        editor.change("a.py", "leads()", "jax.process_index()")
        await editor.finds("a.py", (8, "SPMD301"))
        (editor.root / "a.py").unlink()
        editor.notice("a.py", types.FileChangeType.Deleted)
        editor.change("a.py", "import jax\n", "import jax\n\n")
        await editor.finds("a.py", (9, "SPMD301"))
        editor.close("a.py")
        await editor.finds("a.py")

    edit(project.root, work)


def test_what_is_not_linted(project):
    """An excluded file, a file in an environment, and whatever is no Python file on disk."""
    project.write({"spmdlint.toml": 'exclude = ["old"]\n'})
    project.write({"old/a.py": OLD_NAME, ".venv/lib/b.py": OLD_NAME, "c.ipynb": "{}", "d.py": OLD_NAME})

    async def work(editor):
        for name in ("old/a.py", ".venv/lib/b.py", "c.ipynb"):
            editor.open(name)
        cell = types.TextDocumentItem("vscode-notebook-cell:/x.ipynb#1", "python", 1, OLD_NAME)
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(cell))
        editor.open("d.py")
        await editor.finds("d.py", (4, "SPMD602"))
        await editor.finds("old/a.py")
        await editor.finds(".venv/lib/b.py")
        await editor.finds("c.ipynb", (1, "SPMD901"))  # what an editor without notebooks has open is the file
        assert {uri for uri, shown in editor.shown.items() if shown.diagnostics} == {
            editor.uri("c.ipynb"),
            editor.uri("d.py"),
        }
        cell_of = types.TextDocumentIdentifier(cell.uri)
        anywhere = types.Range(types.Position(3, 0), types.Position(3, 0))
        context = types.CodeActionContext([])
        asked = types.CodeActionParams(text_document=cell_of, range=anywhere, context=context)
        assert not await editor.client.text_document_code_action_async(asked)

    edit(project.root, work)


def test_a_folder_that_is_no_project(tmp_path):
    """Only what is open is shown: the other files may be anybody's. Names and calls of neighbours are known."""
    (tmp_path / "a.py").write_text(f"from b import NAME\n{OLD_NAME}")
    (tmp_path / "b.py").write_text(f"{OLD_NAME}NAME = 1\n")

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (5, "SPMD602"))
        assert editor.uri("b.py") not in editor.shown
        editor.open("b.py")
        await editor.finds("b.py", (4, "SPMD602"))
        editor.close("b.py")
        await editor.finds("b.py")
        assert not (tmp_path / ".spmdlint_cache").exists()

    edit(tmp_path, work)


def test_a_file_that_is_not_utf_8(project):
    project.write({"a.py": b"import jax\n\nname = '\xe9'\n"})

    async def work(editor):
        editor.open("a.py")  # the editor shows it somehow
        await editor.finds("a.py", (3, "SPMD901"))
        assert "It is not valid utf-8" in editor.diagnostic("a.py", "SPMD901").message
        editor.change("a.py", "name = '\ufffd'", "name = jax.tree_map(abs, {})")
        await editor.finds("a.py", (3, "SPMD602"))
        editor.save("a.py")
        editor.change("a.py", "import jax\n", "import jax\n\n")
        await editor.finds("a.py", (4, "SPMD602"))

    edit(project.root, work)


def test_known_findings_are_not_shown(project):
    project.write({"a.py": OLD_NAME, "spmdlint.toml": 'baseline = "known.json"\n'})
    assert project.run("check", "--write-baseline").status == 0

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py")
        editor.change("a.py", "rows = {'b': 1}\n", "rows = {'b': 1}\nrows = jax.tree_map(abs, rows)\n")
        await editor.finds("a.py", (4, "SPMD602"))

    edit(project.root, work)


def test_an_editor_that_can_do_little(project):
    """It neither shows related places nor takes edits of versions, and has no Markdown."""
    project.write({"a.py": f"{project.hazard}jax.tree_map(abs, {{}})\n"})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (7, "SPMD301"), (11, "SPMD602"))
        found = editor.diagnostic("a.py", "SPMD301")
        assert found.related_information is None
        assert "\na.py:6: " in found.message
        fix = (await editor.actions("a.py", editor.diagnostic("a.py", "SPMD602").range)).popitem()[1]
        assert list(fix.edit.changes) == [editor.uri("a.py")]
        assert (await editor.hover("a.py", 7)).startswith("in main")
        assert not editor.registered
        assert not editor.progress
        (editor.root / "spmdlint.toml").write_text('ignore = ["SPMD602"]\n')
        editor.save("a.py")  # without watched files, a configuration is read when a file is saved
        await editor.finds("a.py", (7, "SPMD301"))

    edit(project.root, work, types.ClientCapabilities())


def test_the_server_survives_nonsense(project):
    project.write({"a.py": OLD_NAME})

    async def work(editor):
        def send(body: bytes) -> None:
            editor.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

        send(b"{ not json")
        send(b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 7}}')
        send(b'{"jsonrpc": "2.0", "method": "acme/unknown", "params": {}}')
        send(b'{"jsonrpc": "2.0", "id": "x", "method": "textDocument/hover", "params": []}')
        send(b"[1, 2]")
        editor.client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(editor.uri("never_opened.py")))
        )
        editor.open("a.py", OLD_NAME + "# half a pair: \ud83d\n")
        await editor.finds("a.py", (4, "SPMD602"))
        editor.messages.clear()  # it may complain of what it was sent

    edit(project.root, work)


def test_a_worker_that_dies_is_replaced(project):
    project.write({"a.py": OLD_NAME})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        server = editor.process.pid
        (worker,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        os.kill(int(worker), signal.SIGKILL)
        editor.change("a.py", "import jax\n", "import jax\n\n")
        editor.change("a.py", "print(jax.tree_map", "print(jax.tree.map")
        await editor.finds("a.py")

    edit(project.root, work, program=OURS)


def test_without_the_library_a_sentence_says_what_to_install(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygls", None)
    outcome = project.run("server")
    assert outcome.status == 2
    assert outcome.err == (
        "spmdlint: The language server needs pygls, which is not installed: pip install 'spmdlint[server]', "
        "or '.[server]' in a clone of spmdlint.\n"
    )


def test_in_a_terminal_a_sentence_says_what_it_is_for(project):
    terminal, there = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "spmdlint", "server"], stdin=there, capture_output=True, text=True, check=False
    )
    os.close(there)
    os.close(terminal)
    assert done.returncode == 2
    assert "this is a terminal. Editors start it themselves; 'spmdlint check --watch' shows" in done.stderr

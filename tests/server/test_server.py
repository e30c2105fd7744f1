"""`spmdlint server`, as an editor uses it."""

from __future__ import annotations

from tests.server.client import edit


def test_a_finding_comes_and_its_quick_fix_removes_it(project):
    project.write({"a.py": "import jax\n\nrows = {'b': 1}\nprint(jax.tree_map(abs, rows))\n"})

    async def work(editor):
        editor.open("a.py")
        await editor.finds("a.py", (4, "SPMD602"))
        found = editor.diagnostic("a.py", "SPMD602")
        actions = await editor.actions("a.py", found.range)
        print(list(actions))
        fix = next(each for title, each in actions.items() if "SPMD602" in title and each.is_preferred)
        editor.apply("a.py", fix)
        await editor.finds("a.py")
        assert "jax.tree.map(abs, rows)" in editor.text("a.py")
        assert "tree_map" in (editor.root / "a.py").read_text()

    edit(project.root, work)

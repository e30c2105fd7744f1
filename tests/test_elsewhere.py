"""A line somewhere else in a project does not silence findings that it has nothing to do with."""

from __future__ import annotations

import pytest

PROGRAM = {
    "pkg/__init__.py": "",
    "pkg/manager.py": """\
from jax.experimental import multihost_utils


class Manager:
    def __init__(self, folder, wait=True):
        self.folder = folder
        self.wait = wait
        multihost_utils.sync_global_devices("made")

    def meet(self):
        if self.wait:
            multihost_utils.sync_global_devices(self.folder)
""",
    "train.py": """\
import jax
from pkg.manager import Manager


def main():
    manager = Manager("out")
    if jax.process_index() == 0:
        Manager("own")
    if jax.process_index() == 0:
        manager.meet()


main()
""",
}
DUE = [("train.py", 8, "SPMD301"), ("train.py", 10, "SPMD301")]

OTHER = "from pkg.manager import Manager\n\n\nclass Other:\n    pass\n\n\ndef new(self, *args):\n    pass\n\n\n"

HARMLESS = {
    "setattr on another class": {
        "pkg/other.py": OTHER + 'setattr(Other, "__init__", new)\nsetattr(Other, "wait", 1)\n'
    },
    "attributes of another class": {"pkg/other.py": OTHER + "Other.__init__ = new\nOther.meet = new\nOther.wait = 1\n"},
    "attributes of another object": {"pkg/other.py": OTHER + "other = Other()\nother.meet = new\nother.wait = False\n"},
    "a method of an object of which nothing is known": {
        "pkg/other.py": OTHER + 'def freeze(first, cls):\n    setattr(cls, "__init__", new)\n    cls.meet = new\n'
    },
    "a program that has nothing to do with this one": {"b.py": "def f(x, y):\n    y.wait = False\n"},
    "a test": {
        "tests/test_a.py": "from pkg.manager import Manager\n\n\ndef test(x, y):\n    Manager.__init__ = print\n"
        "    Manager.meet = print\n    y.wait = False\n    setattr(Manager, 'wait', False)\n"
    },
    "a test's fixture": {"conftest.py": "from pkg import manager\n\nmanager.Manager.meet = print\n"},
    "an import for an old Python": {
        "pkg/__init__.py": "import sys\n\nfrom pkg.manager import Manager\n\n"
        "if sys.version_info < (3, 8):\n    from old import Manager\n",
        "train.py": PROGRAM["train.py"].replace("from pkg.manager", "from pkg"),
    },
    "an import in place of one that does not fail": {
        "train.py": PROGRAM["train.py"].replace(
            "from pkg.manager import Manager",
            "try: from pkg.manager import Manager\nexcept ImportError: from pkg.other import Manager",
        )
    },
    "an import for type checkers": {
        "train.py": PROGRAM["train.py"].replace(
            "\n\n\ndef main",
            "\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING: from pkg.other import Manager\n\n\ndef main",
        )
    },
}


@pytest.mark.parametrize("case", HARMLESS)
def test_a_line_elsewhere_silences_nothing(project, case):
    project.write(PROGRAM)
    assert project.check().found == DUE
    project.write(HARMLESS[case])
    more = len((project.root / "train.py").read_text().splitlines()) - len(PROGRAM["train.py"].splitlines())
    assert project.check().found == [(name, row + more, code) for name, row, code in DUE]


MEANT = {
    "the class itself": (OTHER + "Manager.meet = new\n", [8]),
    "the class itself, by name": (OTHER + 'setattr(Manager, "meet", new)\n', [8]),
    "a base": (OTHER + "class Base:\n    pass\n\n\nBase.meet = new\n", [8, 10]),
    "an object of the class": (OTHER + "manager = Manager('x')\nmanager.meet = new\n", [8]),
}


@pytest.mark.parametrize("case", MEANT)
def test_a_line_about_the_class_counts(project, case):
    text, rows = MEANT[case]
    project.write({**PROGRAM, "pkg/other.py": text})
    assert project.check().found == [("train.py", row, "SPMD301") for row in rows]


@pytest.mark.parametrize(("base", "count"), [("x", 2), ("Other()", 1)])
def test_a_field_may_be_set_on_an_object_of_which_nothing_is_known(project, base, count):
    train = PROGRAM["train.py"].replace('Manager("out")', 'Manager("out", wait=False)')
    other = OTHER + f"def change(first, x):\n    {base}.wait = True\n"
    project.write({**PROGRAM, "train.py": train})
    assert project.check().found == DUE[:1]
    project.write({"pkg/other.py": other})
    assert len(project.check().found) == count


def test_what_a_test_sets_counts_for_tests(project):
    text = """\
import jax
from pkg.manager import Manager


def test_meeting(monkeypatch):
    manager = Manager("out")
    {}
    if jax.process_index() == 0:
        manager.meet()
"""
    project.write({**PROGRAM, "tests/test_a.py": text.format("pass")})
    assert project.check().found == [("test_a.py", 9, "SPMD301"), *DUE]
    project.write({"tests/test_a.py": text.format("manager.meet = print")})
    assert project.check().found == DUE


@pytest.mark.parametrize(
    ("test", "count"),
    [("< (3, 10)", 0), (">= (3, 10)", 1), ("< (3,)", 0), (">= (4, 0)", 0), ("< (3, 12)", 1), (">= (3, 12)", 1)],
)
def test_a_version_of_python_decides_only_where_all_agree(project, test, count):
    text = f"""\
import sys

import jax
from jax.experimental import multihost_utils


def save():
    if sys.version_info {test}:
        multihost_utils.sync_global_devices("saved")


if jax.process_index() == 0:
    save()
"""
    project.write({"a.py": text})
    assert len(project.check().found) == count


@pytest.mark.parametrize(
    "body",
    [
        "from pkg.manager import Missing as Manager",  # which that file does not have
        "from elsewhere import Manager",
        "import pkg\n    pkg.prepare()\n    from pkg.manager import Manager",
    ],
)
def test_an_import_that_may_fail_has_an_alternative(project, body):
    guarded = f"try:\n    {body}\nexcept ImportError:\n    from pkg.other import Manager"
    train = PROGRAM["train.py"].replace("from pkg.manager import Manager", guarded)
    other = "class Manager:\n    def __init__(self, folder): pass\n    def meet(self): pass\n"
    project.write({**PROGRAM, "train.py": train, "pkg/other.py": other})
    assert len(project.check().found) < len(DUE)

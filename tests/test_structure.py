"""What is counted in the code of the analysis, on small trees."""

from __future__ import annotations

import functools
import gc
import importlib.util
import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
HEAD = "from spmdlint.program import summary as s\n"


@pytest.fixture(scope="module")
def structure():
    spec = importlib.util.spec_from_file_location("structure", ROOT / "benchmarks" / "structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def verdicts(structure, tmp_path):
    """By function: which list it is in."""

    def found(code: str, ir: str = "", **others: str) -> dict[str, str]:
        folder = tmp_path / "tree"
        folder.mkdir()
        (folder / "code.py").write_text(code)
        for name, text in others.items():
            (folder / f"{name}.py").write_text(text)
        (tmp_path / "nodes.py").write_text(ir)
        counts = structure.examine(folder, [tmp_path / "nodes.py"] if ir else [])
        return {place.text: kind for kind in ("recognisers", "dispatches", "looks") for place in counts.found[kind]}

    return found


RECOGNISERS = {
    "of the callee": """
        operation = code.operations[number]
        if not isinstance(operation, s.Call):
            return False
        return isinstance(code.operations[operation.function], s.Attribute)
    """,
    "of an argument": """
        call = code.operations[number]
        return isinstance(call, s.Call) and any(
            isinstance(code.operations[each.value], s.Const) for each in call.arguments
        )
    """,
    "through names and a function": """
        operations = code.operations
        store = operations[number]
        assert isinstance(store, s.Store)
        stored = store.value
        root = resolved(code, stored)
        made = operations[root]
        return isinstance(made, (s.Display, s.Collected))
    """,
    "along a chain": """
        operation = code.operations[number]
        while isinstance(operation, s.Item):
            operation = code.operations[operation.value]
        return operation
    """,
    "by its type": """
        binary = code.operations[number]
        return type(binary) is s.Binary and type(code.operations[binary.left]) is s.Const
    """,
    "by a table": """
        names = {s.Load: 1, s.Attribute: 2}
        binary = code.operations[number]
        return names.get(type(code.operations[binary.left]))
    """,
    "by match": """
        match code.operations[number]:
            case s.Subscript() as subscript:
                match code.operations[subscript.index]:
                    case s.Slice():
                        return True
        return False
    """,
    "by match, with the operand captured": """
        match code.operations[number]:
            case s.Subscript(base=base):
                return isinstance(code.operations[base], s.Load)
        return False
    """,
    "with a walrus": """
        call = code.operations[number]
        if isinstance(call, s.Call) and isinstance(method := code.operations[call.function], s.Attribute):
            return method.name
    """,
    "in a loop over a kind": """
        for _, call in code.of_kind(s.Call):
            if isinstance(code.operations[call.function], s.Load):
                return True
    """,
    "in a function inside": """
        def inner(other: s.Attribute):
            return isinstance(code.operations[other.base], s.Load)
        return [inner(o) for o in code.operations if isinstance(o, s.Attribute)]
    """,
    "of any operand": """
        operation = code.operations[number]
        return any(isinstance(code.operations[n], s.Call) for n in operands(operation))
    """,
    "what was put into a list": """
        waiting = [number]
        while waiting:
            operation = code.operations[waiting.pop()]
            if isinstance(operation, s.Binary):
                waiting.append(operation.left)
    """,
}
OTHERS = {
    ("looks", "one kind"): """
        return isinstance(code.operations[number], s.Call)
    """,
    ("looks", "by name, not by operand"): """
        load = code.operations[number]
        if not isinstance(load, s.Load):
            return []
        return [n for n in code.stores[load.name] if isinstance(code.operations[n], s.Store)]
    """,
    ("looks", "variables of comprehensions have their own meaning"): """
        binary = code.operations[number]
        sides = [value(n) for n in (binary.left, binary.right)]
        return sides and any(isinstance(code.operations[n], s.Store) for n in code.stores["x"])
    """,
    ("looks", "what the operand's value is"): """
        call = code.operations[number]
        return isinstance(call, s.Call) and isinstance(value(call.function), External)
    """,
    ("dispatches", "one operation at hand"): """
        operation = code.operations[number]
        if isinstance(operation, s.Call):
            return value(operation.function)
        if isinstance(operation, (s.Load, s.Store)):
            return value(operation.value)
        return None
    """,
    ("dispatches", "every operation of a function"): """
        found = []
        for operation in code.operations:
            match operation:
                case s.Call() | s.Attribute():
                    found.append(1)
                case s.Subscript(base=base):
                    found.append(base)
        return found
    """,
    ("dispatches", "a collection of kinds"): """
        return isinstance(code.operations[number], KINDS)
    """,
    ("", "no kind"): """
        return code.operations[number].value
    """,
    ("", "not a kind"): """
        return isinstance(code.operations[number], External)
    """,
}


def function(body: str) -> str:
    return f"{HEAD}KINDS = (s.Call, s.Load, s.Store)\ndef asked(code, number: int):{body}"


@pytest.mark.parametrize("body", RECOGNISERS.values(), ids=RECOGNISERS)
def test_recognisers(verdicts, body):
    assert verdicts(function(body)) == {"asked": "recognisers"}


@pytest.mark.parametrize(("kind", "body"), [(key[0], body) for key, body in OTHERS.items()], ids=[k[1] for k in OTHERS])
def test_what_is_no_recogniser(verdicts, kind, body):
    assert verdicts(function(body)) == ({"asked": kind} if kind else {})


def test_an_operation_that_is_passed_is_at_hand_and_two_are_siblings(verdicts):
    code = f"""{HEAD}
def of_index(code, operation: s.Subscript):
    return isinstance(code.operations[operation.index], s.Slice)

def step(operation: "s.Operation"):
    return isinstance(operation, s.Call)

def both(first: s.Operation, second: s.Operation):
    return isinstance(first, s.Binary) and isinstance(second, s.Binary)

def ends(code, lower: int, upper: int):
    end = code.operations[resolved(upper)]
    return isinstance(end, s.Binary) and isinstance(code.operations[lower], s.Const)

def one_twice(code, number: int, operation: s.Operation):
    return isinstance(code.operations[number], s.Load) or isinstance(operation, s.Load)
"""
    found = verdicts(code)
    assert found == {
        "of_index": "recognisers",
        "step": "looks",
        "both": "recognisers",
        "ends": "recognisers",
        "one_twice": "looks",
    }


def test_kinds_under_other_names(verdicts):
    code = """
from spmdlint.program.summary import Call as C
from tree.shapes import NAMING, Leave as Own
import spmdlint.program.summary as ir

def called(code, number: int):
    operation = code.operations[number]
    return isinstance(operation, C) and isinstance(code.operations[operation.function], NAMING)

def left(parts):
    return [part for part in parts if isinstance(part, Own)]

def loaded(code, number: int):
    return isinstance(code.operations[number], ir.Load)
"""
    shapes = f"{HEAD}NAMING = frozenset((s.Load, s.Attribute))\nclass Leave:\n    value: int\n"
    assert verdicts(code, shapes=shapes) == {"called": "recognisers", "loaded": "looks"}


def test_another_representation(verdicts):
    ir = """
class Value:
    pass

class Phi(Value):
    inputs: tuple[Value, ...]

class Add(Value):
    left: Value
    right: Value
"""
    code = """
from nodes import Add, Phi, Value

def doubled(value: Value):
    return isinstance(value, Add) and isinstance(value.left, Phi)

def merged(value: Value):
    return isinstance(value, Phi)
"""
    assert verdicts(code, ir=ir) == {"doubled": "recognisers", "merged": "looks"}


def test_a_function_counts_with_its_lines_and_those_inside_it(structure, tmp_path):
    (tmp_path / "a.py").write_text(
        f"{HEAD}def f(code):\n    def g():\n        pass\n    return 1\n\nclass C:\n    def m(self):\n        pass\n"
    )
    counts = structure.examine(tmp_path)
    assert (counts.lines, counts.functions) == (9, 2)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('x = "jax.lax.psum"', ["jax.lax.psum"]),
        ('x = name.startswith("numpy.")', ["numpy."]),
        ('x = frozenset(f"builtins.{n}" for n in y)', ["builtins."]),
        ('x = "jax.numpy.sum  optax.chain words".split()', ["jax.numpy.sum", "optax.chain"]),
        ("import jax\nx = jax.lax.psum(1)", ["jax.lax.psum"]),
        ('"""jax.lax.psum"""\nx: int = 1\n"""numpy.sum"""', []),
        ("import os\nx = os.path.join(y)", []),
        ("def f(jax):\n    return jax.lax", []),
        ('x = "file.name is jax"', []),
    ],
)
def test_library_names(structure, tmp_path, text, names):
    (tmp_path / "a.py").write_text(text)
    assert [place.text for place in structure.examine(tmp_path).found["names"]] == names


def test_rule_codes_are_told_from_mentions(structure, tmp_path):
    (tmp_path / "a.py").write_text('"""About SPMD301."""\nx = "SPMD302"  # not SPMD303\nclass SPMD304: pass\n')
    counts = structure.examine(tmp_path)
    assert sorted(place.text for place in counts.found["codes"]) == ["SPMD302", "SPMD304"]
    assert counts.mentions == 2


def test_name_lists(structure, tmp_path):
    (tmp_path / "a.py").write_text(
        'a = ("psum", "pmean")\nb = "x y z".split()\nc = {"left": 1, "right": 2}\n'
        'd = ("+", "-")\ne = ("one",)\nf: Literal["a", "b"] = "a"\n__slots__ = ("g", "h")\ni = ["a", j]\n'
    )
    counts = structure.examine(tmp_path)
    assert [place.text for place in counts.found["lists"]] == ["psum pmean", "x y z", "left right"]
    assert counts.known == 1


def test_tuned_numbers(structure, tmp_path):
    (tmp_path / "a.py").write_text(
        "DEPTH = 4\n_LINKS = range(64)\nclass C:\n    LIMIT: int = 2 * 1024\nNONE = -1\nON, OFF = 2, 3\n"
        "small = 5\nFLAG = True\nNAMES = 'x'\n"
    )
    numbers = [place.text for place in structure.examine(tmp_path).found["numbers"]]
    assert numbers == ["DEPTH = 4", "_LINKS = range(64)", "LIMIT = 2 * 1024"]


def test_the_command(structure, tmp_path, capsys):
    (tmp_path / "a.py").write_text(function(RECOGNISERS["along a chain"]) + "\n")
    assert structure.main([str(tmp_path)]) == 0
    assert re.search(r"\| 1 \| 8 \| 1 \| 1 \| 5 \| 0 \| 0 \|", capsys.readouterr().out)
    assert structure.main([str(tmp_path), "--list", "recognisers"]) == 0
    assert "a.py:3: asked" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        structure.main([str(tmp_path / "missing")])


@pytest.fixture(scope="module")
def counted(structure):
    """What is counted in a package, once."""

    @functools.cache
    def count(package):
        gc.disable()  # trees are no garbage, and looking for some takes a third of the time
        try:
            return structure.examine(ROOT / "spmdlint" / package)
        finally:
            gc.enable()

    return count


def test_the_analysis_itself_can_be_read(counted):
    counts = counted("analysis")
    assert counts.functions > 1000
    assert counts.number("recognisers") < counts.functions
    assert counts.number("codes") == 0


PACKAGES = tomllib.loads((ROOT / "benchmarks" / "structure.toml").read_text(encoding="utf-8"))


def test_the_ratchet_holds_every_package(structure):
    assert set(PACKAGES) == set(structure.PACKAGES)
    folders = {path.parent.name for path in (ROOT / "spmdlint").glob("*/__init__.py") if not path.parent.is_symlink()}
    assert folders == set(structure.PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_does_not_grow(structure, counted, package):
    """Whoever lets a figure fall writes it down, so that it cannot rise again: see CONTRIBUTING, "What grows"."""
    today = structure.held(counted(package))
    assert {
        key: (figure, PACKAGES[package][key]) for key, figure in today.items() if figure > PACKAGES[package][key]
    } == {}
    below = {key for key, figure in today.items() if figure < 0.98 * PACKAGES[package][key] - 1}
    assert not below, f"{sorted(below)} fell: python benchmarks/structure.py --write"

"""The second engine in shadow: what it finds, that the order of visits does not matter, what it may name."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from spmdlint.hazards.strata import Strata
from spmdlint.interpreter import deep
from spmdlint.rule import load_rules

REPOSITORY = Path(__file__).parents[1]


def helper():
    """The module of the folder of the same name."""
    spec = importlib.util.spec_from_file_location("shadow_fixtures", REPOSITORY / "tests" / "shadow" / "fixtures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_differences_from_what_is_due_are_those_that_are_known():
    shadow = helper()
    judged = shadow.judge()
    assert judged.due > 150
    assert list(judged.differences) == shadow.EXPECTED.read_text().splitlines()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """All fixtures of the rules in shadow that are single files, as one project."""
    shadow = helper()
    root = tmp_path_factory.mktemp("project").resolve()
    (root / "spmdlint.toml").write_text("")
    for case in shadow.cases():
        if case.suffix == ".py":
            shutil.copy(case, root)
    return shadow.program_of(root)


def test_the_order_of_visits_does_not_matter(program):
    with deep():
        usual = Strata(program.project, program.knowledge)
        found = set(usual.divergences())
        assert len(found) > 100
        for seed in range(3):
            other = Strata(program.project, program.knowledge, shuffled=seed)
            assert set(other.divergences()) == found
            assert dict(other.evaluation.cells.contents()) == dict(usual.evaluation.cells.contents())


def test_each_finding_has_a_reason_that_leads_to_a_source(program):
    with deep():
        strata = Strata(program.project, program.knowledge)
        reasons = [strata.reason(found) for found in strata.divergences()]
    told = [reason.source.text for reason in reasons]
    assert all(text[0].isalpha() or text[0] == "." for text in told)
    assert sum("differs between processes" in text and not text.startswith("this") for text in told) > 0.8 * len(told)


LIBRARIES = ("jax", "numpy", "flax", "orbax", "haiku", "optax", "tensorflow", "torch", "mpi4jax", "mpi4py", "functools")


@pytest.mark.parametrize("package", ["core", "domains"])
def test_no_library_and_no_rule_is_named(package):
    codes = {rule.code for rule in load_rules()}
    for path in (REPOSITORY / "spmdlint" / package).glob("*.py"):
        text = path.read_text()
        assert not [code for code in codes if code in text], path
        assert not re.findall(rf"[\"'](?:{'|'.join(LIBRARIES)})(?:\.[a-z_.A-Z]*)?[\"']", text), path


BEGINNING = """\
import jax
from jax.experimental import multihost_utils
def meet():
    multihost_utils.sync_global_devices("save")
"""


def programs(kind):
    """The small programs of a kind, by name: see the head of the file."""
    text = (REPOSITORY / "tests" / "shadow" / "programs.txt").read_text()
    parts = re.split(r"^# (bad|even): (.+)$", text, flags=re.MULTILINE)[1:]
    return {name: body for each, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True) if each == kind}


BAD, EVEN = programs("bad"), programs("even")


def divergences(root, text):
    root = root.resolve()
    (root / "spmdlint.toml").write_text("")
    hosts = "import jax\nCHIEF = jax.process_index() == 0\nNUMBER = jax.process_index()\nCOUNT = jax.process_count()\n"
    for name, content in {"hosts": hosts, "facts": "from hosts import CHIEF\n", "job": BEGINNING + text}.items():
        (root / f"{name}.py").write_text(content)
    program = helper().program_of(root)
    with deep():
        return Strata(program.project, program.knowledge).divergences()


def test_there_are_programs_of_both_kinds():
    assert len(BAD) > 20
    assert len(EVEN) > 10


@pytest.mark.parametrize("spelling", BAD)
def test_a_call_of_one_process_is_found_in_each_spelling(spelling, tmp_path):
    assert divergences(tmp_path, BAD[spelling])


@pytest.mark.parametrize("spelling", EVEN)
def test_what_is_alike_on_all_processes_is_left_alone(spelling, tmp_path):
    assert not divergences(tmp_path, EVEN[spelling])

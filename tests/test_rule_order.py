"""What a rule finds depends on the program alone, not on which rules have asked about it before, or run at all.

The analyses remember what they have been asked, so a result that depends on where the first question came from shows
as a difference here.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import spmdlint.engine
from spmdlint.program.link import FunctionRef, Project
from spmdlint.rule import Rule, load_rules

FIXTURES = Path(__file__).parent.parent / "fixtures" / "lint"
RULES = load_rules()
ABOUT_THE_RUN = {"SPMD900"}
"""Rules whose findings depend on the others by their nature: which suppressions are unused."""
PACKAGES = {"orbax-checkpoint": "0.12.8", "flax": "0.12.8"}

Order = Callable[[Sequence[Rule]], Sequence[Rule]]
ORDERS: dict[str, Order] = {
    "reversed": lambda rules: rules[::-1],
    "shuffled": lambda rules: random.Random(0).sample(rules, len(rules)),
}


@pytest.fixture
def ordered(monkeypatch):
    """Make the linter run its rules in another order, in one process."""

    def order(how: Order) -> None:
        monkeypatch.setattr(spmdlint.engine, "load_rules", lambda _: tuple(how(RULES)))

    return order


@pytest.fixture
def shuffle_functions(monkeypatch):
    """Make the analyses go over the functions of a program in another order."""
    functions = Project.functions

    def shuffled(project: Project) -> list[FunctionRef]:
        found = [*functions(project)]
        return random.Random(0).sample(found, len(found))

    return lambda: monkeypatch.setattr(Project, "functions", shuffled)


def findings(project, *options):
    """All that is said about each finding, the places on the way to it included."""
    outcome = project.check("--preview", "--no-cache", "-j", "1", *options)
    assert outcome.status in (0, 1), outcome.err
    return outcome.json


def cases(code):
    folder = FIXTURES / code
    return sorted(path for path in folder.iterdir() if path.suffix == ".py" or path.is_dir())


def take(case, project):
    """Make a case the project."""
    shutil.rmtree(project.root)
    project.write({"spmdlint.toml": ""})
    if case.is_dir():
        shutil.copytree(case, project.root, dirs_exist_ok=True)
    else:
        shutil.copy(case, project.root)


def codes():
    return pytest.mark.parametrize("code", [rule.code for rule in RULES])


def one_of(code):
    """A case for each rule, always the same: a project of several modules where there is one, or the shortest file."""
    found = cases(code)
    files = [case for case in found if case.is_file() and f"# error: {code}" in case.read_text()]
    shortest = min(files, key=lambda case: len(case.read_text()), default=found[0])
    return next((case for case in found if case.is_dir()), shortest)


@codes()
def test_a_fixture_of_each_rule(code, project, ordered, shuffle_functions):
    take(one_of(code), project)
    default = findings(project)
    if code not in ABOUT_THE_RUN:
        alone = [each for each in findings(project, "--select", code) if each["code"] == code]
        assert alone == [each for each in default if each["code"] == code]
    ordered(ORDERS["reversed"])
    assert findings(project) == default
    shuffle_functions()
    assert findings(project) == default


@pytest.mark.long
@codes()
def test_fixtures(code, project, ordered):
    for case in cases(code):
        take(case, project)
        ordered(lambda rules: rules)
        default = findings(project)
        alone = [each for each in findings(project, "--select", code) if each["code"] == code]
        if code not in ABOUT_THE_RUN:
            assert alone == [each for each in default if each["code"] == code], f"{case.name}: {code} alone"
        for name, order in ORDERS.items():
            ordered(order)
            assert findings(project) == default, f"{case.name}: {name}"


# -- packages


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Unpack the wheel of a package; gives the folder."""
    unpacked = {}

    def get(name: str) -> Path:
        if name not in unpacked:
            folder = tmp_path_factory.mktemp(name)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
            subprocess.run([*command, f"{name}=={PACKAGES[name]}"], check=True)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder / "unpacked")
            unpacked[name] = folder / "unpacked"
        return unpacked[name]

    return get


@pytest.fixture(scope="module")
def by_default():
    """What the default order finds in a package; filled once for all tests of it."""
    return {}


def compare(name, project, package, by_default):
    """Make a package the project; gives what the default order finds in it."""
    shutil.copytree(package(name), project.root, dirs_exist_ok=True)
    if name not in by_default:
        by_default[name] = [relative(each) for each in findings(project)]
        assert by_default[name], "nothing is found, so nothing is compared"
    return by_default[name]


def relative(finding):
    """A finding without the folder of this test."""
    where = finding["filename"].partition("/project/")[2]
    return where, finding["location"]["row"], finding["location"]["column"], finding["code"], finding["message"]


PACKAGE = pytest.mark.parametrize("name", PACKAGES)


@pytest.mark.network
@pytest.mark.timeout(600)
@PACKAGE
@pytest.mark.parametrize("how", ORDERS)
def test_a_package_with_the_rules_in_another_order(name, how, project, package, by_default, ordered):
    default = compare(name, project, package, by_default)
    ordered(ORDERS[how])
    assert [relative(each) for each in findings(project)] == default


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        "flax",
        pytest.param(
            "orbax-checkpoint", marks=pytest.mark.xfail(strict=True, reason="One finding of SPMD306 is missing.")
        ),
    ],
)
def test_a_package_with_the_functions_in_another_order(name, project, package, by_default, shuffle_functions):
    default = compare(name, project, package, by_default)
    shuffle_functions()
    assert [relative(each) for each in findings(project)] == default


@pytest.mark.network
@pytest.mark.timeout(600)
@PACKAGE
def test_a_package_with_the_rules_in_two_processes(name, project, package, by_default):
    default = compare(name, project, package, by_default)
    assert [relative(each) for each in findings(project, "-j", "2")] == default


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.parametrize("code", ["SPMD201", "SPMD301", "SPMD304", "SPMD306"])
def test_a_package_with_one_rule_alone(code, project, package, by_default):
    default = compare("orbax-checkpoint", project, package, by_default)
    alone = [relative(each) for each in findings(project, "--select", code)]
    assert [each for each in alone if each[3] == code] == [each for each in default if each[3] == code]

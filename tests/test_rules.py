"""Rules, their pages, their fixtures and the changelog agree; fixtures and pages are linted."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from spmdlint.rule import SECTIONS, load_rules
from spmdlint.selection import RETIRED, codes_by_selector

REPOSITORY = Path(__file__).parent.parent
FIXTURES = REPOSITORY / "fixtures" / "lint"
RULES = load_rules()
CASES = sorted(
    path for folder in FIXTURES.iterdir() for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()
)

_DUE = re.compile(r"# error: (?P<codes>[A-Z]+[0-9]+(?:, *[A-Z]+[0-9]+)*)(?P<preview> \(preview\))?\s*$")
ON_TRIAL = {rule.code for rule in RULES if rule.preview}


def each_rule():
    return pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])


@each_rule()
def test_the_identity_of_a_rule(rule):
    assert re.fullmatch(r"SPMD[0-9]{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.severity in ("error", "warning", "info")
    module = type(rule).__module__.removeprefix("spmdlint.rules.")
    assert module == f"{rule.code.lower()}_{rule.name.replace('-', '_')}"


def test_codes_and_names_are_given_once():
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


def test_every_module_of_rules_holds_one():
    modules = {path.stem for path in (REPOSITORY / "rules").glob("*.py")} - {"__init__"}
    assert modules == {type(rule).__module__.removeprefix("spmdlint.rules.") for rule in RULES}


@each_rule()
def test_the_page_of_a_rule(rule):
    text = rule.page()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS)
    assert rule.summary().endswith(".")
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE))


def blocks(rule, section):
    """The blocks of code in one section of a rule's page."""
    part = re.split(rf"^## {section}$", rule.page(), flags=re.MULTILINE)[1].split("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


@each_rule()
def test_the_example_of_a_rule_gives_a_finding(rule, project):
    examples = blocks(rule, "Example")
    assert examples
    for text in examples:
        project.write({"example.py": text})
        options = ["--preview"] if rule.preview else []  # what the page shows is what a reader gets
        assert {code for _, _, code in project.check(*options).found} == {rule.code}


@each_rule()
def test_what_to_use_instead_gives_none(rule, project):
    examples = blocks(rule, "Use instead")
    assert examples
    for text in examples:
        project.write({"example.py": text})
        assert project.check("--preview").found == []


def test_every_rule_has_fixtures_with_and_without_findings():
    for rule in RULES:
        texts = [path.read_text() for path in (FIXTURES / rule.code).rglob("*.py")]
        assert any(rule.code in due for text in texts for due in codes_due(text)), f"no finding is due in {rule.code}"
    assert {path.name for path in FIXTURES.iterdir()} == {rule.code for rule in RULES}


def codes_due(text):
    return [found["codes"] for line in text.splitlines() if (found := _DUE.search(line))]


def due_in(root):
    """What the comments of a case announce, and whether only --preview shows it."""
    return {
        (str(path.relative_to(root)), row, code.strip()): bool(found["preview"]) or code.strip() in ON_TRIAL
        for path in root.rglob("*.py")
        for row, line in enumerate(path.read_text().split("\n"), start=1)
        if (found := _DUE.search(line))
        for code in found["codes"].split(",")
    }


def take(case, root):
    if case.is_dir():
        shutil.copytree(case, root, dirs_exist_ok=True)
    else:
        shutil.copy(case, root)


def found_in(project, *options):
    found = project.check(*options).json
    places = [(each["code"], each["filename"], *each["location"].values()) for each in found]
    branches = [each for each in places if each[0].startswith("SPMD3")]
    assert len(branches) == len(set(branches)), "a branch is told twice"
    return sorted({(str(Path(file).relative_to(project.root)), row, code) for code, file, row, *_ in places})


def each_case(chosen, marks=()):
    return [pytest.param(case, id=str(case.relative_to(FIXTURES)), marks=marks) for case in chosen]


@pytest.mark.parametrize("case", each_case(CASES))
def test_fixture(case, project):
    take(case, project.root)
    due = due_in(project.root)
    assert found_in(project) == sorted(place for place, in_preview in due.items() if not in_preview)


# Those in which --preview shows more, or whose rule says that it may; with the others, one of eight.
IN_PREVIEW = [
    case
    for number, case in enumerate(CASES)
    if number % 8 == 0
    or case.parent.name in ON_TRIAL
    or any(" (preview)" in path.read_text() for path in (case.rglob("*.py") if case.is_dir() else [case]))
]
REST = [case for case in CASES if case not in IN_PREVIEW]


@pytest.mark.parametrize("case", [*each_case(IN_PREVIEW), *each_case(REST, pytest.mark.long)])
def test_fixture_with_preview(case, project):
    take(case, project.root)
    assert found_in(project, "--preview") == sorted(due_in(project.root))


def test_the_changelog_names_every_rule():
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    assert [rule.code for rule in RULES if rule.code not in text or rule.name not in text] == []
    assert set(re.findall(r"SPMD\d{3}", text)) <= codes_by_selector(RULES).keys() | RETIRED


# -- the pages that are checked in


def generator():
    spec = importlib.util.spec_from_file_location("generate", REPOSITORY / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_those_that_the_code_makes():
    texts = generator().pages()
    for path, text in texts.items():
        assert path.is_file(), f"{path} is missing; run 'make docs-rules'"
        assert path.read_text() == text, f"{path} is out of date; run 'make docs-rules'"
    assert {path for path in texts if path.parent.name == "rules"} == set((REPOSITORY / "docs/rules").glob("*.md"))


# -- spmdlint rule


@each_rule()
def test_a_rule_is_explained_by_code_and_by_name(rule, project):
    outcome = project.run("rule", rule.code)
    assert (outcome.status, outcome.out) == (0, project.run("rule", rule.name).out)
    assert outcome.out == (REPOSITORY / "docs" / "rules" / f"{rule.code}.md").read_text()


def test_what_is_part_of_a_rule_now_is_explained_by_its_page(project):
    page = project.run("rule", "SPMD303").out
    assert "Part of this rule now: SPMD302, data-dependent-loop-exit." in page
    for rule in RULES:
        own = (REPOSITORY / "docs" / "rules" / f"{rule.code}.md").read_text()
        assert all(project.run("rule", old).out == own for old in rule.former())
    assert project.run("rule", "SPMD303", "--output-format", "json").json["merged"] == [
        "SPMD302",
        "data-dependent-loop-exit",
    ]
    old = (REPOSITORY / "docs" / "rules" / "SPMD302.md").read_text()
    assert old == "# SPMD302\n\nThis is part of [SPMD303 varying-loop](SPMD303.md) now.\n"


def test_a_rule_as_json(project):
    told = project.run("rule", "SPMD901", "--output-format", "json").json
    assert told["code"] == "SPMD901"
    assert told["name"] == "syntax-error"
    assert told["severity"] == "error"
    assert told["preview"] is False
    assert told["explanation"].startswith(told["summary"])


def test_all_rules(project):
    text = project.run("rule", "--all").out
    assert [line.split()[:2] for line in text.splitlines()] == [[rule.code, rule.name] for rule in RULES]
    told = project.run("rule", "--all", "--output-format", "json").json
    assert [each["code"] for each in told] == [rule.code for rule in RULES]


def test_the_list_marks_what_needs_preview(project):
    marks = {line.split()[0]: line.rpartition(" (")[2] for line in project.run("rule", "--all").out.splitlines()}
    told = project.run("rule", "--all", "--output-format", "json").json
    assert {each["code"] for each in told if each["preview"]} == {c for c, m in marks.items() if m == "preview)"}
    partly = {c for c, m in marks.items() if m == "partly preview)"}
    assert {each["code"] for each in told if each["partly_preview"]} == partly
    assert {each["code"] for each in told if "--preview" in each["explanation"]} - partly <= ON_TRIAL
    shown = (found for path in FIXTURES.rglob("*.py") for found in map(_DUE.search, path.read_text().split("\n")))
    only = {code for found in shown if found and found["preview"] for code in found["codes"].split(", ")}
    assert only - ON_TRIAL <= partly


def test_a_rule_that_does_not_exist(project):
    outcome = project.run("rule", "syntax-eror")
    assert outcome.status == 2
    assert "'syntax-error'" in outcome.err


def test_a_pool_of_threads_counts_where_others_are_launched_beside_it(project):
    text = (FIXTURES / "SPMD307/pools.py").read_text()
    project.write({"pools.py": text})
    row = next(n for n, line in enumerate(text.splitlines(), start=1) if "_reduce_and_write, values" in line)
    assert project.check().found == [("pools.py", row, "SPMD307")]


def test_a_file_that_is_looked_for_in_every_round_counts_by_default(project):
    for name, count in (("stop_files.py", 2), ("asked_once.py", 0)):
        project.write({name: (FIXTURES / "SPMD306" / name).read_text()})
        assert [code for _, _, code in project.check(name).found] == ["SPMD306"] * count


def test_a_family_is_listed(project):
    lines = project.run("rule", "SPMD3").out.splitlines()
    assert [line[:7] for line in lines] == [rule.code for rule in load_rules() if rule.code.startswith("SPMD3")]
    assert project.run("rule").out == project.run("rule", "--all").out

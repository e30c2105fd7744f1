"""The pages: they make a site without a warning, their code is code, and their pictures show what is printed."""

from __future__ import annotations

import ast
import html
import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from spmdlint.config import settings
from spmdlint.knowledge.described import FACETS, KINDS, SOURCES
from spmdlint.knowledge.load import Facet, Kind, Known, Once, Source
from spmdlint.runtime_checks import options

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted([*DOCS.glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"])
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

RULE = """\
from spmdlint.visitor_rule import VisitorRule


class Own(VisitorRule):
    code = "ACME101"
    name = "own"
"""


def blocks(*languages: str) -> Any:
    """The blocks of code in these languages, each with its page."""
    found = []
    for path in PAGES:
        for number, block in enumerate(_BLOCK.finditer(path.read_text(encoding="utf-8"))):
            if block[2] in languages:
                lines = textwrap.dedent(block[3]).splitlines()
                found.append(pytest.param("\n".join(lines) + "\n", id=f"{path.name}-{number}"))
    return pytest.mark.parametrize("text", found)


@pytest.mark.parametrize("builder", ["dummy", pytest.param("html", marks=pytest.mark.long)])
def test_the_site_is_made_without_a_warning(tmp_path, builder):
    """All pages are read and their links are followed; to write them as well costs as much again."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if builder == "html":
        page = (tmp_path / "site" / "rules" / "SPMD301.html").read_text(encoding="utf-8")
        assert "varying-condition" in page


@blocks("python")
def test_python_is_python(text):
    ast.parse(text)


@blocks("yaml")
def test_yaml_is_yaml(text):
    assert yaml.safe_load(text)


@blocks("toml")
def test_settings_are_settings(text, project):
    """Those of ours are accepted; where they name files and folders, these are there."""
    if "[tool.spmdlint" not in text:
        pytest.skip("another tool's")
    files = {"src/a.py": "x = 1\n", "../shared/spmdlint.toml": "", "lint_rules/own.py": RULE}
    project.write({"pyproject.toml": text, **files})
    (project.root / "spmdlint.toml").unlink()
    outcome = project.run("check", "src")
    assert outcome.status == 0, outcome.err
    assert settings(project.root / "pyproject.toml") is not None


@blocks("", "sh", "yaml", "python")
def test_options_exist(text, project):
    for line in re.findall(
        r"(?:^|[;&|] *|run: (?:>-\s*)?|- )(spmdlint (?:check|run|rule|explain|ledger|schema) .*)", text, re.M
    ):
        words = line.partition(" -- ")[0].split("#")[0].split()
        command = words[1:3] if words[1] == "ledger" else words[1:2]
        known = project.run(*command, "--help-all" if command == ["check"] else "--help").out
        for option in words[2:]:
            if option.startswith("--"):
                assert option in known, line


def screenshots() -> Any:
    spec = importlib.util.spec_from_file_location("screenshots", DOCS / "screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("picture", ["start.svg", "run.svg"])
def test_the_screenshot_shows_what_is_printed(picture):
    command = screenshots().PICTURES[picture]
    _, kind, *rest = command.split()
    output = screenshots().taken(kind, *rest)
    drawn = (DOCS / "pictures" / picture).read_text(encoding="utf-8")
    rows = re.findall(rf"<text class=\"{kind}-r[^>]*>(.*?)</text>", drawn)
    shown = html.unescape("".join(rows)).replace("\xa0", " ")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    assert "".join(shown.split()) == "".join(f"$ {command}\n{plain}".split())


def listed(page: str) -> set[str]:
    """The pages in the lists of a page, which make its sidebar."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^([\w/-]+)$", "".join(found), re.MULTILINE))


def test_every_page_is_reached_from_the_first_or_from_that_of_the_maintainers():
    ours, maintainers = listed("index.md"), listed("maintainers.md")
    assert {path.stem for path in DOCS.glob("*.md")} - {"index", "maintainers"} == (ours | maintainers) - {
        "rules/README"
    }
    assert not ours & maintainers
    assert "(maintainers.md)" in (DOCS / "index.md").read_text(encoding="utf-8")


FRONT = ("lint", "rehearse", "job")


@pytest.mark.parametrize("page", [*(DOCS / f"{name}.md" for name in FRONT), REPOSITORY / "README.md"], ids=str)
def test_the_front_door_is_short(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 900


def test_the_front_door_comes_first():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    first = re.search(r"^```\{toctree\}\n.*?\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert tuple(first[1].split()[:3]) == FRONT


_GENERATED = re.compile(
    r"<!-- Generated from .*?<!-- End of what is generated. -->|<!-- (small|medium|large) -->.*?<!-- end of \1 -->",
    re.DOTALL,
)


def test_all_pages_together_are_at_most_30_000_words():
    """Without what is generated."""
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    assert sum(len(_GENERATED.sub("", text).split()) for text in texts) <= 30_000


def test_the_architecture_names_every_module_of_the_analysis() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    analysis = DOCS.parent / "spmdlint/analysis"
    modules = {path.name for path in analysis.rglob("*.py")} - {"__init__.py"}
    assert {name for name in modules if f"`{name}`" not in text and f"/{name}`" not in text} == set()


_ROW = re.compile(r"^\| `(\w+)` \|(.*?)\| (.*) \|$", re.MULTILINE)


def rows(page: str, head: str) -> dict[str, tuple[str, str]]:
    """The other two columns of the rows of a table with this head, by the first one."""
    _, _, after = (DOCS / page).read_text(encoding="utf-8").partition(f"| {head} |")
    return {row[1]: (row[2].strip(), row[3]) for row in _ROW.finditer(after.partition("\n\n")[0])}


def test_every_environment_variable_of_the_checks_is_told_with_its_default():
    told = rows("runtime.md", "variable | default |")
    internal = {options.RUN_FOLDER_VARIABLE, options.PROCESS_VARIABLE}
    names = {str(value) for name, value in vars(options).items() if name.endswith("_VARIABLE")}
    assert set(told) == names - internal
    defaults = {name: default.strip("`") for name, (default, _) in told.items()}
    usual, given = options.choose(None, None, {}), options.choose(None, None, {n: d for n, d in defaults.items() if d})
    assert given == usual
    with pytest.raises(ValueError, match="SPMDLINT_ON_DIVERGENCE"):
        options.choose(None, None, {"SPMDLINT_ON_DIVERGENCE": "shout"})


SAMPLES = {
    "a string": ('"x"', "1"),
    "a number": ("1", '"x"'),
    "a list of strings": ('["x"]', "[1]"),
    "a string, or a list of strings": ('["x"]', "1"),
    "a table of strings": ('{x = "y"}', '["x"]'),
    "true or false": ("true", '"x"'),
}


def test_every_key_of_a_function_is_told_as_it_is_accepted(project):
    told = rows("configuration.md", "key | value | meaning")
    assert set(told) == set(Known.__struct_fields__) - {"name"}
    assert (set(KINDS), set(SOURCES)) == (set(get_args(Kind)), set(get_args(Source)))
    chosen = {"kind": [f'"{kind}"' for kind in KINDS], "source": [f'"{source}"' for source in SOURCES]}
    chosen["raised"] = chosen["source"]
    chosen["once"] = [f'"{once}"' for once in get_args(Once)]
    chosen["passes"] = [f'["{facet}"]' for facet in get_args(Facet)]
    chosen["agree"] = [f'{{ x = "{facet}" }}' for facet in FACETS]
    tables = []
    for key, (value, _) in told.items():
        for number, sample in enumerate(chosen.get(key, [SAMPLES[value][0]])):
            parameters = "" if key == "parameters" else 'parameters = ["x"]\n'
            tables.append(f"[knowledge.functions.{key}{number}]\n{parameters}{key} = {sample}\n")
    project.write({"a.py": "x = 1\n", "spmdlint.toml": "".join(tables)})
    assert (outcome := project.run("check")).status == 0, outcome.err
    for key, (value, _) in told.items():
        project.write({"spmdlint.toml": f"[knowledge.functions.f]\n{key} = {SAMPLES[value][1]}\n"})
        outcome = project.run("check")
        assert (outcome.status, f"{key!r} of 'f' is" in outcome.err) == (2, True), (key, outcome.err)

"""Screening files by what they name saves time and changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spmdlint.analysis.load import load
from spmdlint.config import Config
from spmdlint.program.survey import Surveyor
from spmdlint.rule import load_rules

REPOSITORY = Path(__file__).parent.parent

FILES = {
    "names.py": 'AXIS = "batch"\n',
    "losses.py": "import jax\nfrom names import AXIS\n\n\ndef mean(x):\n    return jax.lax.pmean(x, AXIS)\n",
    "train.py": "import jax\nimport losses\n\nstep = jax.jit(losses.mean)\n",
    "server.py": "import http.server\n\n\nclass Handler(http.server.BaseHTTPRequestHandler):\n    pass\n",
    "broken.py": "def f(:\n",
    "reports/__init__.py": "",
    "reports/tables.py": "def render(rows):\n    return [str(row) for row in set(rows)]\n",
}


def write(root):
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def findings(root, *, screen):
    config = Config(root=root)
    survey = Surveyor(config, None).look(sorted(root.rglob("*.py")), {}, screen=screen)
    program = load(survey, config)
    found = [d for rule in load_rules() for d in rule.check(program)]
    return sorted(found, key=lambda d: d.sort_key()), list(survey.troubles())


def test_only_what_can_reach_a_known_library_is_kept(tmp_path):
    write(tmp_path)
    survey = Surveyor(Config(root=tmp_path), None).look(sorted(tmp_path.rglob("*.py")), {})
    assert {path.name for path in survey.wanted} == {"names.py", "losses.py", "train.py", "broken.py"}
    assert {path.name for path in survey.lowered()} == {"names.py", "losses.py", "train.py"}


def test_the_findings_are_the_same_without_the_screen(tmp_path):
    write(tmp_path)
    screened = findings(tmp_path, screen=True)
    assert screened == findings(tmp_path, screen=False)
    assert [d.code for d in screened[0]] == ["SPMD101"]
    assert [path.name for path, _ in screened[1]] == ["broken.py"]


FOLDERS = sorted(
    case for rule in (REPOSITORY / "fixtures" / "lint").iterdir() for case in rule.iterdir() if case.is_dir()
)


@pytest.mark.parametrize("case", FOLDERS, ids=[case.name for case in FOLDERS])
def test_the_findings_are_the_same_beside_code_that_is_left_out(case, tmp_path):
    """Each fixture of several modules, with modules beside them that name nothing."""
    shutil.copytree(case, tmp_path / "project")
    write(tmp_path)
    files = sorted(tmp_path.rglob("*.py"))
    assert set(files) > set(Surveyor(Config(root=tmp_path), None).look(files, {}).wanted), "nothing is left out"
    screened = findings(tmp_path, screen=True)
    assert screened == findings(tmp_path, screen=False)
    assert screened[0]


@pytest.mark.long
def test_the_findings_are_the_same_on_the_fixtures():
    root = REPOSITORY / "fixtures" / "lint"
    files = sorted(root.rglob("*.py"))
    wanted = Surveyor(Config(root=root), None).look(files, {}).wanted
    assert set(files) > set(wanted), "nothing is left out"
    screened = findings(root, screen=True)
    assert screened == findings(root, screen=False)
    assert screened[0]

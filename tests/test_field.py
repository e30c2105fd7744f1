"""The field report is made from the verdicts that it is about."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from spmdlint.rule import load_rules
from spmdlint.selection import codes_by_selector

SCRIPT = Path(__file__).parents[1] / "docs" / "field.py"
KEYS = {"package", "version", "file", "line", "text", "code", "preview", "verdict", "why"}


@pytest.fixture(scope="module")
def field():
    spec = importlib.util.spec_from_file_location("field_report", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_which_the_verdicts_make(field):
    assert field.PAGE.read_text(encoding="utf-8") == field.page(), "run 'make docs-rules'"


def test_findings_are_sorted_and_told_once(field):
    findings = field.records(field.FINDINGS)
    assert findings == sorted(findings, key=field.order)
    assert [place for place, count in Counter(map(field.order, findings)).items() if count > 1] == []


def test_a_verdict_says_all_that_it_has_to(field):
    codes = codes_by_selector(load_rules())  # a finding may have been judged before its rule became a part of another
    packages = {package["package"]: package["version"] for package in field.records(field.PACKAGES)}
    for finding in field.records(field.FINDINGS):
        assert finding.keys() - {"missed"} == KEYS
        assert finding["code"] in codes
        assert finding["version"] == packages[finding["package"]]
        assert finding["verdict"] in field.VERDICTS
        assert bool(finding["why"]) == (finding["verdict"] != "unread")


def test_every_code_base_can_be_fetched_again(field):
    for package in field.records(field.PACKAGES):
        source = package["source"]
        if "pypi" in source:
            assert re.fullmatch(r"[\w-]+==[\w.]+", source["pypi"])
        else:
            assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", source["git"])
            assert re.fullmatch(r"[0-9a-f]{40}", source["commit"])

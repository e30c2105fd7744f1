"""Rules in two processes find what they find in one, whatever becomes of the second."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process is copied on Linux only")

# A rule that runs in the second process, and fails there in a way of its own. Loading it lets small programs be shared.
SECOND = '''
import os

import spmdlint.running
from spmdlint.diagnostics import Diagnostic, Location, Place
from spmdlint.rule import Rule

spmdlint.running.LEAST = 1
spmdlint.running._SECOND += ("ACME2",)
FIRST = os.getpid()


class Second(Rule):
    """A rule that tells where it runs."""

    code = "ACME201"
    name = "second-rule"

    def check(self, program):
        path = next(iter(program.project.modules))
        copied = os.getpid() != FIRST
        what = WHAT
        yield Diagnostic(self.code, self.name, "error", str(what), Place(path, Location(1, 1), Location(1, 2)))
'''
FILES = {
    "losses.py": "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n",
    "train.py": "import losses\n\nlosses.mean(1.0)\n",
}


def told(project, plugin, what, *argv):
    project.write({**FILES, "rank.py": project.hazard})
    return project.spawn(
        "check", "--no-cache", "--output-format", "json", *argv, env=plugin(SECOND.replace("WHAT", what))
    )


def messages(outcome):
    return [each["message"] for each in outcome.json if each["code"] == "ACME201"]


def test_a_second_process_takes_a_part_of_the_rules(project, plugin):
    assert messages(told(project, plugin, "copied", "-j", "2")) == ["True"]


def test_one_process_takes_all_of_them(project, plugin):
    assert messages(told(project, plugin, "copied", "-j", "1")) == ["False"]


@pytest.mark.parametrize("fails", ["os.abort()", "os._exit(0)", "os._exit(3)", "1 / 0", "exit()"])
def test_what_the_second_process_fails_to_do_is_done_all_the_same(project, plugin, fails):
    outcome = told(project, plugin, f"copied and {fails}", "-j", "2")
    assert outcome.status == 1
    assert messages(outcome) == ["False"]
    assert [code for _, _, code in outcome.found if code != "ACME201"] == ["SPMD101", "SPMD301"]


def test_a_rule_that_fails_in_both_processes_is_told_once(project, plugin):
    outcome = told(project, plugin, "1 / 0", "-j", "2")
    assert outcome.status == 2
    assert outcome.err.count("ACME201 (second-rule) failed and its findings are incomplete") == 1
    assert [code for _, _, code in outcome.found] == ["SPMD101", "SPMD301"]

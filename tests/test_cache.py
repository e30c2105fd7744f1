"""What a run keeps for the next one: never seen but by the time it takes, and never wrong."""

from __future__ import annotations

import os
import random
import runpy
import subprocess
import sys
from functools import partialmethod
from pathlib import Path

import msgspec
import pytest
import tomli

from spmdlint import knowledge
from spmdlint.analysis import load as loading
from spmdlint.files import store
from spmdlint.program import survey, workers, written
from spmdlint.program.lower import lower

EDITS = Path(__file__).parent.parent / "benchmarks/edits.py"
LOSSES = "import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n"
OTHER = "import losses\n\nprint(1.0)\n"
TRAIN = "import losses\n\nlosses.mean(1.0)\n"


@pytest.fixture
def analysed(monkeypatch):
    """How often a program was analysed."""
    counted = []
    real = loading.load
    monkeypatch.setattr(loading, "load", lambda *args, **kwargs: (counted.append(1), real(*args, **kwargs))[1])
    return counted


@pytest.fixture
def known(project):
    """A project whose finding needs two files, and a run that has kept it."""
    project.write({"losses.py": LOSSES, "train.py": TRAIN, "spmdlint.toml": ""})
    assert project.check().found == [("losses.py", 5, "SPMD101")]
    return project


def kept(project):
    return sorted((project.root / store.FOLDER).glob("*.kept"))


def test_nothing_new_is_not_analysed_and_reads_the_same(known, analysed):
    for form in ("full", "concise", "json", "github"):
        cold = known.run("check", "--no-cache", "--output-format", form)
        analysed.clear()
        warm = known.run("check", "--output-format", form)
        assert (warm.status, warm.out, warm.err) == (cold.status, cold.out, cold.err)
        assert not analysed


def test_notes_are_told_again(known, analysed):
    known.write({"notes.txt": ""})
    first, second = known.run("check", "notes.txt", "train.py"), known.run("check", "notes.txt", "train.py")
    assert "notes.txt is not linted" in first.err
    assert first.err == second.err


def test_a_file_that_was_only_touched_is_nothing_new(known, analysed):
    os.utime(known.root / "losses.py", (1, 1))
    assert known.check().found == [("losses.py", 5, "SPMD101")]
    assert not analysed


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"losses.py": LOSSES.replace("\n\n\ndef", "\n\n\n\n\ndef")}, [("losses.py", 7, "SPMD101")]),
        ({"train.py": "import losses\n\nlosses.meen(1.0)\n"}, []),
        ({"lib.py": "import jax\nimport losses\n\njax.pmap(losses.mean, axis_name='rows')(1.0)\n"}, None),
        ({"losses/__init__.py": "def mean(x):\n    return x\n"}, []),
        ({"spmdlint.toml": "ignore = ['SPMD101']\n"}, []),
        ({".gitignore": "losses.py\n"}, []),
    ],
)
def test_what_changes_a_finding_is_seen(known, analysed, files, found):
    """An edit, one that keeps length and times, a file that comes, one that takes another's name, a setting."""
    times = (known.root / "train.py").stat()
    known.write(files)
    for name in files:
        os.utime(known.root / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    warm = known.check()
    assert analysed or not found  # of a program without a file that matters nothing is asked
    assert warm.json == known.check("--no-cache").json
    assert found is None or warm.found == found


def test_a_rule_that_is_installed_later_is_asked(known, plugin):
    env = plugin(
        "from spmdlint.rule import Rule\n\n\n"
        "class Loud(Rule):\n    code, name = 'ACM001', 'loud'\n\n"
        "    def check(self, program):\n        raise RuntimeError('asked')\n"
    )
    assert known.spawn("check").status == 1
    assert known.spawn("check", env=env).status == 2


def test_a_file_that_goes_is_seen(known):
    (known.root / "train.py").unlink()
    assert known.check().json == known.check("--no-cache").json == []


def test_other_paths_and_other_rules_are_other_results(known):
    assert known.check("train.py").found == []
    assert known.check("--ignore", "SPMD101").found == []
    assert known.check().found == known.check("losses.py").found == [("losses.py", 5, "SPMD101")]


@pytest.mark.parametrize(
    "after",
    [
        "# a comment\n" + OTHER,
        OTHER.replace("\n\n", "\n\n\n\n"),
        OTHER.replace("(1.0)", "(\n    1.0,\n)  # noqa: E501"),
        '"""A docstring."""\n\n' + OTHER,
    ],
)
def test_what_moves_code_alone_is_not_analysed(known, analysed, after):
    known.write({"other.py": OTHER})
    cold = known.check()
    analysed.clear()
    known.write({"other.py": after})
    assert known.check() == cold
    assert not analysed


# What a file imports of Python's library says what its `.done()` and `.get()` are asked of.
NEEDED = sorted(
    {
        module
        for table in Path(knowledge.__file__).parent.glob("*.toml")
        for method in tomli.loads(table.read_text(encoding="utf-8")).get("methods", {}).values()
        for module in method.get("needs", ())
        if module in sys.stdlib_module_names
    }
)

IDLE = [
    'def added(values, n=2):\n    """Two."""\n    return ", ".join(str(each * n) for each in values if len(values))\n',
    "import textwrap\n",
    "from collections import deque, OrderedDict as Ordered\n",
    "ADDED = (1, -2.0)\n",
]


@pytest.mark.parametrize("added", IDLE)
def test_code_that_nobody_names_is_not_analysed(known, analysed, added):
    """When it comes, when it changes, when it goes; and what was found then is found again."""
    more = "\n\ndef show(rows):\n    return rows\n"
    before = OTHER + more
    known.write({"other.py": before})
    cold = known.check()
    for text in (
        added + before,
        added.replace("2", "3") + before,
        before.replace("    ret", "    unread = 1\n    ret"),
    ):
        known.write({"other.py": text})
        analysed.clear()
        assert known.check() == cold
        assert not analysed
        assert known.check("--no-cache") == cold
    known.write({"other.py": before})
    assert known.check() == cold


@pytest.mark.parametrize(
    ("files", "after"),
    [
        *(
            ({"third.py": f"import other\n\nother.{name}\n"}, text)
            for name, text in zip(("added(2)", "textwrap", "deque()", "ADDED"), IDLE, strict=True)
        ),
        ({"third.py": "from other import *\n"}, IDLE[1]),
        ({"textwrap.py": "import losses\n"}, IDLE[1]),
        ({}, IDLE[0].replace(", n=2", ", n=losses.mean")),
        ({}, IDLE[0].replace("str(", "losses.mean(")),
        ({}, IDLE[0].replace("each * n", "each.mean")),
        ({}, IDLE[0].replace("str(", "print(") + "\n\ndef len(x):\n    return losses.mean(x)\n"),
        ({}, "@losses.mean\n" + IDLE[0]),
        ({}, IDLE[0] + "\n\nadded(2)\n"),
        *(({}, f"import {module}\n") for module in NEEDED),
        ({}, "import jax\n"),
        ({}, "ADDED = losses.mean(2)\n"),
    ],
)
def test_code_that_may_matter_is_analysed(known, analysed, files, after):
    """What somebody names, what does something, and what it means to import."""
    known.write({"other.py": OTHER, **files})
    known.check()
    analysed.clear()
    known.write({"other.py": OTHER + after})
    warm = known.check()
    assert analysed
    assert warm == known.check("--no-cache")
    known.write({"other.py": OTHER})  # and so is what goes
    assert known.check() == known.check("--no-cache")


def test_idle_code_that_goes_is_missed_by_who_names_it(known, analysed):
    known.write({"other.py": OTHER + IDLE[0], "third.py": "import losses\n"})
    known.check()
    known.write({"third.py": "import losses\nimport other\n\nother.added(2)\n"})
    known.check()
    analysed.clear()
    known.write({"other.py": OTHER})
    assert known.check() == known.check("--no-cache")
    assert analysed


def test_where_somebody_asked_where_code_stands_its_place_counts(known, analysed):
    known.write({"losses.py": "# a comment\n" + LOSSES})
    assert known.check().found == [("losses.py", 6, "SPMD101")]
    assert analysed


def test_what_is_expected_to_fail_is_not_tied_to_its_lines(project, analysed):
    failing = (
        "import pytest\n\nimport losses\n\n\ndef test_mean():\n    pytest.raises(NameError, lambda: losses.mean(1.0))\n"
    )
    project.write({"losses.py": LOSSES, "test_losses.py": failing, "spmdlint.toml": ""})
    assert project.check("test_losses.py").found == []
    analysed.clear()
    project.write({"test_losses.py": "# a comment\n" + failing})
    assert project.check("test_losses.py").found == []
    assert not analysed


def test_suppressions_are_heeded_although_nothing_is_analysed(known, analysed):
    line = "jax.lax.pmean(x, 'batch')"
    known.write({"losses.py": LOSSES.replace(line, f"{line}  # noqa: SPMD101")})
    analysed.clear()
    assert known.check().found == known.check("--no-cache").found == []
    known.write({"other.py": "import losses\n# spmdlint: ignore[SPMD101]\nx = 1\n"})
    assert known.check().found == [("other.py", 2, "SPMD900")]


def test_an_edit_lowers_what_was_edited(known, monkeypatch):
    lowered = []
    real = workers.lower
    monkeypatch.setattr(workers, "lower", lambda text, **how: (lowered.append(text), real(text, **how))[1])
    edited = TRAIN + "losses.mean(2.0)\n"
    known.write({"train.py": edited})
    assert known.check().json == known.check("--no-cache").json
    assert lowered == [edited, LOSSES, edited]
    known.write({"train.py": TRAIN})
    known.check()
    assert len(lowered) == 3


MORE = """\
import jax
import train


class State:
    \"\"\"What is kept.\"\"\"

    def __init__(self, rank):
        self.rank = rank

    def save(self, path):
        if self.rank == 0:
            jax.experimental.multihost_utils.sync_global_devices(path)
        return path


def run(step):
    state = State(jax.process_index())
    total = 0
    for name in {"a", "b"}:
        total = total + step(name)
    state.save("here")
    return total


run(jax.pmap(lambda x: x))
"""


@pytest.mark.parametrize("rounds", [12, pytest.param(40, marks=pytest.mark.long)])
def test_many_edits(rounds, project, monkeypatch):
    """Whatever is edited: cold or warm, in one process or two, screened or not, a run says the same."""
    edits = runpy.run_path(str(EDITS))["edit"]
    chance = random.Random(7)
    texts = {"losses.py": LOSSES, "train.py": TRAIN, "more.py": MORE, "late.py": project.hazard}
    for package in ("one", "two", "three"):
        texts |= {
            f"{package}/__init__.py": f"from {package} import steps\n",
            f"{package}/steps.py": LOSSES + f"\n\n{TRAIN}",
            f"{package}/states.py": MORE.replace("import train", f"from {package} import steps"),
            f"{package}/plain.py": "def render(rows):\n    return [str(row) for row in set(rows)]\n",
            f"{package}/words.py": f"LONG = {package!r}\n",
        }
    project.write({**texts, "spmdlint.toml": ""})
    look = survey.Surveyor.look
    said = set()
    for number in range(rounds):
        name = chance.choice(sorted(texts))
        edited, _ = edits(texts[name], chance)
        project.write({name: edited})
        if chance.random() < 0.5:
            texts[name] = edited
        warm = project.check("--preview")
        cold = project.check("--preview", "--no-cache", "-j", "2" if number % 3 == 0 else "1")
        with monkeypatch.context() as patch:
            patch.setattr(survey.Surveyor, "look", partialmethod(look, screen=False))
            unscreened = project.check("--preview", "--no-cache")
        assert warm.json == cold.json == unscreened.json
        said.add(warm.out)
    assert len(said) > rounds // 4  # the edits change what is found, too


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"",
        lambda text: text[: len(text) // 2],
        lambda text: text[:-1] + bytes([text[-1] ^ 1]),
        lambda text: b"\xff\xfe" + text,
        lambda text: b"[" * 100_000,
    ],
)
def test_damage_is_no_news(known, damage):
    cold = known.check("--no-cache")
    files = kept(known)
    assert len(files) == 5  # two summaries, what is known of the files, the findings, the idle code
    for damaged in (*([file] for file in files), files):
        for file in damaged:
            file.write_bytes(damage(file.read_bytes()))
        assert known.check() == cold


@pytest.mark.parametrize("document", [None, [], {}, {"tool": 1}, "text", [b"", b"", []], ["Written", b"", b"", []]])
def test_what_another_version_kept_is_no_news(known, document):
    cold = known.check("--no-cache")
    files = kept(known)
    for others in (*([file] for file in files), files):
        for file in others:
            store.Store(file.parent).write(file.stem, msgspec.msgpack.encode(document))
        assert known.check() == cold


def test_files_that_vanish_from_the_cache_are_made_again(known):
    for file in kept(known):
        if file.name.startswith(("code-", "found-")):
            file.unlink()
    assert known.check().found == [("losses.py", 5, "SPMD101")]


def test_literals_of_all_kinds_are_kept(project, monkeypatch):
    """What is read back is what was written, down to the literals that no common format has."""
    text = f"x = [1, -2.5, 1e999, 3j, {2**80}, b'\\0', 'a\\ud800', '\\N{{BULLET}}', ..., None, True, 'é']\n"
    text += "async def f(a, /, b=1, *c, d: int, **e):\n    global x, y\n    async with a as x: yield [i for i in b]\n"
    before = lower(text)
    after = written.read(msgspec.msgpack.decode(msgspec.msgpack.encode(written.write(before)), type=written.Written))
    assert repr([f.operations for f in after.functions]) == repr([f.operations for f in before.functions])
    for one, other in zip(before.functions, after.functions, strict=True):
        assert (one.blocks, one.formals, one.globals, one.spans) == (
            other.blocks,
            other.formals,
            other.globals,
            other.spans,
        )
    assert after.position(30) == before.position(30)


def test_where_nothing_can_be_kept_all_else_is_as_ever(known):
    known.write({"taken": "a file where a folder would be"})
    outcome = known.check("--cache-dir", "taken")
    assert (outcome.status, outcome.found, outcome.err) == (1, [("losses.py", 5, "SPMD101")], "")
    assert (known.root / "taken").read_text().startswith("a file")


def test_a_full_disk_keeps_nothing(known, monkeypatch):
    known.write({"train.py": TRAIN + "\n"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.Path, "replace", full)
    outcome = known.check()
    assert (outcome.status, outcome.found, outcome.err) == (1, [("losses.py", 5, "SPMD101")], "")
    assert not list((known.root / store.FOLDER).glob("*.partial"))


def test_runs_at_the_same_time(known):
    known.write({"train.py": TRAIN + "\n"})
    command = [sys.executable, "-m", "spmdlint", "check", "--output-format", "concise"]
    runs = [subprocess.Popen(command, cwd=known.root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({run.communicate(timeout=120)[0] for run in runs}) == 1
    assert known.check().found == [("losses.py", 5, "SPMD101")]


def test_the_oldest_go_first(known, monkeypatch):
    size = sum(file.stat().st_size for file in kept(known))
    folder = store.Store(known.root / store.FOLDER)
    folder.write("code-old", b"")
    old = folder.folder / "code-old.kept"
    os.utime(old, (1, 1))
    monkeypatch.setattr(store, "MAX_BYTES", 2 * size)
    for number in range(4):
        known.check("--ignore", f"SPMD60{number + 1}")
    assert not old.exists()
    assert sum(file.stat().st_size for file in kept(known)) <= 2 * size


def test_what_is_used_stays_young(known):
    for file in kept(known):
        os.utime(file, (1, 1))
    known.check()
    ages = {file.name.partition("-")[0]: file.stat().st_mtime for file in kept(known)}
    assert ages["files"] > 1
    assert ages["found"] > 1


def test_standard_input_is_not_kept(known, analysed):
    before = {file: file.read_bytes() for file in kept(known)}
    typed = ("check", "-", "--stdin-filename", "losses.py")
    for _ in range(2):
        assert known.run(*typed, stdin=f"{LOSSES}x = 1\n".encode()).status == 1
    assert {file: file.read_bytes() for file in kept(known)} == before
    assert len(analysed) == 2
    assert known.run(*typed, stdin=LOSSES.encode()).out == known.run("check", "losses.py", "--no-cache").out
    assert len(analysed) == 3  # the text that is on the disk was looked at before


@pytest.mark.parametrize("paths", [(), ("a.py",), (".",)])
def test_nothing_is_written_where_no_project_is(project, paths):
    """The folder may be a home folder."""
    project.write({"a.py": project.hazard})
    (project.root / "spmdlint.toml").unlink()
    assert project.check(*paths).status == 1
    assert not (project.root / store.FOLDER).exists()
    project.write({"pyproject.toml": ""})
    assert project.check(*paths).status == 1
    assert (project.root / store.FOLDER).is_dir()


def test_no_cache(project):
    project.write({"a.py": project.hazard, "spmdlint.toml": ""})
    assert project.check("--no-cache").status == 1
    assert not (project.root / store.FOLDER).exists()


def test_clean(known):
    assert known.run("clean").out == f"Deleted {known.root / store.FOLDER}.\n"
    assert not (known.root / store.FOLDER).exists()
    outcome = known.run("clean")
    assert (outcome.status, outcome.err) == (0, "")
    assert "nothing to delete" in outcome.out


def test_clean_leaves_alone_what_is_not_ours(known):
    known.write({"data/a.json": "{}"})
    outcome = known.run("clean", "--cache-dir", "data")
    assert outcome.status == 2
    assert "left alone" in outcome.err
    assert (known.root / "data/a.json").exists()
    known.write({f"{store.FOLDER}/mine.txt": "keep"})
    assert known.run("clean").status == 0
    assert [path.name for path in (known.root / store.FOLDER).iterdir()] == ["mine.txt"]

"""What an engine finds in public projects, against the findings there that were read and judged.

    python benchmarks/field.py [PROJECT ...] [--mirrors FOLDER] [--command COMMAND] [--against COMMAND]

The projects stand in docs/field/packages.jsonl, each with the version that anybody can fetch again: a release on PyPI,
or a commit of a public git repository. The judged findings stand in docs/field/findings.jsonl. The command fetches the
projects (only their Python files, nothing is installed or run), lints them with ``--preview``, and tells by verdict
which of the findings there are the same (unchanged), which are not found (lost), and which other ones are (gained). A
lost and a gained finding close to each other in one file, of rules of the same hundred, count as one that has moved.
Verdicts are right, debatable, wrong, unread (found when the data was frozen, but not judged) and new.

``--command`` is another linter to run in their place, in the folder of each project: it prints what ``spmdlint check
--output-format json`` prints, and ends with 0 or 1. With ``--against``, the findings are compared with what that second
command prints, not with the judged ones alone: that is how two engines are compared.

Rules of which a finding is right or wrong by itself (removed names, files that do not parse) are left out, except for
findings of theirs that were judged.

Ends with 0 if no right finding is lost, and none is gained but such as were judged right; else with 1; with 2 if a
project could not be fetched or linted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from spmdlint.rule import load_rules
from spmdlint.selection import codes_by_selector

DATA = Path(__file__).resolve().parent.parent / "docs" / "field"
VERDICTS = ("right", "debatable", "wrong", "unread", "new")
FACTUAL = ("SPMD602", "SPMD9")
NEAR = 12
"""Lines between a lost finding and a gained one that are taken for the same."""


class FieldError(Exception):
    """A project could not be fetched, or a command could not be run on it."""


@dataclass(frozen=True)
class Project:
    """A public project at one version: a release (``name==version``), or a repository's address and a commit.

    Attributes:
        pypi: the requirement, or empty.
        git: the address of the repository, or empty.
        commit: the whole hash.
        only: the folders that are linted; everything if empty.

    """

    name: str
    pypi: str = ""
    git: str = ""
    commit: str = ""
    only: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name in the cache."""
        parts = "".join(f" {folder}" for folder in self.only)
        return re.sub(r"[^\w.=@-]+", "+", (self.pypi or f"{repository(self.git)}@{self.commit[:12]}") + parts)


@dataclass(frozen=True, order=True)
class Finding:
    """A finding, by its place.

    Attributes:
        line: from 1.
        text: the digest of the line's text.
        verdict: one of ``VERDICTS``.
        preview: whether it needs ``--preview``.
        missed: it was judged, and the linter did not report it any more when the data was frozen.

    """

    path: str
    line: int
    code: str
    text: str = field(default="", compare=False)
    verdict: str = field(default="new", compare=False)
    preview: bool = field(default=False, compare=False)
    missed: bool = field(default=False, compare=False)
    message: str = field(default="", compare=False)


@dataclass
class Compared:
    """Findings by what has become of them."""

    unchanged: list[Finding] = field(default_factory=list)
    lost: list[Finding] = field(default_factory=list)
    gained: list[Finding] = field(default_factory=list)
    moved: list[tuple[Finding, Finding]] = field(default_factory=list)

    def fails(self) -> bool:
        """Whether a right finding is lost, or one is gained that is not known to be right."""
        return any(f.verdict == "right" for f in self.lost) or any(f.verdict != "right" for f in self.gained)


def repository(address: str) -> str:
    """``owner/name`` of the address of a repository."""
    return "/".join(address.removesuffix("/").removesuffix(".git").split("/")[-2:])


def digest(line: str) -> str:
    """What tells whether a line's text is still the one that was judged."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:12]


def projects(data: Path = DATA) -> list[Project]:
    """The projects whose version can be fetched."""
    return [
        Project(each["package"], only=tuple(each.get("only", ())), **each["source"])
        for each in _records(data / "packages.jsonl")
        if "source" in each
    ]


def _now(code: str) -> str:
    """The code of the rule that a rule is part of now: findings were judged, or are printed, with earlier codes."""
    return codes_by_selector(load_rules()).get(code, code)


def judged(project: str, data: Path = DATA) -> list[Finding]:
    """The findings in a project that were judged."""
    return [
        Finding(
            each["file"],
            each["line"],
            _now(each["code"]),
            each["text"],
            each["verdict"],
            each["preview"],
            each.get("missed", False),
        )
        for each in _records(data / "findings.jsonl")
        if each["package"] == project
    ]


def fetched(project: Project, cache: Path, mirrors: Path | None = None) -> Path:
    """The folder with the project's Python files, fetched if it is not in the cache.

    Raises:
        FieldError: it cannot be had.

    """
    folder = cache / project.key
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".part-") as temporary:
        part = Path(temporary, "files")
        part.mkdir()
        try:
            if project.pypi:
                _release(project, part)
            else:
                _commit(project, part, Path(temporary), mirrors)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
            raise FieldError(f"{project.name} could not be fetched: {said[-1] if said else error}") from None
        (part / "spmdlint.toml").write_text("")  # the root of the project, whatever is above the cache
        part.replace(folder)
    return folder


def _release(project: Project, into: Path) -> None:
    with tempfile.TemporaryDirectory() as downloads:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloads]
        done = subprocess.run([*pip, project.pypi], capture_output=True, check=False)
        if done.returncode:
            raise FieldError(f"{project.name}: pip could not download {project.pypi}: {done.stderr.decode().strip()}")
        unpack(project, Path(downloads), into)


def unpack(project: Project, downloads: Path, into: Path) -> None:
    """Write the Python files of the wheels and source distributions in a folder."""
    for archive in sorted(downloads.iterdir()):
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                for name in wheel.namelist():
                    _write(project, into, name, wheel.read(name) if name.endswith(".py") else None)
        else:
            with tarfile.open(archive) as source:
                for member in source:
                    name = member.name.partition("/")[2]  # without name-version/
                    opened = source.extractfile(member) if name.endswith(".py") and member.isfile() else None
                    _write(project, into, name, opened.read() if opened is not None else None)


def _commit(project: Project, into: Path, scratch: Path, mirrors: Path | None) -> None:
    git = None if mirrors is None else mirrored(mirrors, repository(project.git), project.commit)
    if git is None:
        git = scratch / "git"
        subprocess.run(["git", "init", "--quiet", "--bare", str(git)], check=True, capture_output=True)
        fetch = ["fetch", "--quiet", "--depth", "1", project.git, project.commit]
        subprocess.run(["git", "--git-dir", str(git), *fetch], check=True, capture_output=True)
    run = ["git", "--git-dir", str(git)]
    listed = subprocess.run([*run, "ls-tree", "-r", "-z", project.commit], check=True, capture_output=True).stdout
    blobs: dict[str, str] = {}
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        about, _, name = entry.partition("\t")
        mode, _, rest = about.partition(" ")
        if mode in ("100644", "100755") and name.endswith(".py"):
            blobs[name] = rest.split()[-1]
    asked = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    # A partial clone may lack some blobs; it is not asked to fetch them.
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}
    done = subprocess.run(
        [*run, "cat-file", "--batch"], input=asked, stdout=subprocess.PIPE, env=environment, check=True
    )
    for name, content in zip(blobs, _batch(done.stdout), strict=True):
        _write(project, into, name, content)


def _batch(said: bytes) -> Iterator[bytes | None]:
    """What ``git cat-file --batch`` has printed, object by object; None for one that is missing."""
    at = 0
    while at < len(said):
        head, _, _ = said[at : at + 200].partition(b"\n")
        at += len(head) + 1
        if head.endswith(b"missing"):
            yield None
        else:
            size = int(head.split()[-1])
            yield said[at : at + size]
            at += size + 1


def _write(project: Project, into: Path, name: str, content: bytes | None) -> None:
    parts = PurePosixPath(name).parts
    if content is None or not parts or ".." in parts or name.startswith("/"):
        return
    if project.only and not any(name.startswith(f"{folder}/") for folder in project.only):
        return
    path = into.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def mirrored(mirrors: Path, name: str, commit: str) -> Path | None:
    """The git directory of a repository in a folder of mirrors, if it holds the commit.

    A mirror of owner/name is called ``owner/name`` or ``owner+name``, perhaps with ``.git``; the git directory is the
    folder itself, or its ``.git`` or ``repo``.
    """
    for stem in (name, name.replace("/", "+")):
        for folder in (mirrors / stem, mirrors / f"{stem}.git"):
            for git in (folder / ".git", folder / "repo" / ".git", folder / "repo", folder):
                if (git / "HEAD").is_file():
                    asked = ["git", "--git-dir", str(git), "cat-file", "-e", f"{commit}^{{commit}}"]
                    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}
                    if subprocess.run(asked, capture_output=True, env=environment, check=False).returncode == 0:
                        return git
    return None


def found(command: Sequence[str], folder: Path, limit: float) -> list[Finding]:
    """What a command finds in a folder.

    Raises:
        FieldError: it failed, or took longer than ``limit`` seconds, or printed something else.

    """
    findings = [_finding(each, folder) for each in printed(command, folder, limit)]
    return sorted({finding: finding for finding in findings}.values())


def printed(command: Sequence[str], folder: Path, limit: float) -> list[dict[str, Any]]:
    """The findings in a folder, as a command prints them.

    Raises:
        FieldError: it failed, or took longer than ``limit`` seconds, or printed something else.

    """
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise FieldError(f"{folder.name}: {shlex.join(command)} was ended after {limit:.0f} s") from None
    except OSError as error:
        raise FieldError(f"{shlex.join(command)} cannot be run: {error}") from None
    try:
        findings: list[dict[str, Any]] = json.loads(done.stdout)
        if done.returncode not in (0, 1) or not all(_is_finding(each) for each in findings):
            raise ValueError
    except (ValueError, TypeError):
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise FieldError(f"{folder.name}: {shlex.join(command)} ended with {done.returncode}: {said}") from None
    return findings


def _is_finding(printed: object) -> bool:
    if not isinstance(printed, dict) or not {"filename", "location", "code", "message"} <= printed.keys():
        return False
    return isinstance(printed["location"], dict) and isinstance(printed["location"].get("row"), int)


def place_of(printed: dict[str, Any], folder: Path) -> tuple[str, int]:
    """The file and the line of a finding, or of a line in its explanation."""
    path, line = Path(printed["filename"]), printed["location"]["row"]
    return path.relative_to(folder).as_posix() if path.is_absolute() else path.as_posix(), line


def _finding(printed: dict[str, Any], folder: Path) -> Finding:
    name, line = place_of(printed, folder)
    lines = (folder / name).read_text(encoding="utf-8", errors="replace").split("\n")
    text = digest(lines[line - 1]) if 0 < line <= len(lines) else ""
    return Finding(name, line, _now(printed["code"]), text, message=printed["message"])


def compare(expected: Iterable[Finding], now: Iterable[Finding]) -> Compared:
    """What has become of the expected findings."""
    before, after = {f: f for f in expected}, {f: f for f in now}
    compared = Compared(unchanged=[before[each] for each in sorted(before.keys() & after.keys())])
    gained = [after[each] for each in sorted(after.keys() - before.keys())]
    for lost in sorted(before.keys() - after.keys()):
        lost = before[lost]
        near = [
            each
            for each in gained
            if each.path == lost.path and each.code[:5] == lost.code[:5] and abs(each.line - lost.line) <= NEAR
        ]
        if near:
            nearest = min(near, key=lambda each: (abs(each.line - lost.line), each))
            gained.remove(nearest)
            compared.moved.append((lost, nearest))
        else:
            compared.lost.append(lost)
    compared.gained = gained
    return compared


def verdicts(findings: Iterable[Finding], known: Sequence[Finding]) -> list[Finding]:
    """The findings with the verdicts that they were given."""
    by_place = {each: each for each in known}
    return [replace(each, verdict=by_place[each].verdict) if each in by_place else each for each in findings]


def counted(findings: Iterable[Finding], known: Sequence[Finding]) -> list[Finding]:
    """Those that are compared: without facts that nobody has to judge."""
    judged_ones = set(known)
    return [each for each in findings if each in judged_ones or not each.code.startswith(FACTUAL)]


def stale(project: str, known: Iterable[Finding], folder: Path) -> Iterator[str]:
    """What is wrong with the data: judged lines that are not there, or read differently now."""
    for each in known:
        path = folder / each.path
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
        if not 0 < each.line <= len(lines) or digest(lines[each.line - 1]) != each.text:
            yield f"{project}: {each.path}:{each.line} is not the line that was judged ({each.code})"


def told(name: str, compared: Compared) -> Iterator[str]:
    """What has changed in one project."""
    for word, findings in (("lost", compared.lost), ("gained", compared.gained)):
        for each in findings:
            said = f"  {each.message}" if word == "gained" else ""
            yield f"{word:7} {each.verdict:10} {each.code} {name}: {each.path}:{each.line}{said}"
    for before, after in compared.moved:
        place = f"{name}: {before.path}:{before.line}"
        yield f"moved   {before.verdict:10} {before.code} {place} -> {after.code} in line {after.line}"


def table(all_compared: Iterable[Compared]) -> Iterator[str]:
    """The numbers by verdict, in Markdown."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in all_compared:
        for word, findings in (("unchanged", each.unchanged), ("lost", each.lost), ("gained", each.gained)):
            counts.update((finding.verdict, word) for finding in findings)
        counts.update((before.verdict, "moved") for before, _ in each.moved)
    words = ("unchanged", "moved", "lost", "gained")
    yield f"| verdict | {' | '.join(words)} |"
    yield f"|---|{'---|' * len(words)}"
    for verdict in VERDICTS:
        yield f"| {verdict} | {' | '.join(str(counts[verdict, word]) for word in words)} |"


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _command(text: str) -> list[str]:
    """The words of a command. A program that is given by its path is still found in the folder of a project."""
    program, *rest = shlex.split(text)
    return [str(Path(program).absolute()) if os.sep in program and Path(program).is_file() else program, *rest]


def default_cache() -> Path:
    """Where fetched projects are kept, if nothing else is said."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spmdlint-field"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch, lint, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help="only these")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with packages.jsonl and findings.jsonl")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where fetched projects are kept")
    parser.add_argument("--mirrors", type=Path, help="a folder of git repositories that are looked at before GitHub")
    parser.add_argument("--command", help="the linter to run in the folder of each project")
    parser.add_argument("--against", help="compare with this linter, not with the judged findings")
    parser.add_argument("--no-preview", action="store_true", help="without the rules that run with --preview only")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one project")
    parser.add_argument("--jobs", type=int, default=1, help="projects at a time")
    parser.add_argument("--fetch-only", action="store_true", help="fill the cache, and lint nothing")
    options = parser.parse_args(arguments)
    usual = [sys.executable, "-m", "spmdlint", "check", ".", "--no-cache", "-j", "1", "--output-format", "json"]
    usual += [] if options.no_preview else ["--preview"]
    command = _command(options.command) if options.command else usual
    against = _command(options.against) if options.against else None
    chosen = projects(options.data)
    if unknown := set(options.projects) - {each.name for each in chosen}:
        parser.error(f"no such project: {', '.join(sorted(unknown))}")
    chosen = [each for each in chosen if not options.projects or each.name in options.projects]

    def one(project: Project) -> tuple[Compared, list[str]]:
        folder = fetched(project, options.cache.resolve(), options.mirrors)
        known = judged(project.name, options.data)
        problems = list(stale(project.name, known, folder))
        if problems:
            raise FieldError("\n".join(problems))
        if options.fetch_only:
            return Compared(), []
        now = counted(found(command, folder, options.limit), known)
        due = [each for each in known if not each.missed and not (options.no_preview and each.preview)]
        if against is not None:
            due = verdicts(counted(found(against, folder, options.limit), known), known)
        compared = compare(due, verdicts(now, known))
        return compared, list(told(project.name, compared))

    def guarded(project: Project) -> tuple[Compared, list[str], bool]:
        try:
            return *one(project), False
        except FieldError as error:
            return Compared(), [f"failed: {error}"], True

    every: list[Compared] = []
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for compared, lines, broke in pool.map(guarded, chosen):
            every.append(compared)
            failed += broke
            for line in lines:
                print(line, flush=True)
    print(f"\n{len(chosen)} projects{f', of which {failed} failed' if failed else ''}\n")
    print("\n".join(table(every)))
    return 2 if failed else int(any(each.fails() for each in every))


if __name__ == "__main__":
    shutil.which("git") or sys.exit("git is not installed here")
    sys.exit(main())

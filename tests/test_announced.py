"""Entry points are found where `importlib.metadata` finds them."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from spmdlint.announced import Announcement, announced
from spmdlint.rule import GROUP


def test_what_is_installed_here():
    known = {(point.name, point.value) for point in importlib.metadata.entry_points(group=GROUP)}
    assert known == set(announced(GROUP)) != set()
    known = {(point.name, point.value) for point in importlib.metadata.entry_points(group="console_scripts")}
    assert known == set(announced("console_scripts"))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Describe a package in a folder of Python's path of its own."""

    def install(folder, name, text):
        info = tmp_path / folder / name
        info.mkdir(parents=True)
        (info / "entry_points.txt").write_text(text)
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / folder)])

    return install


def test_of_two_versions_the_one_that_is_imported_counts(installed):
    installed(
        "first", "acme-2.0.dist-info", "[other]\na = wrong\n[acme.rules]\n# b = wrong\none = acme.rules:all [x]\n"
    )
    installed("second", "Acme-1.0.dist-info", "[acme.rules]\ntwo = acme.old\n")
    installed("third", "b.egg-info", "[acme.rules]\nthree = os.path:join\n")
    found = announced("acme.rules")
    assert found == [Announcement("one", "acme.rules:all [x]"), Announcement("three", "os.path:join")]
    assert found[1].load() is __import__("os").path.join


def test_packages_in_an_archive_are_found_too(tmp_path, monkeypatch):
    (tmp_path / "packages.zip").write_bytes(b"")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "packages.zip")])
    assert {point.name for point in announced(GROUP)} == {"spmdlint"}

"""Which files are tests: what they patch, they patch for themselves, and not for the program."""

from __future__ import annotations

from pathlib import Path


def is_test(path: Path, root: Path) -> bool:
    """Whether a file belongs to tests, judging by its name or that of a folder around it in the project at a root."""
    folders = path.parts[len(root.parts) : -1]
    return is_named_as_test(path) or path.stem == "conftest" or "test" in folders or "tests" in folders


def is_named_as_test(path: Path) -> bool:
    """Whether a file is called a module of tests, as test runners or people do."""
    return path.stem.startswith("test_") or path.stem.removesuffix("s").endswith("_test")

"""How findings are written. One module per format, imported only when it is asked for.

Each offers ``render(report) -> Iterator[str]``: pieces of text that, joined, are the output.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from spmdlint.output.report import Report

FORMATS = {
    "full": "spmdlint.output.full",
    "concise": "spmdlint.output.concise",
    "json": "spmdlint.output.json",
    "json-lines": "spmdlint.output.json_lines",
    "github": "spmdlint.output.github",
    "gitlab": "spmdlint.output.gitlab",
    "junit": "spmdlint.output.junit",
    "sarif": "spmdlint.output.sarif",
}
SHOWING_EDITS = frozenset(("json", "json-lines", "sarif"))
"""The formats that show the edits of fixes, and not only that there are fixes."""


def renderer(name: str) -> Callable[[Report], Iterator[str]]:
    """The function that writes a report in the format ``name``."""
    render: Callable[[Report], Iterator[str]] = importlib.import_module(FORMATS[name]).render
    return render

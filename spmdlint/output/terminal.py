"""Markdown as a terminal shows it: headings, lists and tables laid out, code in colour."""

from __future__ import annotations

from rich.console import Console
from rich.markdown import Markdown

WIDEST = 100
"""A page wider than this is hard to read."""


def show(markdown: str) -> None:
    """Write Markdown to standard output. NO_COLOR and TERM=dumb are honoured."""
    console = Console(highlight=False)
    console.print(Markdown(markdown, code_theme="ansi_dark", hyperlinks=False), width=min(console.width, WIDEST))

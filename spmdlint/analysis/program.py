"""The program as rules see it."""

from __future__ import annotations


class Program:
    """The whole project."""

"""Replacing an attribute of JAX's private modules, and putting it back."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.errors import Guard


class MissingSeamError(Exception):
    """JAX lacks something that a layer hooks into; the text says what."""


class Patches:
    """The replacements of one layer; all are undone together."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._done: list[tuple[Any, str, Any, Any]] = []
        self._undone = False

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace ``owner.name`` by ``make(original)``."""
        original = need(owner, name)
        if not callable(original):
            raise MissingSeamError(f"{_name(owner)}.{name} is nothing that can be called")
        replacement = make(original)
        try:
            setattr(owner, name, replacement)
        except (AttributeError, TypeError) as error:
            raise MissingSeamError(f"{_name(owner)}.{name} cannot be replaced") from error
        self._done.append((owner, name, original, replacement))

    def around(
        self,
        owner: Any,
        name: str,
        before: Callable[..., Any] | None = None,
        after: Callable[..., Any] | None = None,
        lastly: Callable[[Any], Any] | None = None,
        instead: Callable[..., Any] | None = None,
        takes: Sequence[str] = (),
    ) -> None:
        """Run steps of the checks around each call of ``owner.name``, which ``takes`` parameters that they read.

        It is called once whatever they do. ``before`` gets the arguments, and returns what ``after`` gets with the
        result and the arguments, and ``lastly`` alone, also after an exception. ``instead`` gets the result and returns
        the one to use; if it fails, that is the original result.
        """
        run = self.guard.run
        need_parameters(need(owner, name), *takes)

        def make(original: Any) -> Any:
            def watched(*args: Any, **named: Any) -> Any:
                if self._undone:
                    return original(*args, **named)
                seen = None if before is None else run(before, *args, **named)
                done: list[Any] = []
                try:
                    result = original(*args, **named)
                finally:
                    if lastly is not None:
                        run(lastly, seen)
                if after is not None:
                    run(after, seen, result, *args, **named)
                if instead is not None:
                    run(lambda: done.append(instead(result)))
                return done[0] if done else result

            return watched

        self.replace(owner, name, make)

    def put_back(self) -> list[str]:
        """What others have put back to the originals, so that nothing is seen there; wrapped once more is in place."""
        return [
            f"{_name(owner)}.{name}"
            for owner, name, original, replacement in list(self._done)
            if original is not replacement and inspect.getattr_static(owner, name, None) is original
        ]

    def undo(self) -> None:
        """Restore the originals, except where other code has replaced them since; the steps are not run any more."""
        self._undone = True
        for owner, name, original, replacement in reversed(self._done):
            if inspect.getattr_static(owner, name, None) is replacement:
                setattr(owner, name, original)
        self._done.clear()


def module(name: str) -> Any:
    """A module of JAX, or :class:`MissingSeamError`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingSeamError(f"there is no module {name}") from error


def need(owner: Any, name: str) -> Any:
    """An attribute of JAX, or :class:`MissingSeamError`; for a class its own, not one of its metaclass."""
    there = any(name in vars(base) for base in owner.__mro__) if isinstance(owner, type) else hasattr(owner, name)
    if not there:
        raise MissingSeamError(f"there is no {_name(owner)}.{name}")
    return getattr(owner, name)


def hide_frames() -> None:
    """Make JAX remove the frames of this package from tracebacks, as it does with its own."""
    traceback_util, here = module("jax._src.traceback_util"), str(Path(__file__).parents[1])
    if here not in getattr(traceback_util, "_exclude_paths", ()):
        need(traceback_util, "register_exclusion")(here)


def need_parameters(function: Any, *names: str) -> None:
    """Check that a function of JAX still has the parameters that its replacement reads."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    missing = [name for name in names if name not in parameters]
    if missing:
        raise MissingSeamError(f"{_name(function)} does not take {', '.join(missing)}")


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or type(thing).__name__)

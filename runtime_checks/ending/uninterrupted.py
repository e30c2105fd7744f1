"""An exception hook that an interrupt cannot enter.

An interrupt that waits for the main thread, as while that was blocked inside XLA, is raised as soon as any function in
Python is called: before the first line of a hook, where nothing can catch it, and Python would show it as an error of
the hook. A generator that is suspended within ``try`` is called there, and so catches it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from functools import partial
from types import TracebackType
from typing import Any

Hook = Callable[[type[BaseException], BaseException, "TracebackType | None"], Any]


def uninterrupted(hook: Hook) -> Callable[..., Any]:
    """The hook, without interrupts that came before or while it runs: what ends the program is still shown."""
    calls = _calls(hook)
    next(calls)
    return partial(max, key=calls.send)  # max is in C, and passes the three arguments on, one by one


def _calls(hook: Hook) -> Generator[int, Any, None]:
    while True:
        sent: list[Any] = []
        for _ in range(3):
            try:
                sent.append((yield 0))
            except KeyboardInterrupt:
                continue  # the argument is lost; that is the first one, which the others have, too
        error = next((one for one in sent if isinstance(one, BaseException)), None)
        if error is None:
            continue
        try:
            hook(type(error), error, sent[2] if len(sent) == 3 else error.__traceback__)
        except KeyboardInterrupt:
            continue
        except Exception as failure:  # of a hook that was there before: this one must be there for the next exception
            for each in (failure, error):
                sys.__excepthook__(type(each), each, each.__traceback__)

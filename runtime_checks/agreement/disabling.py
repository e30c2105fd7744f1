"""``disable()`` on some processes only: that is no divergence, and the checks step aside in all.

What a process calls after it is not seen, so calls of the others that it seems not to make prove nothing. Only where
all that went further have called it, too, are the numbers of their calls compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spmdlint.runtime_checks.records import Place, State
from spmdlint.runtime_checks.reporting.sentences import call_words, name_processes, place


def stopped_short(made: Mapping[int, int], ended: Mapping[int, State]) -> dict[int, State]:
    """The processes that called ``disable()`` after fewer calls of a group than one made that has not called it."""
    off = {process: state for process, state in ended.items() if process in made and state.get("switched_off")}
    most = max((count for process, count in made.items() if process not in off), default=0)
    return {process: state for process, state in off.items() if made[process] < most}


def aside_words(short: Mapping[int, State], made: Mapping[int, int], call_of: Callable[[int], Place]) -> str:
    """The line on that, in all processes; ``call_of`` gives the last call of a process."""
    first = min(short)
    at = place(short[first])
    count = "1 parallel call" if made[first] == 1 else f"{made[first]} parallel calls"
    ahead = max(sorted(process for process in made if process not in short), key=lambda process: made[process])
    return (
        f"the runtime checks are off in all processes from now on: {name_processes(short)} called disable()"
        f"{f' at {at}' if at else ''} after {count} of {name_processes(made)}, and process {ahead} is in call "
        f"{made[ahead]}, {call_words(call_of(ahead))}, without having called it. "
        "Call disable() on every process at the same place."
    )

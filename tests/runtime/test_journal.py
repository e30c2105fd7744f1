"""What the fast path notes, in one process without devices: the hook is called as JAX calls it before a dispatch."""

from __future__ import annotations

import threading
from collections.abc import Callable

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.ledger import Ledger
from spmdlint.runtime_checks.intercept.fastpath import LayoutHook
from spmdlint.runtime_checks.recording.journal import Journal
from tests.runtime.fakes import program

PAIR = (0, 1)


class Fast:
    """A program on the fast path, whose dispatch is nothing but the question for a layout."""

    def __init__(self, journal: Journal, called: Program) -> None:
        self.hook = LayoutHook(journal, called, None, "a layout")

    def dispatch(self) -> None:
        assert self.hook._to_xla_layout("float32") == "a layout"


def start() -> tuple[Journal, Fast]:
    journal = Journal(Ledger())
    return journal, Fast(journal, program("step", PAIR))


def lines(journal: Journal) -> list[int]:
    journal.drain()
    return [event.site.line for event in journal.calls if event.site is not None]


def in_thread(body: Callable[[], object]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def threads(journal: Journal) -> int:
    journal.drain()
    return len(journal.calls[-1].group.threads)


def test_a_thread_that_has_ended_before_its_call_is_numbered_has_its_name() -> None:
    journal, fast = start()
    fast.hook._to_xla_layout("float32")
    loader = threading.Thread(target=lambda: fast.hook._to_xla_layout("float32"), name="loader")
    loader.start()
    loader.join()
    journal.drain()
    assert journal.calls[-1].group.thread_names() == ["MainThread", "loader"]


def test_every_call_is_noted_with_its_line_in_order() -> None:
    journal, fast = start()
    ask = fast.hook._to_xla_layout

    def one() -> object:
        return ask("float32")

    def other() -> object:
        return ask("float32")  # at the same instruction of a function that is built alike

    calls = [one, one, other, one, other, other] * 2
    for call in calls:
        call()
    assert lines(journal) == [call.__code__.co_firstlineno + 1 for call in calls]


def library(name: str, source: str) -> Callable[..., object]:
    space: dict[str, object] = {}
    exec(compile(source, f"/x/site-packages/{name}.py", "exec"), space)
    made = space["call"]
    assert callable(made)
    return made


def test_calls_through_library_code_are_noted_with_the_line_of_the_user() -> None:
    journal, fast = start()
    ask = fast.hook._to_xla_layout
    through = library("flax", "def call(f):\n    return f('float32')")
    around = library("optax", "def call(f, one):\n    return f(one)")

    def mine(asked: Callable[[str], object]) -> object:
        return through(asked)

    calls = [lambda: through(ask), lambda: around(through, ask), lambda: around(mine, ask), lambda: mine(ask)] * 3
    for call in calls:
        call()
    here, inner = calls[0].__code__.co_firstlineno, mine.__code__.co_firstlineno + 1
    assert lines(journal) == [here, here, inner, inner] * 3
    assert len({id(event) for event in journal.calls}) == 3


def test_programs_are_numbered_in_the_order_in_which_they_are_called() -> None:
    journal, step = start()
    save = Fast(journal, program("save", PAIR))
    for number in range(40):
        (save if number % 7 == 3 else step).dispatch()
        if number % 10 == 9:
            journal.drain()
    names = [event.program.function for event in journal.calls]
    assert names == ["save" if number % 7 == 3 else "step" for number in range(40)]
    assert journal.calls[0].group.count == 40


def test_a_second_thread_is_noticed_at_its_first_call_from_a_line_of_its_own() -> None:
    journal, fast = start()
    ask = fast.hook._to_xla_layout
    ask("float32")
    ask("float32")
    assert threads(journal) == 1
    in_thread(lambda: ask("float32"))
    assert threads(journal) == 2
    assert journal.made == 3


def test_threads_beside_the_main_one_that_share_a_line_are_noticed() -> None:
    journal, fast = start()

    both = threading.Barrier(2)

    def call() -> None:
        for _ in range(5):
            both.wait()
            fast.hook._to_xla_layout("float32")

    other = threading.Thread(target=call)
    other.start()
    in_thread(call)
    other.join()
    assert threads(journal) == 2
    assert journal.made == 10


def test_a_thread_that_shares_a_line_with_the_main_one_is_noticed_after_the_next_numbering() -> None:
    journal, fast = start()

    def call() -> None:
        fast.hook._to_xla_layout("float32")

    call()
    in_thread(call)
    journal.drain()
    in_thread(call)
    assert threads(journal) == 2
    assert journal.made == 3

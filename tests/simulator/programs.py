"""Random programs of several processes: guards, loops, helpers, early returns, exceptions, agreement points."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

HEAD = """\
import os
import random
import time

import jax
import settings
from jax.experimental import multihost_utils

LEAD = jax.process_index() == 0
COUNT = jax.process_count()


@jax.pmap
def step(state):
    return state


@jax.pmap
def evaluate(state):
    return state


def is_lead():
    return jax.process_index() == 0


def agreed(flag):
    return bool(multihost_utils.process_allgather(flag)[settings.source])


class Job:
    def __init__(self, steps):
        self.steps = steps
        self.lead = jax.process_index() == 0
        self.verbose = settings.verbose

    @property
    def writes(self):
        return self.lead and self.verbose
"""

VARYING = {
    "process_index": "jax.process_index() == 0",
    "module constant": "LEAD",
    "helper": "is_lead()",
    "attribute": "job.lead",
    "property": "job.writes",
    "environment": 'int(os.environ["SLURM_PROCID"]) > 0',
    "clock": "time.time() > 1004",
    "chance": "random.random() < 0.5",
    "file": 'os.path.exists("stop")',
    "local name": "mine",
}
UNIFORM = (
    "job.verbose",
    "COUNT > 1",
    "settings.debug",
    "settings.sharded",
    "agreed(settings.debug)",
    "number > 1",
    "flag",
)
AGREED = ("agreed({})", "bool(multihost_utils.broadcast_one_to_all({}))")


@dataclass
class Program:
    """A text, and the sources and constructs that it was made of."""

    text: str
    sources: frozenset[str]
    constructs: frozenset[str]


@dataclass
class Writer:
    """Writes one program; ``room`` is how many statements it may still have."""

    chance: random.Random
    room: int = 14
    sources: set[str] = field(default_factory=set)
    constructs: set[str] = field(default_factory=set)
    helpers: list[str] = field(default_factory=list)

    def condition(self) -> str:
        """A condition: uniform, varying, agreed on, or put together."""
        pick = self.chance.random()
        if pick < 0.42:
            return self.chance.choice(UNIFORM)
        if pick < 0.54:
            return self.chance.choice(AGREED).format(self._varying())
        if pick < 0.64:
            joined = self.chance.choice((" and ", " or "))
            return joined.join((self.chance.choice(UNIFORM), self._varying()))
        return ("not " if self.chance.random() < 0.2 else "") + self._varying()

    def _varying(self) -> str:
        name = self.chance.choice(sorted(VARYING))
        self.sources.add(name)
        return VARYING[name] if name != "local name" else "mine"

    def block(self, depth: int, *, loop: bool = False, least: int = 1) -> list[str]:
        """Some statements, indented by four."""
        lines: list[str] = []
        for _ in range(self.chance.randint(least, 3)):
            if self.room > 0 or not lines:
                self.room -= 1
                lines += self.statement(depth, loop=loop)
        return [f"    {line}" for line in lines]

    def statement(self, depth: int, *, loop: bool) -> list[str]:
        """One statement and what is in it."""
        simple: list[Callable[[], list[str]]] = [self._parallel, self._parallel, self._local, self._local, self._agree]
        nested: list[Callable[[int, bool], list[str]]] = [
            self._if, self._if, self._either, self._same, self._for, self._while, self._try, self._call, self._return,
        ]  # fmt: skip
        if loop:
            nested += [self._leave, self._leave]
        if depth <= 0 or self.room <= 0 or self.chance.random() < 0.4:
            return self.chance.choice(simple)()
        return self.chance.choice(nested)(depth, loop)

    def _note(self, name: str) -> None:
        self.constructs.add(name)

    def _parallel(self) -> list[str]:
        calls = ("state = step(state)", "evaluate(state)", 'multihost_utils.sync_global_devices("a")')
        return [self.chance.choice((*calls, 'multihost_utils.sync_global_devices("b")'))]

    def _local(self) -> list[str]:
        return [self.chance.choice(("print(state)", "number = number + 1", "total = sum([1, 2])"))]

    def _agree(self) -> list[str]:
        return [self.chance.choice(("flag = agreed(flag)", f"flag = agreed({self._varying()})"))]

    def _if(self, depth: int, loop: bool) -> list[str]:
        self._note("if")
        return [f"if {self.condition()}:", *self.block(depth - 1, loop=loop)]

    def _either(self, depth: int, loop: bool) -> list[str]:
        self._note("if-else")
        return [
            f"if {self.condition()}:",
            *self.block(depth - 1, loop=loop),
            "else:",
            *self.block(depth - 1, loop=loop),
        ]

    def _same(self, depth: int, loop: bool) -> list[str]:
        self._note("complementary")
        call = self._parallel()[0]
        arms = [["    print(state)", f"    {call}"], [f"    {call}", "    number = 0"]]
        return [f"if {self.condition()}:", *arms[0], "else:", *arms[1]]

    def _for(self, depth: int, loop: bool) -> list[str]:
        del loop
        self._note("for")
        varying = self.chance.random() < 0.15
        if varying:
            self.sources.add("process_index")
        count = "jax.process_index() + 1" if varying else self.chance.choice(("job.steps", "COUNT", "2"))
        return [f"for number in range({count}):", *self.block(depth - 1, loop=True)]

    def _while(self, depth: int, loop: bool) -> list[str]:
        del loop
        self._note("while")
        extra = f" and not {self._varying()}" if self.chance.random() < 0.3 else ""
        body = self.block(depth - 1, loop=True)
        return ["left = 3", f"while left > 0{extra}:", "    left = left - 1", *body]

    def _leave(self, depth: int, loop: bool) -> list[str]:
        del depth, loop
        word = self.chance.choice(("break", "continue"))
        self._note(word)
        return [f"if {self.condition()}:", f"    {word}"]

    def _return(self, depth: int, loop: bool) -> list[str]:
        del depth, loop
        self._note("return")
        return [f"if {self.condition()}:", "    return state"]

    def _try(self, depth: int, loop: bool) -> list[str]:
        self._note("try")
        # Not what holds always on one process: the job would never get any further.
        failing = self.chance.choice(("settings.debug", VARYING["file"], VARYING["chance"]))
        self.sources.update(name for name in ("file", "chance") if VARYING[name] == failing)
        body = ["try:", f"    if {failing}:", '        raise OSError("disk")', *self.block(depth - 1, loop=loop)]
        handler = self.chance.choice((["    print(state)"], ["    state = step(state)"], ["    raise"]))
        if self.chance.random() < 0.3:
            return [*body, "finally:", '    multihost_utils.sync_global_devices("z")']
        return [*body, "except OSError:", *handler]

    def _call(self, depth: int, loop: bool) -> list[str]:
        del loop
        self._note("call")
        name = f"helper_{len(self.helpers)}"
        self.helpers.append("")
        body = self.block(min(depth - 1, 1))
        text = "\n".join([f"def {name}(job, state, mine, flag, number):", *body, "    return state"])
        self.helpers[int(name.rsplit("_", 1)[-1])] = text
        passed = self._varying() if self.chance.random() < 0.3 else "flag"
        return [f"state = {name}(job, state, mine, {passed}, number)"]


def program(seed: object) -> Program:
    """The program of a seed."""
    writer = Writer(random.Random(f"program {seed}"))
    body = writer.block(3, least=2)
    parts = [HEAD, *writer.helpers]
    main = ["def main(job, state, flag):", "    number = 0", "    mine = jax.process_index() % 2 == 1", *body]
    parts += ["\n".join([*main, "    return state"]), "main(Job(3), 0, settings.flag)"]
    return Program("\n\n\n".join(parts) + "\n", frozenset(writer.sources), frozenset(writer.constructs))

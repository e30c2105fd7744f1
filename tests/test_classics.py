"""The classic cases of the divergence check, each as it should be and as it should not.

Every case is linted as a file of its own, with one line that is due, or none.
"""

from __future__ import annotations

import textwrap

import pytest

PRELUDE = """\
import time

import jax
from jax.experimental import multihost_utils

rank = jax.process_index()
step = jax.pmap(lambda state: state)


def sync(name="a"):
    multihost_utils.sync_global_devices(name)


"""

# Each case: its name, and a text in which `# due: CODE` marks the only line that a finding stands on.
CASES = {
    "complementary branches with equal calls": """
        def main():
            if rank == 0:
                print("first")
                sync("a")
            else:
                sync("a")
        """,
    "complementary branches with other calls": """
        def main():
            if rank == 0:
                sync("a")
                sync("b")  # due: SPMD301
            else:
                sync("a")
        """,
    "branches that complete each other one after the other": """
        def main():
            if rank != 0:
                sync("ready")
            print("work")
            if rank == 0:
                sync("ready")
        """,
    "nested guards": """
        def main(verbose):
            if verbose:
                if rank == 0:
                    sync()  # due: SPMD301
        """,
    "nested guards on something alike": """
        def main(verbose):
            if rank == 0:
                if verbose:
                    print("here")
            if verbose:
                sync()
        """,
    "a guard by early return": """
        def main(state):
            if rank != 0:
                return None
            print("first")
            return step(state)  # due: SPMD301
        """,
    "an early return behind the calls": """
        def main(state):
            state = step(state)
            if rank != 0:
                return None
            return print(state)
        """,
    "a guard in a helper": """
        def is_first():
            return jax.process_index() == 0

        def main():
            if is_first():
                sync()  # due: SPMD301
        """,
    "a call in a helper": """
        def save(state):
            return multihost_utils.process_allgather(state)

        def main(state):
            if rank == 0:
                save(state)  # due: SPMD301
        """,
    "a property": """
        class Job:
            @property
            def first(self):
                return jax.process_index() == 0

            def save(self, state):
                if self.first:
                    step(state)  # due: SPMD301
        """,
    "a property that is alike": """
        class Job:
            def __init__(self, saves):
                self.saves = saves

            @property
            def due(self):
                return self.saves and jax.process_count() > 1

            def save(self, state):
                if self.due:
                    step(state)
        """,
    "a field of an object": """
        class Job:
            def __init__(self):
                self.lead = jax.process_index() == 0

        def main(state):
            job = Job()
            if job.lead:
                step(state)  # due: SPMD301
        """,
    "recursion": """
        def walk(tree):
            if not tree:
                return
            if rank == 0:
                sync()  # due: SPMD301
            walk(tree[1:])
        """,
    "recursion that all processes make": """
        def walk(tree):
            if tree:
                sync()
                walk(tree[1:])
            if rank == 0:
                print(tree)
        """,
    "a callback": """
        def every(number, callback):
            if number % 10 == 0 and rank == 0:
                callback()  # due: SPMD301

        def main():
            every(10, sync)
        """,
    "a callback for all": """
        def every(number, callback):
            if number % 10 == 0:
                callback()

        def main():
            every(10, sync)
            every(20, lambda: print(rank))
        """,
    "a container of functions": """
        HOOKS = {"sync": sync, "log": print}

        def main():
            if rank == 0:
                HOOKS["sync"]()  # due: SPMD301
            HOOKS["log"]("done")
        """,
    "a container of other functions": """
        HOOKS = {"sync": sync, "log": print}

        def main():
            if rank == 0:
                HOOKS["log"]("done")
            HOOKS["sync"]()
        """,
    "a value that a branch chose": """
        def main(state):
            steps = 1
            if rank == 0:
                steps = 2
            for _ in range(steps):
                state = step(state)  # due: SPMD303
            return state
        """,
    "a value that does not matter": """
        def main(state):
            name = "worker"
            if rank == 0:
                name = "first"
            for _ in range(2):
                state = step(state)
            return print(name, state)
        """,
    "a loop that ends on an agreed value": """
        def main(state):
            while True:
                late = time.time() > 1000
                if multihost_utils.broadcast_one_to_all(late):
                    break
                state = step(state)
            return state
        """,
    "a loop that ends on a value of each process": """
        def main(state):
            while True:
                late = time.time() > 1000
                if late:
                    break
                state = step(state)  # due: SPMD306
            return state
        """,
    "a barrier in finally": """
        def main(load):
            try:
                load()
            finally:
                sync()
        """,
    "a barrier in a handler": """
        def main(path):
            try:
                return open(path).read()
            except OSError:
                sync()  # due: SPMD304
                return None
        """,
    "an arm that raises": """
        def main(path, state):
            if rank == 0 and not path:
                raise ValueError("There is no path.")
            return step(state)
        """,
    "an arm that is for one process": """
        def main(state):
            if jax.process_count() == 1:
                return state
            sync()
            return step(state)
        """,
    "a generator": """
        def parts(rows):
            for row in rows[rank :: jax.process_count()]:
                yield row

        def main(rows):
            for row in parts(rows):
                step(row)  # due: SPMD303
        """,
    "a generator of the same length": """
        def parts(rows):
            size = len(rows) // jax.process_count()
            for row in rows[rank * size : (rank + 1) * size]:
                yield row

        def main(rows):
            for row in parts(rows):
                step(row)
        """,
    "a closure": """
        def make():
            first = jax.process_index() == 0

            def save(state):
                if first:
                    step(state)  # due: SPMD301

            return save
        """,
    "a context manager": """
        class Timer:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                if rank == 0:
                    print("done")

        def main(state):
            with Timer():
                return step(state)
        """,
    "a global that a function sets": """
        lead = False

        def start():
            global lead
            lead = jax.process_index() == 0

        def main(state):
            if lead:
                step(state)  # due: SPMD301
        """,
}


@pytest.fixture(scope="module")
def texts():
    return {name: PRELUDE + textwrap.dedent(text).strip("\n") + "\n" for name, text in CASES.items()}


def test_the_classic_cases(project, texts):
    files = {f"case_{number}.py": text for number, text in enumerate(texts.values())}
    project.write(files)
    found = sorted(project.check().found)
    due = sorted(
        (name, row, line.split("# due: ")[1])
        for name, text in files.items()
        for row, line in enumerate(text.split("\n"), start=1)
        if "# due: " in line
    )
    names = dict(zip(files, texts, strict=True))
    assert [(names[f], row, code) for f, row, code in found] == [(names[f], row, code) for f, row, code in due]

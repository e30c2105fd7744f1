"""The oracle's run: random programs, JAX's verdict on each, the linter's, and where they differ.

``make oracle`` is the long form, 10,000 programs; the tests run a short one. With ``--state FILE`` what was judged is
kept, one line a program, and a run that was cut off goes on behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
sys.path.insert(0, str(Path(__file__).parent))

import hypothesis
import jax
from hypothesis import HealthCheck, Phase, given, settings
from judging import Judged, judge
from programs import FAULTS, NO_FAULT, Case, Program, cases, programs

AT_LEAST = 35
"""How often every pair of a map, a collective and a fault stands in 10,000 programs."""


def schedule(total: int, seed: int) -> list[Case]:
    """The case of each program: every pair often enough first, and programs without a fault for the rest."""
    chance = random.Random(seed)
    every = cases()
    chance.shuffle(every)
    with_pair: dict[Pair, list[Case]] = {}
    for case in every:
        for pair in pairs(case):
            with_pair.setdefault(pair, []).append(case)
    missing = Counter(dict.fromkeys(with_pair, -(-AT_LEAST * total // 10_000)))
    seen: Counter[Case] = Counter()
    # Those first that few cases have: what these add to other pairs need not be added again.
    for pair, held in sorted(with_pair.items(), key=lambda item: len(item[1])):
        while missing[pair] > 0:
            best = max(held, key=lambda case: (sum(max(missing[p], 0) for p in pairs(case)), -seen[case]))
            seen[best] += 1
            missing.subtract(pairs(best))
    chosen = list(seen.elements())
    right = [case for case in every if case.fault == NO_FAULT]
    chosen += [right[n % len(right)] for n in range(total - len(chosen))]
    chance.shuffle(chosen)
    return chosen[:total]


Pair = tuple[str, str, str]


def pairs(case: Case) -> tuple[Pair, Pair, Pair]:
    """What the case has two by two, with the names of the two kinds."""
    return (
        ("map, collective", case.stack, case.collective),
        ("map, fault", case.stack, case.fault),
        ("collective, fault", case.collective, case.fault),
    )


def drawn(case: Case, count: int, seed: int) -> list[Program]:
    """Programs of a case, as Hypothesis draws them; without the plainest one, with which it always begins."""
    found: list[Program] = []

    @hypothesis.seed(zlib.crc32(f"{seed} {case}".encode()))
    @_settings(count + 1, (Phase.generate,))
    @given(programs(case))
    def collect(program: Program) -> None:
        found.append(program)

    collect()
    return found[1 : count + 1]


def _settings(count: int, phases: tuple[Phase, ...]) -> settings:
    return settings(
        max_examples=count, phases=phases, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )


def shrunk(judged: Judged, count: int, seed: int) -> Judged:
    """The plainest program of the same case that is judged alike; the given one where Hypothesis finds none."""
    least = [judged]

    @hypothesis.seed(seed)
    @_settings(count, (Phase.generate, Phase.shrink))
    @given(programs(judged.program.case))
    def fails(program: Program) -> None:
        again = judge(program)
        if again.outcome == judged.outcome:
            least[0] = again
            raise AssertionError(judged.outcome)

    with contextlib.suppress(AssertionError):
        fails()
    return least[0]


@dataclass(frozen=True)
class Result:
    """What is kept of a program that was judged; ``text`` only of one about which the two disagree."""

    case: Case
    verdict: str
    outcome: str
    error: str = ""
    text: str = ""


def run(total: int, seed: int, only: str = "", state: Path | None = None) -> Iterator[tuple[Result, Judged | None]]:
    """Judge ``total`` programs, those of a case one after the other; what the state holds is told from there."""
    wanted = Counter(case for case in schedule(total, seed) if only in f"{case.stack}/{case.collective}/{case.fault}")
    held = _held(state)
    for number, (case, count) in enumerate(wanted.items()):
        done = held.get(case, [])[:count]
        if len(done) == count:
            yield from ((result, None) for result in done)
            continue
        judged = [judge(program) for program in drawn(case, count, seed)]
        results = [_result(each) for each in judged]
        if state is not None:
            with state.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(result)) + "\n" for result in results[len(done) :])
        yield from zip(results, judged, strict=True)
        if number % 100 == 99:
            jax.clear_caches()


def _held(state: Path | None) -> dict[Case, list[Result]]:
    found: dict[Case, list[Result]] = {}
    if state is not None and state.exists():
        for line in state.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            result = Result(**{**told, "case": Case(**told["case"])})
            found.setdefault(result.case, []).append(result)
    return found


def _result(judged: Judged) -> Result:
    differs = judged.outcome not in ("agreed", "abstained")
    error = judged.error[:200] if judged.verdict == "other" else ""
    return Result(judged.program.case, judged.verdict, judged.outcome, error, show(judged) if differs else "")


def summary(results: list[Result]) -> dict[str, object]:
    """What a run showed, as numbers."""
    outcomes = Counter(each.outcome for each in results)
    told = len(results) - outcomes["abstained"]
    faulty = [each for each in results if each.verdict == "faulty"]
    recall = {}
    for fault in FAULTS:
        of_kind = [each for each in faulty if each.case.fault == fault]
        recall[fault] = [sum(each.outcome == "agreed" for each in of_kind), len(of_kind)]
    return {
        "programs": len(results),
        "faulty": len(faulty),
        "abstained": outcomes["abstained"],
        "agreement": outcomes["agreed"] / told if told else 0.0,
        "outcomes": dict(outcomes),
        "recall": recall,
        "pairs": _least_pairs(results),
    }


def _least_pairs(results: list[Result]) -> dict[str, list[object]]:
    """How often the rarest pair of each two of map, collective and fault was judged, among the possible ones."""
    seen = Counter(pair for each in results if each.verdict != "other" for pair in pairs(each.case))
    found: dict[str, list[object]] = {}
    for pair in sorted({pair for case in cases() for pair in pairs(case)}):
        label, *two = pair
        if label not in found or seen[pair] < found[label][0]:
            found[label] = [seen[pair], *two]
    return found


def show(judged: Judged) -> str:
    """A disagreement to read."""
    lines = [f"--- {judged.outcome}: {judged.program.case}", f"JAX: {judged.error[:300] or 'traces'}"]
    lines += [f"linter: {judged.findings or 'silent'}"]
    for name, text in judged.program.texts:
        lines += [f"## {name}.py", *(f"{row:3} {line}" for row, line in enumerate(text.split("\n"), start=1))]
    return "\n".join(lines)


def main() -> int:
    """Run, report, and end with 1 where the linter and JAX disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose map/collective/fault holds this text")
    parser.add_argument("--show", type=int, default=10, help="how many disagreements of each kind to shrink and print")
    parser.add_argument("--abstentions", action="store_true", help="print what JAX says of what it cannot judge")
    parser.add_argument("--state", type=Path, help="keep what was judged here, and go on from it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    judged = list(run(options.programs, options.seed, options.only, options.state))
    results = [result for result, _ in judged]
    told = summary(results)
    wrong = [(result, each) for result, each in judged if result.outcome not in ("agreed", "abstained")]
    if options.json:
        print(json.dumps({**told, "disagreements": [result.text for result, _ in wrong]}))
        return 1 if wrong else 0
    for key, value in told.items():
        print(f"{key}: {value}")
    if options.abstentions:
        _print_abstentions(results)
    shown: Counter[tuple[str, str]] = Counter()
    for result, each in wrong:
        kind = (result.outcome, result.case.fault)
        shown[kind] += 1
        if shown[kind] <= options.show:
            print(result.text if each is None else show(shrunk(each, 60, options.seed)))
    return 1 if wrong else 0


def _print_abstentions(results: list[Result]) -> None:
    kinds = Counter((each.case.stack, each.case.fault, each.error[:160]) for each in results if each.verdict == "other")
    for kind, count in kinds.most_common(40):
        print(count, kind)


if __name__ == "__main__":
    sys.exit(main())

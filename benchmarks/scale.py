"""How background mode's exchange scales: many real clients of one coordination service on this machine, no devices.

    python benchmarks/scale.py [CLIENTS ...]          64, 256 and 1,024 by default
    python benchmarks/scale.py --profile 90 1024      leaves time for a profiler
    python benchmarks/scale.py --short 1024           one divergence, and nothing measured before

The coordination service runs in a process of its own, together with client 0, which compares, as in a job. The other
clients live in a few processes, each client with the store, the journal, the listening thread and the looks of the
watching thread that a real process has, which a few threads drive in turn. Every client makes calls all the time.

Prints by number of clients what the first process takes of a core (processor time, not time on the wall, so that other
work on the machine disturbs little) while the clients are only connected, then with the checks in steady state, over a
time that holds everything that happens now and then. Then, several times, one client makes a call that all others do
not make: how long until the verdict is posted, and until every client has heard of it.
"""

from __future__ import annotations

import heapq
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jaxlib._jax as runtime

from spmdlint.runtime_checks.agreement.declared import VERDICT_KEY
from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.launch.service import held_port, with_heartbeats
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport.bounded import OWN
from spmdlint.runtime_checks.transport.exchange import Listener
from spmdlint.runtime_checks.transport.store import Store
from spmdlint.runtime_checks.watching.demand import Demand
from spmdlint.runtime_checks.watching.watcher import Watcher

A_PROCESS = 256  # clients
DRIVERS = 16  # threads that drive them
IDLE, STEADY = 20.0, 40.0  # seconds
TRIALS = 5  # divergences, at various times within an interval
HEARTBEAT = 100  # seconds, as in JAX


def client_of(address: str, number: int) -> Any:
    make = runtime.get_distributed_runtime_client
    client = with_heartbeats(
        make, HEARTBEAT, address, number, init_timeout=120, use_compression=True, shutdown_timeout=5
    )
    client.connect()
    return client


class Process:
    """What one process of the job has: a session, a watcher that somebody drives, and a listener."""

    def __init__(self, client: Any, me: int, count: int, trial: int) -> None:
        options = Options(mode="background", on_divergence="report", late_after=1e9, report_signal="off")
        self.session = Session(Store(client, f"scale/{trial}"), me, count, options)
        self.watcher = Watcher(self.session.parts, self.session.background, self.session.health, Demand("off"))
        self.session.job.wake_watcher = self.watcher.wake
        self.listener = Listener(self.session.job, self._woken)
        everyone = tuple(range(count))
        self.step = Program("step", everyone, module="one module")
        self.odd = Program("another", everyone, module="another module")
        self.heard: float | None = None
        self.background = self.session.background
        for program in (self.step, self.odd):
            self.session.own._explained[program.digest] = program.decisive()
        self.event = self.background.journal.event_of(self.step, Site("train.py", 21, "main"))

    def diverge(self) -> None:
        self.background.journal.note(self.background.journal.event_of(self.odd, Site("train.py", 30, "main")))

    def _woken(self, word: Any) -> None:
        self.watcher.told(word)
        self.look()

    def look(self) -> None:
        """What the watching thread does; and a call of the job's main thread."""
        self.background.journal.note(self.event)
        self.watcher.look()
        if self.heard is None and self.session.ending.verdict is not None:
            self.heard = time.time()


class Job:
    """Some processes of the job: each is looked after when it asks for that."""

    def __init__(self, clients: list[Any], numbers: range, count: int, trial: int) -> None:
        self.processes = [Process(client, me, count, trial) for client, me in zip(clients, numbers, strict=True)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        for process in self.processes:
            process.listener.start()
        self._thread.start()

    def _run(self) -> None:
        due = [(time.monotonic(), process.session.me, process) for process in self.processes]
        with ThreadPoolExecutor(DRIVERS, thread_name_prefix=OWN) as pool:
            while not self._stop.is_set():
                batch = []
                while due and due[0][0] <= time.monotonic() + 0.002:
                    batch.append(heapq.heappop(due)[2])
                list(pool.map(Process.look, batch))
                for process in batch:
                    # Not also every quarter second: what is measured is the coordinator, not the clients.
                    heapq.heappush(due, (time.monotonic() + process.background.rest(), process.session.me, process))
                self._stop.wait(max(0.0, due[0][0] - time.monotonic()))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        with ThreadPoolExecutor(DRIVERS) as pool:
            list(pool.map(lambda process: process.listener.stop(), self.processes))


def spent(seconds: float) -> float:
    """What this process takes of a core, in percent."""
    cpu, began = time.process_time(), time.monotonic()
    time.sleep(seconds)
    return 100 * (time.process_time() - cpu) / (time.monotonic() - began)


class Workers:
    """The processes that hold the other clients."""

    def __init__(self, address: str, count: int) -> None:
        self._all = [
            subprocess.Popen(
                [
                    sys.executable,
                    __file__,
                    "--worker",
                    address,
                    str(start),
                    str(min(start + A_PROCESS, count)),
                    str(count),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # they are ended in the middle of their work
                text=True,
            )
            for start in range(1, count, A_PROCESS)
        ]

    def tell(self, **words: Any) -> None:
        for worker in self._all:
            worker.stdin.write(json.dumps(words) + "\n")
            worker.stdin.flush()

    def hear(self) -> list[Any]:
        return [json.loads(worker.stdout.readline()) for worker in self._all]

    def end(self) -> None:
        for worker in self._all:
            worker.kill()
            worker.wait()


def serve(count: int, steady: float, port: int) -> None:
    """The service and client 0: the job's first process. With no time for a steady state, it is the short form."""
    address = f"127.0.0.1:{port}"
    service = with_heartbeats(runtime.get_distributed_runtime_service, HEARTBEAT, address, count)
    workers = Workers(address, count)
    clients = [client_of(address, 0)]
    workers.hear()
    time.sleep(2 if steady else 0)
    idle = spent(IDLE) if steady else 0.0
    posted, heard, shares, in_time = [], [], [0.0], 0.0
    for trial in range(TRIALS if steady else 1):
        job = Job(clients, range(1), count, trial)
        workers.tell(trial=trial)
        workers.hear()
        job.start()
        interval = job.processes[0].background.cadence.interval
        time.sleep(2 * interval + 3)
        if not trial and steady:
            shares = [spent(steady / 4) for _ in range(4)]
            in_time = published_in_time(job.processes[0])
        at = time.time() + 1 + interval * trial / TRIALS  # everywhere in an interval
        workers.tell(process=count // 2 + trial, at=at)
        client, key = clients[0], f"scale/{trial}/{VERDICT_KEY}"
        client.blocking_key_value_get(key, 60_000)
        posted.append(time.time() - at)
        told = workers.hear()
        times = [one for some in told for one in some["heard"]]
        assert len(times) == count - 1, f"{len(times)} of {count - 1} heard"
        heard.append(max(times) - at)
        job.stop()
    if not steady:
        told = f"verdict posted after {posted[0]:.1f} s, heard by all after {heard[0]:.1f} s"
        print(f"{count} clients: {told}", flush=True)
        workers.end()
        os._exit(0)
    share = statistics.fmean(shares)
    print(
        f"{count:5} clients: published every {interval:.2f} s ({in_time:.0f} % in time); first process {share:.1f} % "
        f"of a core, {share - idle:.1f} % more than with idle clients (quarters of the time: "
        f"{', '.join(f'{one:.1f}' for one in shares)}); verdict posted after {told_of(posted)}, heard by all after "
        f"{told_of(heard)}",
        flush=True,
    )
    workers.end()
    del service
    os._exit(0)


def told_of(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} s (at most {max(seconds):.1f} s of {len(seconds)})"


def published_in_time(first: Process) -> float:
    """Of how many clients something new was read within one and a half intervals, in percent."""
    (watched,) = first.background.leader._watched.values()
    since = time.monotonic() - 1.5 * first.background.cadence.interval
    return 100 * sum(moved > since for moved in watched.moved.values()) / first.session.count


def work(address: str, start: int, end: int, count: int) -> None:
    """A process that holds some clients, as long as it is told what to do."""
    numbers = range(start, end)
    with ThreadPoolExecutor(len(numbers)) as pool:
        clients = list(pool.map(lambda number: client_of(address, number), numbers))
    print(json.dumps("up"), flush=True)
    while True:
        trial = json.loads(sys.stdin.readline())["trial"]
        job = Job(clients, numbers, count, trial)
        job.start()
        print(json.dumps("up"), flush=True)
        told = json.loads(sys.stdin.readline())
        odd = [process for process in job.processes if process.session.me == told["process"]]
        time.sleep(max(0.0, told["at"] - time.time()))
        for process in odd:
            process.diverge()
        limit = time.time() + 60
        while time.time() < limit and any(process.heard is None for process in job.processes):
            time.sleep(0.02)
        print(json.dumps({"heard": [one.heard for one in job.processes if one.heard is not None]}), flush=True)
        job.stop()


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        address, *numbers = words[1:]
        work(address, *map(int, numbers))
    elif words[:1] == ["--serve"]:
        with held_port() as port:
            serve(int(words[1]), float(words[2]), port)
    else:
        steady = STEADY
        if words[:1] == ["--profile"]:
            steady, words = float(words[1]), words[2:]
        elif words[:1] == ["--short"]:
            steady, words = 0.0, words[1:]
        for count in [int(word) for word in words] or [64, 256, 1024]:
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            command = [sys.executable, __file__, "--serve", str(count), str(steady)]
            ended = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
            if ended.returncode:
                sys.exit(ended.stderr)  # else it is reports of divergences that were meant


main()

"""How background mode's exchange scales: many real clients of one coordination service on this machine, no devices.

    python benchmarks/scale.py [CLIENTS ...]          64, 256 and 1,024 by default

The coordination service runs in a process of its own, together with client 0, which compares. The other clients live in
a few processes, each client with the store, the journal and the publishing that a real process has, driven in turn by
one thread. Every client makes calls all the time. Prints by number of clients: what the service and the leader take of
a core in steady state, and, when one client makes another call than all others, how long it takes until the verdict is
posted and until every client has been woken with it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jaxlib._jax as runtime

from spmdlint.runtime_checks.fingerprint import Program
from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.listener import Listener
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.store import Store
from spmdlint.runtime_checks.watch import TICK

A_PROCESS = 256  # clients
STEADY = 16.0  # seconds
CALLS = 4  # calls of a client between two looks: what is measured is the coordinator, not the clients


def client_of(address: str, number: int) -> Any:
    client = runtime.get_distributed_runtime_client(
        address, number, init_timeout=120, use_compression=True, shutdown_timeout=5, heartbeat_timeout=3600
    )
    client.connect()
    return client


class Clients:
    """Some clients of the job, and what a watching thread would do for each of them."""

    def __init__(self, address: str, numbers: range, count: int) -> None:
        with ThreadPoolExecutor(len(numbers)) as pool:
            clients = list(pool.map(lambda number: client_of(address, number), numbers))
        options = Options(mode="background", on_divergence="report", late_after=1e9)
        self.sessions = [
            Session(Store(client, "scale"), number, count, options)
            for client, number in zip(clients, numbers, strict=True)
        ]
        everyone = tuple(range(count))
        self.step = Program("step", everyone, module="one module")
        self.odd = Program("another", everyone, module="another module")
        self.heard: list[float] = []
        self.diverge_at = float("inf")
        self.diverges: int | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        for session in self.sessions:
            Listener(session.exchange, lambda session=session: self._woken(session)).start()
        threading.Thread(target=self._run, daemon=True).start()

    def _woken(self, session: Session) -> None:
        background = session.background
        assert background is not None
        background.answer()
        if session.ending.verdict is None and session.ending.look() is not None:
            self.heard.append(time.time())

    def _run(self) -> None:
        # Spread over the interval, as the processes of a job are that started at their own pace.
        background = self.sessions[0].background
        assert background is not None
        pause = max(TICK, background.interval / 8) / len(self.sessions)
        while not self._stop.is_set():
            for session in self.sessions:
                began = time.monotonic()
                self._one(session)
                time.sleep(max(0.0, pause - (time.monotonic() - began)))

    def _one(self, session: Session) -> None:
        background = session.background
        assert background is not None
        journal, line = background.journal, Site("train.py", 21, "main")
        event = journal.event_of(self.step, line)
        for _ in range(CALLS):
            if session.me == self.diverges and time.time() > self.diverge_at:
                journal.note(journal.event_of(self.odd, Site("train.py", 30, "main")))
                self.diverge_at = float("inf")
            journal.note(event)
        background._explained.setdefault(self.step.digest, self.step.decisive())
        background._explained.setdefault(self.odd.digest, self.odd.decisive())
        if session.ending.verdict is None:
            background.tick()


def serve(count: int) -> None:
    """The service and client 0: the job's first process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    service = runtime.get_distributed_runtime_service(address, count, heartbeat_timeout=3600)
    starts = range(1, count, A_PROCESS)
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, "--worker", address, str(start), str(min(start + A_PROCESS, count)), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # they are ended in the middle of their work
            text=True,
        )
        for start in starts
    ]
    leader = Clients(address, range(1), count)
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    leader.start()
    session = leader.sessions[0]
    time.sleep(2 * session.background.interval + 3)
    cpu, began = time.process_time(), time.monotonic()
    time.sleep(STEADY)
    share = 100 * (time.process_time() - cpu) / (time.monotonic() - began)
    (watched,) = session.background.leader._watched.values()
    recent = [moved for moved in watched.moved.values() if time.monotonic() - moved < 1.5 * session.background.interval]
    in_time = 100 * len(recent) / count
    for worker in workers:
        worker.stdin.write(json.dumps({"process": count // 2, "at": time.time() + 1}) + "\n")
        worker.stdin.flush()
    at, limit = time.time() + 1, time.monotonic() + 60
    while session.ending.verdict is None and time.monotonic() < limit:
        time.sleep(0.01)
    posted = time.time() - at
    verdict = session.ending.verdict
    told = [json.loads(worker.stdout.readline()) for worker in workers]
    last = max(max(one["heard"], default=float("nan")) for one in told) - at
    heard = sum(len(one["heard"]) for one in told)
    words = verdict.message if verdict is not None else "no verdict"
    every = session.background.interval
    print(
        f"{count:5} clients: published every {every:.2f} s ({in_time:.0f} % in time); first process {share:.1f} % of a "
        f"core; "
        f"verdict after {posted:.1f} s, heard by {heard} of {count - 1} others after {last:.1f} s ({words})",
        flush=True,
    )
    for worker in workers:
        worker.kill()
        worker.wait()
    del service
    os._exit(0)


def work(address: str, start: int, end: int, count: int) -> None:
    clients = Clients(address, range(start, end), count)
    print("up", flush=True)
    sys.stdin.readline()
    clients.start()
    told = json.loads(sys.stdin.readline())
    clients.diverges, clients.diverge_at = told["process"], told["at"]
    limit = time.time() + 40
    while len(clients.heard) < len(clients.sessions) and time.time() < limit:
        time.sleep(0.05)
    print(json.dumps({"heard": clients.heard}), flush=True)
    sys.stdin.read()


def main() -> None:
    if "--worker" in sys.argv:
        address, *numbers = sys.argv[2:]
        work(address, *map(int, numbers))
    elif "--serve" in sys.argv:
        serve(int(sys.argv[2]))
    else:
        for count in [int(word) for word in sys.argv[1:]] or [64, 256, 1024]:
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run([sys.executable, __file__, "--serve", str(count)], check=True, env=environment)


main()

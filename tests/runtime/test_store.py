"""A client that lacks methods, refuses or goes away costs the checks, never the job."""

from __future__ import annotations

import pytest

from spmdlint.runtime_checks.errors import ChecksFailedError
from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.records import Message, UnknownRecordError
from spmdlint.runtime_checks.session import Session
from spmdlint.runtime_checks.transport import exchange
from spmdlint.runtime_checks.transport.bounded import in_slices
from spmdlint.runtime_checks.transport.store import Store, StoreLostError
from tests.runtime.fakes import FakeClient, Job, call


def without(*names: str) -> FakeClient:
    """A client of a JAX that lacks some methods."""
    methods = {name: getattr(FakeClient, name) for name in dir(FakeClient) if name.startswith(("key_", "blocking"))}
    kept = {name: method for name, method in methods.items() if name not in names}
    client: FakeClient = type("OldClient", (), {"__init__": FakeClient.__init__, **kept})()
    return client


@pytest.mark.parametrize("name", ["key_value_set", "blocking_key_value_get"])
def test_a_client_that_lacks_what_is_needed_is_refused_in_words(name: str) -> None:
    with pytest.raises(StoreLostError, match=name):
        Store(without(name), "job")


def test_a_job_has_one_name_and_another_job_another() -> None:
    """Recordings are named after it."""
    stores = [Store(client, "job") for client in (*[FakeClient()] * 2, FakeClient())]
    first, second, other = (store.name_of_job() for store in stores)
    assert first == second != other


def test_a_name_of_a_job_that_leads_to_another_folder_is_refused() -> None:
    client = FakeClient()
    client.key_value_set("job/name/job", '{"name": "../../mine"}')
    with pytest.raises(UnknownRecordError, match="name/job"):
        Store(client, "job").name_of_job()


def refusing() -> FakeClient:
    client = FakeClient()

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("UNAVAILABLE: connection reset")

    client.key_value_set = refuse  # type: ignore[method-assign,assignment]
    return client


def test_a_store_that_is_gone_stands_down_in_the_real_job(capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(Store(refusing(), "job"), 0, 2, Options())
    for _ in range(3):
        call(session, "step", (0, 1))
    assert not session.checks.active
    assert capfd.readouterr().err.count("the checks are off from now on") == 1


def test_a_store_that_is_gone_fails_a_rehearsal(tmp_path: object) -> None:
    session = Session(Store(refusing(), "job"), 0, 2, Options(run_folder=tmp_path))  # type: ignore[arg-type]
    with pytest.raises(ChecksFailedError, match="UNAVAILABLE"):
        call(session, "step", (0, 1))


STRANGE = (
    "",
    "not json",
    "[1, 2]",
    '"text"',
    "null",
    "\x1b[31m",
    '{"index": -1}',
    '{"index": NaN}',
    '{"index": 1e400}',
    '{"index": "1"}',
    '{"index": 1%s}' % ("0" * 5000),
    '{"function": 5}',
    '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"function": "%s"}' % ("x" * (9 << 20)),
)


def test_what_is_read_is_data() -> None:
    client = FakeClient()
    store = Store(client, "job")
    for text in STRANGE:
        client.key_value_set("job/key", text, allow_overwrite=True)
        with pytest.raises(UnknownRecordError, match="The record key"):
            store.get("key", Message)
    assert store.put("once", {"index": 1, "digest": "a", "of a later release": []})
    assert not store.put("once", {"index": 2})
    assert store.get("once", Message) == {"index": 1, "digest": "a"}


def test_who_leaves_the_checks_is_not_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    def body(session: Session) -> None:
        call(session, "step", (0, 1, 2))
        if session.me == 1:
            session.checks.failed(TypeError("a private function changed"))
        for _ in range(3):
            call(session, "step", (0, 1, 2))

    job = Job(3)
    assert job.run(body, steps_aside=True) == {}
    assert [session.checks.active for session in job.sessions] == [False] * 3
    assert "process 1 continues without checks" in capfd.readouterr().err


def test_many_are_woken_though_the_store_refuses_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "PAUSES", (0.0, 0.0, 0.0))
    client = FakeClient()
    put, asked = client.key_value_set, iter(range(10_000))

    def set_or_refuse(key: str, value: str, allow_overwrite: bool = False) -> None:
        if next(asked) % 3 == 0:
            raise RuntimeError("UNAVAILABLE: not now")
        put(key, value, allow_overwrite)

    client.key_value_set = set_or_refuse  # type: ignore[method-assign]
    for count in (3, 100):
        exchange.Job(Store(client, f"job{count}"), 0, count, Options()).wake_others({})
        woken = {key for key in client.values if key.startswith(f"job{count}/word/")}
        assert len(woken) >= count - 1 - count // 20, "a third is refused at first, few three times"


def test_a_process_that_was_stopped_while_it_waited_gives_the_store_time_to_answer() -> None:
    waits: list[float] = []

    def until_stopped(seconds: float) -> bool:
        """A wait during which this process is stopped, for as long as you like: it is over when the process goes on."""
        waits.append(seconds)
        return len(waits) > 1

    assert in_slices(until_stopped, 10.0)
    waits.clear()
    assert not in_slices(lambda seconds: bool(waits.append(seconds)), 10.0)  # type: ignore[func-returns-value]
    assert (sum(waits), max(waits) < 1) == (10.0, True)

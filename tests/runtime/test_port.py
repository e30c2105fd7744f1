"""Jobs that run beside each other on one machine keep apart."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from spmdlint.runtime_checks.launch.service import held_port
from tests.runtime.jobs import alone


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a port is only found, not held")
def test_a_held_port_is_given_to_nobody_who_asks_for_a_free_one() -> None:
    with ExitStack() as others, held_port() as port:
        asked = set()
        for number in range(800):  # limits allow 1,024 open files
            other = others.enter_context(socket.socket())
            if number % 2:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            other.bind(("127.0.0.1", 0))
            asked.add(other.getsockname()[1])
        assert port not in asked
        with socket.socket() as plain, pytest.raises(OSError, match="in use"):
            plain.bind(("127.0.0.1", port))


def test_the_service_binds_beside_the_holder(tmp_path: Path) -> None:
    ended = alone(
        tmp_path,
        """
        jax.distributed.initialize("127.0.0.1:{port}", 2, int(sys.argv[1]))
        print("joined", jax.process_count())
        """,
    )
    assert [(status, "joined 2" in output) for status, output in ended] == [(0, True)] * 2, ended

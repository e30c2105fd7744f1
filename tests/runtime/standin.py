"""Stands in for a process that :mod:`tests.runtime.forkserver` forks, where the parent is not to know of the server.

Its arguments are the address of the server and those of Python. The files of the forked process are those of this one,
which passes on the signals that it gets, and ends as that one does. It imports little: that is what it is for.
"""

import json
import os
import signal
import socket
import sys

address, *words = sys.argv[1:]
told, status = os.pipe()
lines = os.fdopen(told)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(address)
    request = {"words": words, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109
    socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2, status])
    os.close(status)
    pid = int(lines.readline())
os.closerange(0, 3)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
left = int(lines.readline())
if left < 0:
    signal.signal(-left, signal.SIG_DFL) if -left != signal.SIGKILL else None
    os.kill(os.getpid(), -left)
os._exit(left)

"""Whether what the user named can be read at all: no closed folder is on the way to it, and it is no pipe or device.

Python's questions about paths do not tell these from a path that does not exist: some raise, some answer no.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from spmdlint.errors import UsageError

GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The errors that say that there is nothing."""


def refuse_closed(path: Path) -> None:
    """Refuse a path that the permissions keep from being looked at; one that does not exist is left to the caller.

    Raises:
        UsageError: a folder on the way to it, or the folder that it is, may not be entered.

    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116  (Path.is_dir does not say why it cannot tell)
            os.stat(os.path.join(path, "."))  # noqa: PTH116, PTH118  (pathlib drops the dot)
    except OSError as error:
        if error.errno not in GONE:
            raise unreadable(path, reason(error)) from None


def refuse_unlike_files(path: Path) -> None:
    """Refuse what is neither a file nor a folder: reading a pipe waits for a writer, which may never come.

    Raises:
        UsageError: it is a pipe, a socket or a device.

    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UsageError(f"{path} is not a regular file; name a file, or pass the text to standard input with '-'.")


def unreadable(path: Path, why: str) -> UsageError:
    """The answer about a path that the user named and that cannot be read."""
    return UsageError(f"{path} cannot be read ({why}); make it readable, or leave it out.")


def reason(error: OSError) -> str:
    """Why something failed, in the words of the system."""
    return error.strerror or type(error).__name__

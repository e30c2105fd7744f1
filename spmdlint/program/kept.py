"""Summaries that are kept for the next run, by the text that they were made from and the linter that made them."""

from __future__ import annotations

import msgspec

from spmdlint.files.store import Store
from spmdlint.installed import digest_of
from spmdlint.program.summary import Summary
from spmdlint.program.written import Written, write


class Summaries:
    """The summaries in a store; none if there is no store."""

    def __init__(self, store: Store | None, made_by: str) -> None:
        self._store = store
        self._made_by = made_by

    def read(self, digest: bytes) -> Written | None:
        """The summary of a text with this digest; None if there is none."""
        document = None if self._store is None else self._store.read(self._name(digest))
        try:
            return None if document is None else _decoder.decode(document)
        except msgspec.MsgspecError:
            return None

    def keep(self, digest: bytes, summary: Summary | Written) -> Written | None:
        """Keep a summary, and return it in the form in which it is kept."""
        if self._store is None:
            return None
        written = write(summary) if isinstance(summary, Summary) else summary
        self._store.write(self._name(digest), msgspec.msgpack.encode(written))
        return written

    def _name(self, digest: bytes) -> str:
        return "code-" + digest_of((self._made_by, digest.hex()))


_decoder = msgspec.msgpack.Decoder(Written)

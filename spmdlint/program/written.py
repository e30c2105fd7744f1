"""Summaries as bytes: kept for the next run, and as workers' results.

The format is MessagePack, and the types of the summary are checked while it is read, so reading it makes nothing but
summaries, whatever the bytes are.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder, Ext

from spmdlint.files.store import Store as FileStore
from spmdlint.installed import digest_of
from spmdlint.program.layout import Layout
from spmdlint.program.summary import (
    Attribute,
    Block,
    Comment,
    Const,
    Formal,
    Function,
    FunctionKind,
    Idle,
    Load,
    Operation,
    Store,
    StoreAttribute,
    Summary,
    compact,
)


class _Function(Struct, array_like=True):
    """A :class:`Function` without its layout."""

    index: int
    kind: FunctionKind
    name: str
    qualname: str
    parent: int | None
    formals: tuple[Formal, ...]
    asynchronous: bool
    generator: bool
    globals: frozenset[str]
    nonlocals: frozenset[str]
    operations: list[Operation]
    blocks: list[Block]


class Written(Struct, array_like=True, tag=True):
    """A summary in its parts, each of them as bytes if it is not always needed."""

    functions: bytes
    layout: bytes
    comments: tuple[Comment, ...]
    essence: bytes | None = None
    idle: tuple[Idle, ...] = ()

    def meaning(self) -> bytes:
        """A digest of everything but the layout. Comments to the linter count: they refer to the lines beside them."""
        return hashlib.sha256(hashlib.sha256(self.functions).digest() + self._spoken()).digest()

    def essential(self) -> bytes:
        """The same without idle code."""
        return self.meaning() if self.essence is None else hashlib.sha256(self.essence + self._spoken()).digest()

    def _spoken(self) -> bytes:
        return _encoder.encode([comment for comment in self.comments if "spmdlint:" in comment.text])


def write(summary: Summary) -> Written:
    """A summary as bytes."""
    written = Written(_encoded(summary.functions), summary.layout.written, summary.comments)
    if summary.essence is not None:
        written.essence = hashlib.sha256(_encoded(summary.essence.functions)).digest()
        written.idle = summary.essence.idle
    return written


def _encoded(functions: Sequence[Function]) -> bytes:
    records = [_Function(*(getattr(each, name) for name in _FIELDS)) for each in functions]
    try:
        return _encoder.encode(records)
    except (OverflowError, UnicodeEncodeError):
        for record in records:
            record.operations = [_writable(operation) for operation in record.operations]
        return _encoder.encode(records)


def read(written: Written) -> Summary:
    """The summary that was written.

    Raises:
        msgspec.MsgspecError: the bytes are not a summary.

    """
    layout = Layout(written.layout)
    functions = [
        Function(
            each.index,
            each.kind,
            each.name,
            each.qualname,
            each.parent,
            layout,
            each.formals,
            each.asynchronous,
            each.generator,
            each.globals,
            each.nonlocals,
            each.operations,
            each.blocks,
        )
        for each in _decoder.decode(written.functions)
    ]
    for function in functions:
        for operation in function.operations:
            if type(operation) in _NAMED:  # isinstance takes three times as long
                operation.name = sys.intern(operation.name)  # type: ignore[union-attr, arg-type]
    compact(functions)
    return Summary(functions, layout, written.comments)


_FIELDS = _Function.__struct_fields__
# The same few names occur everywhere: interned, they take half the memory, and dictionary lookups are faster.
_NAMED = frozenset((Load, Store, Attribute, StoreAttribute))
# Values without a MessagePack form, by the number of the extension type that they are written as.
_ELLIPSIS, _COMPLEX, _INTEGER, _TEXT = range(4)
_READERS: dict[int, Callable[[str], object]] = {
    _ELLIPSIS: lambda _: Ellipsis,
    _COMPLEX: complex,
    _INTEGER: lambda text: int(text, 16),
    _TEXT: str,
}


def _extension(value: Any) -> Ext | list[int]:
    if value is Ellipsis:
        return Ext(_ELLIPSIS, b"")
    if isinstance(value, complex):
        return Ext(_COMPLEX, repr(value).encode())
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"a literal of type {type(value).__name__} cannot be serialised")


def _writable(operation: Operation) -> Operation:
    """Encodes integers of more than 64 bits, and strings with half of a surrogate pair."""
    if not isinstance(operation, Const):
        return operation
    value = operation.value
    if isinstance(value, int) and value.bit_length() > 63:
        return Const(Ext(_INTEGER, hex(value).encode()))
    if isinstance(value, str):
        return Const(Ext(_TEXT, value.encode("utf-8", "surrogatepass")))
    return operation


def _value(code: int, data: memoryview) -> object:
    if code not in _READERS:
        raise msgspec.DecodeError(f"there is no extension {code}")
    return _READERS[code](bytes(data).decode("utf-8", "surrogatepass"))


_encoder = Encoder(enc_hook=_extension, order="deterministic")
_decoder = Decoder(list[_Function], ext_hook=_value)


class Summaries:
    """The summaries in a store; none if there is no store."""

    def __init__(self, store: FileStore | None, made_by: str) -> None:
        self._store = store
        self._made_by = made_by

    def read(self, digest: bytes) -> Written | None:
        """The summary of a text with this digest; None if there is none."""
        document = None if self._store is None else self._store.read(self._name(digest))
        try:
            return None if document is None else _written.decode(document)
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


_written = Decoder(Written)

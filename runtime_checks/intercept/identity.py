"""The user's function behind a jitted one: `pmap` jits a function of JAX, with the user's in its closure."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from types import FrameType, SimpleNamespace
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import entered
from spmdlint.runtime_checks.owners import owner_of

DEPTH = 12
MODULE = "multihost_utils.py"
BROADCAST = "broadcast_one_to_all"
PUBLIC = {("_identity_fn", MODULE): "process_allgather", ("_psum", MODULE): BROADCAST}
NAMELESS = ("<unknown>", "<unnamed")  # prefixes of JAX's names for callables that are not functions


def users(known: weakref.WeakKeyDictionary[Any, Any], fun: Any, debug: Any) -> Any:
    """``debug``, JAX's information about ``fun``, or that of the user's function that ``fun`` wraps, kept in ``known``.

    Both have ``func_src_info`` ("step at /path/train.py:21") and ``arg_names``.
    """
    source = str(getattr(debug, "func_src_info", None) or "")
    place = source.partition(" at ")[2].rpartition(":")[0]
    if fun is None or (place and owner_of(place) != "inside"):
        return debug
    try:
        if fun not in known:
            known[fun] = _search(fun)
        return known[fun] or debug
    except TypeError:  # cannot be referenced weakly
        return debug


def name_of(fun: Any, name: str, frame: FrameType) -> str:
    """JAX's name for a function; if it has none, the name of the callable's class, or of what the user called."""
    if not name.startswith(NAMELESS):
        return name
    while isinstance(fun, functools.partial):
        fun = fun.func
    kind = type(fun)
    if fun is None or kind.__module__.partition(".")[0] in ("jax", "builtins"):
        return entered(frame) or name
    return kind.__name__


def identity_of(source: str | None, fallback: str) -> tuple[str, str | None]:
    """The name of a function and where it is defined, without the folder, from JAX's "step at /path/train.py:21".

    A function that JAX jits on behalf of a public one has the name of that: the same on every process.
    """
    if not source or source.startswith(NAMELESS):
        return fallback, None
    name, _, place = source.partition(" at ")
    path, _, line = place.rpartition(":")
    name, file = name or fallback, PurePath(path).name
    return PUBLIC.get((name, file), name), f"{file}:{line}" if path and line.isdigit() else None


def _search(fun: Any) -> Any:
    for _ in range(DEPTH):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif getattr(fun, "__wrapped__", None) is not None and fun.__wrapped__ is not fun:
            fun = fun.__wrapped__
        else:
            break
    closed_over = list(_closed_over(fun))
    for held in (getattr(fun, "__self__", None), *closed_over):
        info: Any = getattr(held, "debug_info", None) if type(held).__name__ == "WrappedFun" else None
        if getattr(info, "func_src_info", None):
            tree = next((one for one in closed_over if type(one).__name__ == "PyTreeDef"), None)
            names = info.arg_names if tree is None else leaf_names(info.arg_names, tree)
            return SimpleNamespace(func_src_info=info.func_src_info, arg_names=names)  # in JAX's fields
    return None


def leaf_names(parameters: Sequence[str] | None, tree: Any) -> list[str] | None:
    """The names of the arguments of a call by the names of the parameters; None if they are not known.

    ``tree`` is the `PyTreeDef` of the positional arguments and those by keyword. ``pmap`` knows the parameters only:
    one may have many leaves or none, and one that a partial gives has none.
    """
    import jax

    util = jax.tree_util
    leaves, _ = util.tree_flatten_with_path(util.tree_unflatten(tree, range(tree.num_leaves)))
    named = []
    for path, _leaf in leaves:
        place = path[1] if len(path) > 1 else None
        if isinstance(place, util.DictKey):
            name = str(place.key)
        elif isinstance(place, util.SequenceKey) and parameters is not None and place.idx < len(parameters):
            name = parameters[place.idx]
        else:
            return None
        named.append(f"{name}{util.keystr(path[2:])}")
    return named


def _closed_over(fun: Any) -> Iterator[Any]:
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def is_source(program: Program, frame: FrameType | None) -> bool | None:
    """Whether this process is the source of the broadcast in progress; None if the program is not part of one.

    It is read from the frame of JAX's function, which may have been imported by name before the checks were on.
    """
    if not (program.defined_at or "").startswith(f"{MODULE}:"):
        return None
    while frame is not None:
        code = frame.f_code
        if code.co_name == BROADCAST and PurePath(code.co_filename).name == MODULE:
            found = frame.f_locals.get("is_source")
            return found if found is None else bool(found)
        frame = frame.f_back
    return None

"""How a program spells an axis name: literally, or by one of the detours that real programs take."""

from __future__ import annotations

from writing import LIBRARY, MAIN, SETTINGS, Draw, Writer

Name = str | tuple[str, ...]


def spell(draw: Draw, writer: Writer, user: str, name: Name, *, plain: bool = False) -> str:
    """An expression for an axis name (or a tuple of them) in the module ``user``."""
    if plain:
        return repr(name)
    form = draw.pick(*FORMS)
    home = draw.pick(user, SETTINGS) if user != SETTINGS else user
    return form(draw, writer, user, home, name)


def _literal(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    return repr(name)


def _constant(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    constant = writer.fresh("AXIS")
    writer.add(home, f"{constant} = {name!r}")
    return writer.refer(draw, constant, home, user)


def _passed_on(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    """A constant of the settings that the library imports and the main module takes from there."""
    if user != MAIN:
        return _constant(draw, writer, user, SETTINGS, name)
    constant = writer.fresh("AXIS")
    writer.add(SETTINGS, f"{constant} = {name!r}")
    writer.add(LIBRARY, f"from {SETTINGS} import {constant}")
    return writer.refer(draw, constant, LIBRARY, user)


def _item(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    table = writer.fresh("AXES")
    text, index = draw.pick(
        (f"({name!r}, 'spare')", "[0]"),
        (f"['spare', {name!r}]", "[-1]"),
        (f"{{'batch': {name!r}, 'other': 'spare'}}", "['batch']"),
        (f"dict(batch={name!r})", "['batch']"),
        (f"{{'batch': {name!r}}}", ".get('batch')"),
    )
    writer.add(home, f"{table} = {text}")
    return writer.refer(draw, table, home, user) + index


def _unpacked(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    first, second = writer.fresh("FIRST"), writer.fresh("SECOND")
    writer.add(home, f"{first}, {second} = 'spare', {name!r}")
    return writer.refer(draw, second, home, user)


def _of_class(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    cls = writer.fresh("Axes")
    style = draw.pick("plain", "getattr", "inherited", "enum")
    if style == "enum":
        writer.need(home, "import enum")
        writer.add(home, f"class {cls}(enum.Enum):", f"    BATCH = {name!r}", "    SPARE = 'spare'")
        return f"{writer.refer(draw, cls, home, user)}.BATCH.value"
    writer.add(home, f"class {cls}:", f"    batch = {name!r}")
    if style == "inherited":
        base, cls = cls, writer.fresh("Axes")
        writer.add(home, f"class {cls}({base}):", "    spare = 'spare'")
    reference = writer.refer(draw, cls, home, user)
    return f"getattr({reference}, 'batch')" if style == "getattr" else f"{reference}.batch"


def _of_config(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    config, made = writer.fresh("Config"), writer.fresh("CONFIG")
    style = draw.pick("dataclass", "defaults", "namedtuple", "replace", "namespace")
    if style == "namespace":
        writer.need(home, "from types import SimpleNamespace")
        writer.add(home, f"{made} = SimpleNamespace(axis={name!r}, width=8)")
        return f"{writer.refer(draw, made, home, user)}.axis"
    if style == "namedtuple":
        writer.need(home, "from typing import NamedTuple")
        writer.add(home, f"class {config}(NamedTuple):", "    width: int", "    axis: object")
        writer.add(home, f"{made} = {config}(8, {name!r})")
        return f"{writer.refer(draw, made, home, user)}.axis"
    writer.need(home, "import dataclasses")
    default = repr(name) if style == "defaults" else "'spare'"
    decorator = "@dataclasses.dataclass(frozen=True)"
    writer.add(home, decorator, f"class {config}:", "    width: int = 8", f"    axis: object = {default}")
    text = {"dataclass": f"{config}(axis={name!r})", "defaults": f"{config}()"}.get(style)
    writer.add(home, f"{made} = {text or f'dataclasses.replace({config}(), axis={name!r})'}")
    return f"{writer.refer(draw, made, home, user)}.axis"


def _computed(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    if isinstance(name, tuple):
        inner = [spell(draw, writer, user, each, plain=True) for each in name]
        return draw.pick(f"({', '.join(inner)},)", f"({inner[0]},) + {name[1:]!r}", f"tuple([{', '.join(inner)}])")
    half = len(name) // 2
    part = writer.fresh("PART")
    writer.add(home, f"{part} = {name[half:]!r}")
    reference = writer.refer(draw, part, home, user)
    start = name[:half]
    return draw.pick(f"{start!r} + {reference}", f'f"{start}{{{reference}}}"', f"'%s%s' % ({start!r}, {reference})")


def _decided(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    flag = writer.fresh("FLAG")
    value, text = draw.pick(
        ("True", "({name!r} if {flag} else 'spare')"),
        ("None", "('spare' if {flag} is not None else {name!r})"),
        ("None", "({flag} or {name!r})"),
        ("''", "({flag} or {name!r})"),
        ("'small'", "({name!r} if {flag} == 'small' else 'spare')"),
    )
    writer.add(home, f"{flag} = {value}")
    return text.format(name=name, flag=writer.refer(draw, flag, home, user))


def _returned(draw: Draw, writer: Writer, user: str, home: str, name: Name) -> str:
    function = writer.fresh("axis_of")
    body = draw.pick(f"    return {name!r}", f"    name = {name!r}\n    return name")
    writer.add(home, f"def {function}():", *body.split("\n"))
    return f"{writer.refer(draw, function, home, user)}()"


FORMS = (_literal, _constant, _passed_on, _item, _unpacked, _of_class, _of_config, _computed, _decided, _returned)

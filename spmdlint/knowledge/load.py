"""Reads the tables of what library functions mean. They are data; no analysis names a library."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from spmdlint.errors import UsageError
from spmdlint.knowledge.files import file_names, read_file

Kind = Literal[
    "map", "jit", "transform", "apply", "collective", "mesh", "spec", "currying", "identity", "sharding",
    "constraint", "context", "decorator", "layer", "forward", "copy", "record",
]  # fmt: skip
Source = Literal["identity", "clock", "entropy", "files", "host", "signal", "thread", "callback", "completion", "hash"]


class Known(Struct, frozen=True):
    """What one library function means to the analyses.

    ``kind`` is

    - *map*: returns its function run once per device or row, with the axes of ``axes`` or ``mesh`` bound inside;
    - *jit*: returns its function compiled; *transform*: returns a function that calls its function, binding nothing;
    - *apply*: calls its function at once; *currying*: `functools.partial`; *identity*: a decorator that changes
      nothing;
    - *collective*: communicates over ``axes``; *mesh*: makes a mesh with ``axes``; *spec*: a partition spec;
    - *sharding*: puts a spec on a mesh; *constraint*: shards a value by a spec, inside traced code;
    - *decorator*: returns the function it decorates or, called without one, a decorator that does; it returns something
      else if the parameter ``unless`` is passed;
    - *layer*: makes an object that, when it is called, communicates over ``axes``, except if the parameter ``unless``
      is true, or only if the parameter ``when`` is: either the layer's own or, by its position in ``called``, the
      call's; ``off``: it is false if neither passes it, unless the program uses one of the methods ``switched_by``,
      which change it later;
    - *forward*: a method that passes the arguments after its ``parameters`` to ``method`` of the same object, without
      the keywords in ``drops``; for an object that a library made from functions, to these functions, or to that method
      of each, with another value inserted for that method's parameter ``inserts``; with ``initializes``, a library's
      layers do not communicate while it runs;
    - *copy*: a method that returns the same object with different fields;
    - *record*: makes an object with its parameters as attributes;
    - *context*: sets its mesh for the code after it or in its block.

    ``sizes``: the parameter of a mesh that gives the sizes of its axes. ``ambient``: without a mesh it takes that of
    the context. ``groups``: the parameter of a collective that splits its axis into groups. ``permutation``: the one
    that says who sends to whom, in pairs, or as the source of each destination if ``sources`` is true. ``ordered``: the
    order of its axes decides the result. ``even``: its groups must have equal sizes. ``unbound``: if nothing binds its
    axes, it does nothing. ``spmd``: the parameter that names mesh axes over which the mapped dimension is sharded.
    ``leaves``: the parameter that is a pytree whose leaves are passed to the function. ``specs``: the parameters that
    are partition specs for the axes of ``mesh``. ``needs_function``: it cannot be called without its function to make a
    decorator. ``spans``: it runs over several devices. ``by_hand``: it passes every process the rows of its own
    devices, so that other arrays are local. ``keeps``: the transformed function's result has the structure of the
    function's result. ``refs``: its function is a kernel, which is passed references: its parameters and results are
    not those of the call. ``parallel``: every process must make the call; ``compiled``: a call that a jit traces
    becomes part of its program. ``attribute`` marks a source that is a value, not a function. ``may_be_zero``: it
    decides a condition by itself, as its value may be zero or empty. ``unseeded``: it is a source only without
    arguments, ``at_most`` with that many, and unless the program calls ``seeded_by``. ``gathers``: it gives all
    processes the values of each. ``given_to``: an object with a method that is passed one is of that class.
    ``callback``: the parameter that is a function which runs at an unknown time; the values that it stores are the
    source. ``needs``: for a method, a module that a file has to import for it to count. ``listing`` and ``completion``:
    its results are in the order of a directory listing, or in the order of completion. ``shuffles``: it shuffles its
    result, differently on every process, unless one of these parameters says otherwise, or was passed an object that
    was made with a ``seed_of``; with ``asked``, only if that parameter is true. ``gives_strings``: it returns a list of
    strings. ``stacks``: it puts a sequence into an array, element by element. ``composes``: it composes its arguments
    to a program, in their order. ``gives_global``: it returns an array over the devices of a sharding, and ``local`` is
    the parameter that is this process's own part of it. ``per_device``: it returns arrays with one row per local
    device. ``batches``: the parameter that is the number of rows in a batch, of which the last one may be short.
    ``raised``: for an exception, the outside cause that raises it; ``reads``: it reads a file, which can fail.
    ``ends``: it ends the process, at once or soon. ``seed`` and ``label``: the parameters that are a seed, and a name
    by which processes match calls. ``deal_seed``: for a function that shuffles all records and then returns the part of
    one process, the parameter that is the seed; ``dealt``: the parameter that says which part, without which it does
    not split the records. ``runs``: for *apply*, its function runs unchanged, on each leaf or element, and is not
    traced. ``fills``: for an agreement point, the parameter that is the buffer for the result. ``rooted``: the
    parameter that counts on one process only, so that others may pass a value of a different form. ``cappable``: a
    property of the machine that no longer decides anything once it is capped. ``among``: the parameter that names the
    processes which take part; without it, all do. ``formerly``: the names that its parameters have in older versions of
    the library, by their present names. ``parts``: it returns all parts of some data, or what describes them, which may
    differ in size. ``part``: the parameter that says which of them it returns or describes; ``own``: it is that of this
    process. ``part_of``: the parameters that describe the part which it returns. ``evened_by``: the parameter that
    makes all parts the same size; with ``uneven``, they are the same by default, and these of its values, by the last
    parts of their names, make them differ. ``rounds``: the parameter that says how often the data is repeated; without
    it, endlessly. ``sampler``: the parameter that is an object which selects the records, perhaps endlessly.
    ``optional``: where a source finds nothing, it returns None.
    """

    name: str
    parameters: tuple[str, ...] = ()
    formerly: Mapping[str, str] = field(default_factory=dict)
    parts: bool = False
    part: str | None = None
    own: bool = False
    part_of: tuple[str, ...] = ()
    evened_by: str | None = None
    uneven: tuple[str, ...] = ()
    rounds: str | None = None
    sampler: str | None = None
    optional: bool = False
    kind: Kind | None = None
    function: tuple[str, ...] = ()
    axes: str | None = None
    mesh: str | None = None
    sizes: str | None = None
    ambient: bool = False
    only: str | None = None
    groups: str | None = None
    permutation: str | None = None
    sources: bool = False
    ordered: bool = False
    even: bool = False
    unbound: bool = False
    spmd: str | None = None
    leaves: str | None = None
    runs: bool = False
    inserts: str | None = None
    called: tuple[str, ...] = ()
    when: str | None = None
    unless: str | None = None
    off: bool = False
    switched_by: tuple[str, ...] = ()
    method: str | None = None
    drops: tuple[str, ...] = ()
    initializes: bool = False
    specs: tuple[str, ...] = ()
    needs_function: bool = False
    opaque: bool = False
    spans: bool = False
    by_hand: bool = False
    keeps: bool = False
    refs: bool = False
    parallel: bool = False
    compiled: bool = False
    checkpoint: bool = False
    agreement: bool = False
    any_shape: bool = False
    gathers: bool = False
    source: Source | None = None
    cappable: bool = False
    attribute: bool = False
    listing: bool = False
    shuffles: tuple[str, ...] = ()
    seed_of: str | None = None
    asked: str | None = None
    gives_strings: bool = False
    completion: bool = False
    stacks: bool = False
    composes: bool = False
    gives_global: bool = False
    local: str | None = None
    own_by: str | None = None
    per_device: bool = False
    batches: str | None = None
    raised: Source | None = None
    reads: bool = False
    ends: bool = False
    unseeded: bool = False
    may_be_zero: bool = False
    at_most: int | None = None
    seeded_by: str = ""
    given_to: str = ""
    callback: str | None = None
    needs: tuple[str, ...] = ()
    seed: str | None = None
    label: str | None = None
    deal_seed: str | None = None
    dealt: str | None = None
    fills: str | None = None
    rooted: str | None = None
    derives: bool = False
    derived_by: str | None = None
    among: str | None = None

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that may be passed by position."""
        return self.parameters[: self.parameters.index("*")] if "*" in self.parameters else self.parameters


class KnowledgeError(UsageError):
    """A knowledge table is not valid."""


_EXPECTED = {name: kind for name, kind in Known.__annotations__.items() if name != "name"}
_TABLES = ("aliases", "functions", "methods")
"""The tables that a user's knowledge may have."""
_PARAMETERS = (
    "axes", "mesh", "sizes", "only", "spmd", "leaves", "groups", "permutation", "callback", "seed", "label", "local",
    "batches", "asked", "deal_seed", "dealt", "fills", "rooted", "among", "part", "evened_by", "rounds", "sampler",
)  # fmt: skip
"""Keys whose value is the name of a parameter."""


class Knowledge(Struct, frozen=True):
    """All tables together: functions by canonical name, aliases, and methods by their bare name."""

    functions: Mapping[str, Known]
    aliases: Mapping[str, str]
    ranks: frozenset[str] = frozenset()
    methods: Mapping[str, Known] = field(default_factory=dict)
    array_modules: frozenset[str] = frozenset()
    no_arrays: frozenset[str] = frozenset()
    local_parts: frozenset[str] = frozenset()
    """Attributes of a global array that are lists of the parts on this process."""
    wrapped: Mapping[str, str] = field(default_factory=dict)
    """Names that other packages use for wrappers, and the names of the functions they wrap."""

    def canonical(self, name: str) -> str:
        """The canonical name of a dotted name; of the aliases that are a prefix of it, the longest counts."""
        for _ in range(4):
            if name in self.functions:
                return name
            for end in range(len(name), 0, -1):
                if end != len(name) and name[end] != ".":
                    continue
                home = self.aliases.get(name[:end])
                if home is not None:
                    name = home + name[end:]
                    break
            else:
                break
        return name

    def outside(self, name: str) -> str:
        """The same for a name that is certainly not one of the project's."""
        name = self.canonical(name)
        return name if name in self.functions else self.wrapped.get(name.rpartition(".")[2], name)

    def gives_array(self, name: str) -> bool:
        """Whether a function returns one array, as nearly all functions of its module do."""
        module, _, function = name.rpartition(".")
        return module in self.array_modules and function not in self.no_arrays

    def get(self, name: str) -> Known | None:
        return self.functions.get(name)


def extended(base: Knowledge, tables: Mapping[str, Any], where: str) -> Knowledge:
    """The knowledge extended by a user's own tables, which take precedence over the built-in ones.

    Raises:
        KnowledgeError: a table, a key or a value is not one of those described in :class:`Known`.

    """
    if not tables:
        return base
    for table in tables:
        if table not in _TABLES:
            raise KnowledgeError(f"{where} has the unknown table {table!r}. {_nearest(table, _TABLES)}")
    functions, methods, aliases = dict(base.functions), dict(base.methods), dict(base.aliases)
    read_tables(tables, where, functions, aliases)
    read_tables({"functions": tables.get("methods", {})}, where, methods, {})
    return replace(base, functions=functions, methods=methods, aliases=aliases)


@lru_cache(maxsize=1)
def built_in() -> Knowledge:
    """The tables that come with the linter."""
    functions: dict[str, Known] = {}
    aliases: dict[str, str] = {}
    ranks: set[str] = set()
    methods: dict[str, Known] = {}
    modules: set[str] = set()
    trees: set[str] = set()
    parts: set[str] = set()
    wrapped: dict[str, str] = {}
    for name in file_names():
        tables = read_file(name)
        read_tables(tables, name, functions, aliases)
        read_tables({"functions": tables.get("methods", {})}, name, methods, {})
        ranks.update(tables.get("environment", {}).get("identity", ()))
        modules.update(tables.get("arrays", {}).get("modules", ()))
        trees.update(tables.get("arrays", {}).get("except", ()))
        parts.update(tables.get("arrays", {}).get("local_parts", ()))
        wrapped.update((home.rpartition(".")[2], home) for home in tables.get("wrapped", {}).get("names", ()))
    return Knowledge(
        functions, aliases, frozenset(ranks), methods, frozenset(modules), frozenset(trees), frozenset(parts), wrapped
    )


def read_tables(tables: Mapping[str, Any], where: str, functions: dict[str, Known], aliases: dict[str, str]) -> None:
    """Add one file's tables.

    Raises:
        KnowledgeError: a key or a value is not one of those described in :class:`Known`.

    """
    for name, home in _table(tables, "aliases", where).items():
        if not isinstance(home, str):
            raise KnowledgeError(f"{where}: the alias {name!r} is {home!r}; it must be the name that it refers to.")
        aliases[name] = home
    for name, table in _table(tables, "functions", where).items():
        _verify(name, table, where)
        function = table.get("function", [])
        functions[name] = Known(
            **{
                **table,
                "name": name,
                "parameters": tuple(table.get("parameters", ())),
                "specs": tuple(table.get("specs", ())),
                "needs": tuple(table.get("needs", ())),
                "called": tuple(table.get("called", ())),
                "drops": tuple(table.get("drops", ())),
                "switched_by": tuple(table.get("switched_by", ())),
                "part_of": tuple(table.get("part_of", ())),
                "uneven": tuple(table.get("uneven", ())),
                "function": (function,) if isinstance(function, str) else tuple(function),
            }
        )


def _table(tables: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = tables.get(name, {})
    if not isinstance(found, Mapping):
        raise KnowledgeError(f"{where}: {name!r} is {found!r}; it must be a table.")
    return found


def _verify(name: str, table: object, where: str) -> None:
    """Reject anything that is not described in :class:`Known`."""
    if not isinstance(table, Mapping):
        raise KnowledgeError(f"{where}: {name!r} is {table!r}; it must be a table.")
    for key, value in table.items():
        if key not in _EXPECTED:
            raise KnowledgeError(f"{where}: {name!r} has the unknown key {key!r}. {_nearest(key, _EXPECTED)}")
        if not _fits(_EXPECTED[key], value) and not (key == "function" and isinstance(value, str)):
            raise KnowledgeError(f"{where}: {key!r} of {name!r} is {value!r}; it must be {_words(_EXPECTED[key])}.")
    for key, choices in (("kind", get_args(Kind)), ("source", get_args(Source)), ("raised", get_args(Source))):
        if key in table and table[key] not in choices:
            raise KnowledgeError(f"{where}: {key!r} of {name!r} is {table[key]!r}. {_nearest(table[key], choices)}")
    function = table.get("function", ())
    named = [table[key] for key in _PARAMETERS if key in table]
    named += [function] if isinstance(function, str) else function
    for parameter in named if "parameters" in table else ():
        if parameter not in table["parameters"]:
            raise KnowledgeError(f"{where}: {name!r} names {parameter!r}, which is not one of its parameters; add it.")


def _fits(kind: str, value: object) -> bool:
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind.startswith("int"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.startswith("Mapping"):
        return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, bool if kind == "bool" else str)


def _words(kind: str) -> str:
    if kind.startswith("int"):
        return "a number"
    if kind.startswith("Mapping"):
        return "a table of strings"
    return "a list of strings" if kind.startswith("tuple") else "true or false" if kind == "bool" else "a string"


def _nearest(word: str, choices: Collection[str]) -> str:
    from difflib import get_close_matches  # which only a mistake needs

    near = get_close_matches(word, list(choices), n=1)
    return f"Did you mean {near[0]!r}?" if near else f"It can be {', '.join(sorted(choices))}."

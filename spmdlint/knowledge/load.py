"""Reads the tables of what library functions mean. They are data; no analysis names a library."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from spmdlint.errors import UsageError
from spmdlint.knowledge.described import FACETS
from spmdlint.knowledge.files import file_names, read_file
from spmdlint.releases import Releases, version

Kind = Literal[
    "map", "jit", "transform", "apply", "collective", "mesh", "spec", "currying", "identity", "sharding",
    "constraint", "context", "decorator", "layer", "forward", "copy", "record", "dispatch", "constructor",
]  # fmt: skip
Variable = Literal["identity", "group", "host"]
_VARIABLES: tuple[Variable, ...] = get_args(Variable)
Once = Literal["run", "file", "folder"]
Facet = Literal["size", "order", "content", "shape", "batches"]
"""What a value may have in common with what it is made from: its number of elements, their order, what they are, the
shape of an array, and the sizes of the batches that an iterable gives."""
Source = Literal["identity", "clock", "entropy", "files", "host", "signal", "thread", "callback", "completion", "hash"]


class Known(Struct, frozen=True):
    """What one library function means to the analyses; ``described.py`` says what its kinds and fields mean."""

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
    unbound: bool = False
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
    opaque: bool = False
    spans: bool = False
    by_hand: bool = False
    keeps: bool = False
    refs: bool = False
    parallel: bool = False
    compiled: bool = False
    checkpoint: bool = False
    until: str = ""
    since: str = ""
    agreement: bool = False
    any_shape: bool = False
    gathers: bool = False
    pure: bool = False
    source: Source | None = None
    cappable: bool = False
    attribute: bool = False
    listing: bool = False
    listed_by: int | None = None
    shuffles: tuple[str, ...] = ()
    splits: bool = False
    seed_of: str | None = None
    asked: str | None = None
    gives_strings: bool = False
    completion: bool = False
    stacks: bool = False
    along: int | None = None
    composes: bool = False
    gives_global: bool = False
    local: str | None = None
    own_by: str | None = None
    per_device: bool = False
    batches: str | None = None
    raised: Source | None = None
    reads: bool = False
    once: Once | None = None
    ends: bool = False
    at_most: int | None = None
    seeded_by: str = ""
    seeds: tuple[str, ...] = ()
    seeded_with: str | None = None
    manages: bool = False
    set_by: str = ""
    given_to: str = ""
    callback: str | None = None
    needs: tuple[str, ...] = ()
    seed: str | None = None
    label: str | None = None
    agree: Mapping[str, str] = field(default_factory=dict)
    laid_out: str | None = None
    deal_seed: str | None = None
    order_seed: str | None = None
    dealt: str | None = None
    fills: str | None = None
    equates: tuple[str, ...] = ()
    rooted: str | None = None
    derives: bool = False
    derived_by: str | None = None
    among: str | None = None
    passes: tuple[str, ...] | None = None
    through: tuple[str, ...] = ()
    like: str | None = None
    shaped_by: str | None = None
    selects: str | None = None
    counts: bool = False

    @property
    def contract(self) -> Mapping[str, tuple[str, ...]]:
        """By parameter: the facets in which its arguments must be the same on all processes."""
        named = {self.label: "name", self.seed: "seed", self.deal_seed: "deal"}
        named |= dict.fromkeys((self.permutation, self.groups), "indices")
        return {p: tuple(facets.split()) for p, facets in self.agree.items()} | {p: (f,) for p, f in named.items() if p}

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that may be passed by position."""
        return self.parameters[: self.parameters.index("*")] if "*" in self.parameters else self.parameters


class KnowledgeError(UsageError):
    """A knowledge table is not valid."""


_EXPECTED = {name: kind for name, kind in Known.__annotations__.items() if name != "name"}
_TABLES = ("aliases", "functions", "methods")
"""The tables that a user's knowledge may have."""
_OF_UNKNOWN = frozenset((
    "parameters", "source", "callback", "needs", "completion", "shuffles", "seed_of", "asked", "ends", "own", "parts",
    "part", "part_of", "evened_by", "uneven", "rounds", "sampler", "dealt", "deal_seed", "passes", "through", "counts",
))  # fmt: skip
"""Keys that count for a method of an object of which nothing is known but the method's name."""
_PARAMETERS = (
    "axes", "mesh", "sizes", "only", "leaves", "groups", "permutation", "callback", "seed", "label", "local",
    "batches", "asked", "deal_seed", "dealt", "fills", "rooted", "among", "part", "evened_by", "rounds", "sampler",
    "order_seed", "laid_out", "shaped_by",
)  # fmt: skip
"""Keys whose value is the name of a parameter."""


class Knowledge(Struct, frozen=True, dict=True):
    """All tables together: functions by canonical name, aliases, and methods by their bare name."""

    functions: Mapping[str, Known]
    aliases: Mapping[str, str]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    """What the environment variables of launchers tell a process of itself."""
    methods: Mapping[str, Known] = field(default_factory=dict)
    array_modules: frozenset[str] = frozenset()
    no_arrays: frozenset[str] = frozenset()
    local_parts: frozenset[str] = frozenset()
    """Attributes of a global array that are lists of the parts on this process."""
    draws: frozenset[str] = frozenset()
    """Methods of the generators of Python and NumPy that draw random numbers."""
    wrapped: Mapping[str, str] = field(default_factory=dict)
    """Names that other packages use for wrappers, and the names of the functions they wrap."""
    declared: frozenset[str] = frozenset()
    """The names of the user's own tables, which count for what the project itself defines as well."""

    @cached_property
    def equating(self) -> frozenset[str]:
        """The last parts of the names of functions that raise unless two values are equal."""
        return frozenset(name.rpartition(".")[2] for name, known in self.functions.items() if known.equates)

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The names of the libraries of which some function is known, and of the standard ones."""
        return frozenset(name.partition(".")[0] for name in self.functions) | sys.stdlib_module_names

    def is_rank(self, variable: object) -> bool:
        """Whether an environment variable of this name tells a process its number."""
        return isinstance(variable, str) and self.variables.get(variable) == "identity"

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

    def transfer(self, name: str) -> Known | None:
        """The row that says what passes through a function: its own, or that of the nearest module around it."""
        known, rest = self.functions.get(name), ""
        while name and (known is None or known.passes is None):
            if known is not None and known.like is not None:
                return self.transfer(known.like + rest)
            name, _, last = name.rpartition(".")
            known, rest = self.functions.get(name), f".{last}{rest}"
        return known if name else None

    def named_alike(self, name: str) -> Known | None:
        """For a function without a row: that of a method of its name which is about what it is passed."""
        known = self.methods.get(name.rpartition(".")[2]) if name not in self.functions else None
        return known if known is not None and known.through else None

    def gives_array(self, name: str) -> bool:
        """Whether a function returns one array, as nearly all functions of its module do."""
        module, _, function = name.rpartition(".")
        return module in self.array_modules and function not in self.no_arrays

    def get(self, name: str) -> Known | None:
        return self.functions.get(name)


def extended(base: Knowledge, tables: Mapping[str, Any], where: str) -> Knowledge:
    """The knowledge extended by a user's own tables, which take precedence over the built-in ones.

    Raises:
        KnowledgeError: a table, a key or a value is not one of those in :class:`Known`.

    """
    if not tables:
        return base
    for table in tables:
        if table not in _TABLES:
            raise KnowledgeError(f"{where} has the unknown table {table!r}. {_nearest(table, _TABLES)}")
    own: dict[str, Known] = {}
    bare: dict[str, Known] = {}
    aliases: dict[str, str] = {}
    read_tables(tables, where, own, aliases)
    for name, known in _methods(tables, where).items():
        (own if "." in name else bare)[name] = known
    # A name that the built-in tables know by another one is what the user says under both.
    own = {base.canonical(name): replace(known, name=base.canonical(name)) for name, known in own.items()} | own
    return replace(
        base,
        functions={**base.functions, **own},
        methods={**base.methods, **bare},
        aliases={**base.aliases, **aliases},
        declared=frozenset((*own, *aliases)),
    )


def of_releases(base: Knowledge, allowed: Mapping[str, Releases]) -> Knowledge:
    """The knowledge for a program that is written for some releases: what is a parallel call in later ones is none."""
    early = {
        name: replace(known, parallel=False, checkpoint=False)
        for name, known in base.functions.items()
        if known.since and allowed.get(name.partition(".")[0], Releases()).ends_before(version(known.since))
    }
    return replace(base, functions={**base.functions, **early}) if early else base


def _methods(tables: Mapping[str, Any], where: str) -> dict[str, Known]:
    """The table ``methods``: with the class in its name a method is a function; without, one of an unknown object."""
    methods = _table(tables, "methods", where)
    for name, table in methods.items():
        lost = [key for key in table if key not in _OF_UNKNOWN] if isinstance(table, Mapping) else []
        if "." not in name and lost and lost[0] in _EXPECTED:
            raise KnowledgeError(
                f"{where}: {name!r} names no class, and {lost[0]!r} can only be said of the methods of one. "
                f'Write [knowledge.methods."acme.dist.Group.{name}"], with the class that has it.'
            )
    found: dict[str, Known] = {}
    read_tables({"functions": methods}, where, found, {})
    return found


@lru_cache(maxsize=1)
def built_in() -> Knowledge:
    """The tables that come with the linter."""
    functions: dict[str, Known] = {}
    aliases: dict[str, str] = {}
    variables: dict[str, Variable] = {}
    methods: dict[str, Known] = {}
    modules, trees, parts, draws = (set[str]() for _ in range(4))
    wrapped: dict[str, str] = {}
    for name in file_names():
        tables = read_file(name)
        read_tables(tables, name, functions, aliases)
        read_tables({"functions": tables.get("methods", {})}, name, methods, {})
        told = tables.get("environment", {})
        variables.update((each, kind) for kind in _VARIABLES for each in told.get(kind, ()))
        modules.update(tables.get("arrays", {}).get("modules", ()))
        trees.update(tables.get("arrays", {}).get("except", ()))
        parts.update(tables.get("arrays", {}).get("local_parts", ()))
        draws.update(tables.get("generators", {}).get("draws", ()))
        wrapped.update((home.rpartition(".")[2], home) for home in tables.get("wrapped", {}).get("names", ()))
    names = (frozenset(modules), frozenset(trees), frozenset(parts), frozenset(draws))
    return Knowledge(functions, aliases, variables, methods, *names, wrapped)


def read_tables(tables: Mapping[str, Any], where: str, functions: dict[str, Known], aliases: dict[str, str]) -> None:
    """Add one file's tables.

    Raises:
        KnowledgeError: a key or a value is not one of those in :class:`Known`.

    """
    for name, home in _table(tables, "aliases", where).items():
        if not isinstance(home, str):
            raise KnowledgeError(f"{where}: the alias {name!r} is {home!r}; it must be the name that it refers to.")
        aliases[name] = home
    for name, table in _table(tables, "functions", where).items():
        _verify(name, table, where)
        if name in functions:
            raise KnowledgeError(f"{where}: {name!r} has a row in another file already, which this one would hide.")
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        if isinstance(given.get("function"), str):
            given["function"] = (given["function"],)
        functions[name] = Known(**{**given, "name": name})


def _table(tables: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = tables.get(name, {})
    if not isinstance(found, Mapping):
        raise KnowledgeError(f"{where}: {name!r} is {found!r}; it must be a table.")
    return found


def _verify(name: str, table: object, where: str) -> None:
    """Reject anything that is not in :class:`Known`."""
    if not isinstance(table, Mapping):
        raise KnowledgeError(f"{where}: {name!r} is {table!r}; it must be a table.")
    for key, value in table.items():
        if key not in _EXPECTED:
            raise KnowledgeError(f"{where}: {name!r} has the unknown key {key!r}. {_nearest(key, _EXPECTED)}")
        if not _fits(_EXPECTED[key], value) and not (key == "function" and isinstance(value, str)):
            raise KnowledgeError(f"{where}: {key!r} of {name!r} is {value!r}; it must be {_words(_EXPECTED[key])}.")
    for key, kind in (("kind", Kind), ("source", Source), ("raised", Source), ("once", Once)):
        choices = get_args(kind)
        if key in table and table[key] not in choices:
            raise KnowledgeError(f"{where}: {key!r} of {name!r} is {table[key]!r}. {_nearest(table[key], choices)}")
    for facet in (each for facets in table.get("agree", {}).values() for each in facets.split()):
        if facet not in FACETS:
            raise KnowledgeError(f"{where}: 'agree' of {name!r} names the facet {facet!r}. {_nearest(facet, FACETS)}")
    for facet in table.get("passes", ()):
        if facet not in get_args(Facet):
            raise KnowledgeError(f"{where}: {name!r} passes {facet!r}. {_nearest(facet, get_args(Facet))}")
    function = table.get("function", ())
    named = [*table.get("agree", ()), *table.get("through", ()), *(table[key] for key in _PARAMETERS if key in table)]
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


def expected(key: str) -> str:
    """What a key of a function's table accepts, in words."""
    if key == "function":
        return "a string, or a list of strings"
    return _words(_EXPECTED[key])


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

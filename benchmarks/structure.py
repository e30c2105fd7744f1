"""Counts what the size of an analysis does not show: library names, rule codes, tuned numbers, recognisers of code.

    python benchmarks/structure.py [FOLDER ...] [--list KIND]

reads Python files (``spmdlint/analysis`` by default) without importing them, and prints a row per folder. With
``--write`` the figures of the linter's packages go to ``benchmarks/structure.toml``: ``tests/test_structure.py`` fails
if one is higher than there. Counted are:

*modules*: files; *lines*: all lines of all files, blank ones and comments included; *functions*: ``def`` and ``async
def`` that are not inside another function. A function and whatever is defined inside it is one.

*library names*: dotted names of a library in string literals other than docstrings (each word of a literal is looked
at, and the constant parts of f-strings), such as ``"jax.lax.psum"``, ``"numpy."`` or ``f"builtins.{name}"``, and dotted
expressions such as ``jax.lax.psum`` whose first part is a library. A library is the first part of a dotted name that
the knowledge base (``spmdlint/knowledge/*.toml``, ``names.toml`` left out) has; in expressions, Python's own library
is none.

*rule codes*: ``SPMD`` and digits in names and in string literals other than docstrings. *mentions*: the same in
comments and docstrings.

*name lists*: literal collections of two or more words: a list, tuple, set or dictionary (its keys) that is written out
with string literals, or ``"a b c".split()``, if every word is an identifier or a dotted name. *known*: those of them of
which a word is the last part of a dotted name, or a method, that the knowledge base has.

*tuned numbers*: a name in capitals, at the top level or in a class body, that is given a number other than -1, 0 and 1,
or a ``range`` of one, or an expression of numbers alone.

*recognisers*: functions that look at the kind of an operation and of a related one. To look at the kind of an operation
of the intermediate representation is ``isinstance(x, K)``, ``type(x)`` (compared, looked up in a table or matched),
``x.__class__``, or a ``case`` of ``match x`` with a class pattern ``K(...)``; K is one of the *kinds*, which are

- the classes in ``spmdlint/program/summary.py`` that inherit from its base class of operations, and all in the files
  of ``--ir``, which is for another representation that an analysis makes for itself,
- and the classes in the examined files that inherit from one of these;

or a tuple or union of them, or a name that a module gives such a collection. An operation is *reached* if it was found
by a field of another operation that holds operands (annotated with ``ValueId`` or another name that ends in ``Id``,
with a class that has such a field, such as ``Argument``, or with a class of ``--ir``), or by ``operands(operation)`` or
``inputs(operation)``: directly, as in ``operations[call.function]``, or through whatever local names, functions or
comprehensions lie in between, as in ``for n in self.follow(store.value): operations[n]``. Operations are *siblings* if
a function looks up two of its parameters among the operations (``operations[first]``, ``operations[second]``), or is
passed two operations. A name has one meaning in a whole function, except for the variables of comprehensions. So a
function is

- a *recogniser* if it looks at the kind of a reached operation, or at the kinds of two siblings;
- otherwise a *dispatch* if it looks for three kinds or more: what a transfer function does with the operation at hand;
- otherwise a *look* if it looks for one or two kinds.

What a function learns by calling another function that looks is not counted, nor are stores that reach a load by their
name, nor what a value is (``Constant``, ``External``): only what the code looks like.

``--list recognisers`` (``dispatches``, ``looks``, ``names``, ``codes``, ``lists``, ``numbers``) prints each with its
place, so that the figures can be checked by eye.
"""

from __future__ import annotations

import argparse
import ast
import functools
import pickle
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "spmdlint" / "program" / "summary.py"
KNOWLEDGE = ROOT / "spmdlint" / "knowledge"
HELD = ROOT / "benchmarks" / "structure.toml"
PACKAGES = ("analysis", "program", "knowledge", "heuristics", "files", "fixes", "output", "server", "cli", "testing")
"""The packages of the linter whose figures are held."""
LISTS = ("recognisers", "dispatches", "looks", "names", "codes", "lists", "numbers")
DISPATCH = 3
"""The number of kinds from which on a function that looks at one operation is a dispatch."""

_BASE = "_Operation"
_OPERATIONS = "operations"
"""What the operations of a function are called, wherever they are kept."""
_SELECTS = frozenset(("of_kind", "each"))
"""Functions that give the operations of a kind."""
_OPERANDS = frozenset(("operands", "inputs"))
"""Functions that give all operands of an operation."""
_DOTTED = re.compile(r'"([A-Za-z_]\w*(?:\.\w+)+)\.?"')
_METHOD = re.compile(r"^\[methods\.\"?(\w+)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*\.?")
_CODE = re.compile(r"SPMD\d+")
_NAME = re.compile(r"\w+")
_ID = re.compile(r"\b[A-Z]\w*Id\b")
_CAPITALS = re.compile(r"_?[A-Z][A-Z0-9_]*")
_FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Module:
    """A file, and what it is imported as: ``a.b.c`` (as many parts as the path has)."""

    path: Path
    tree: ast.Module

    @staticmethod
    def read(path: Path) -> Module:
        return Module(path, ast.parse(path.read_text(encoding="utf-8"), str(path)))

    def is_called(self, dotted: str) -> bool:
        """Whether an import of this name is an import of this file, as far as the last two parts tell."""
        parts = dotted.split(".")[-2:]
        return self._parts[-len(parts) :] == parts

    @cached_property
    def _parts(self) -> list[str]:
        own = self.path.with_suffix("").parts
        return list(own[:-1] if own[-1] == "__init__" else own)

    @cached_property
    def imports(self) -> tuple[tuple[str, str, str], ...]:
        """What is imported: from which module, the name (empty: the module itself), and what it is called here."""
        return tuple(_imports(self.tree))


@dataclass
class Names:
    """What names mean in one module: the kinds, by the name, and the names of modules that have kinds."""

    kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    modules: dict[str, Names] = field(default_factory=dict)

    def mentioned(self, node: ast.AST) -> frozenset[str]:
        """The kinds that an expression is."""
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, frozenset())
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules:
            return self.modules[node.value.id].kinds.get(node.attr, frozenset())
        return frozenset()

    def within(self, node: ast.AST) -> frozenset[str]:
        """The kinds that an expression mentions."""
        return frozenset().union(*map(self.mentioned, walk(node)))


@dataclass(frozen=True)
class Representation:
    """What operations look like.

    Attributes:
        names: what names mean, by the file.
        operands: the fields that hold operands.
        parts: the classes that are no operations but hold operands of one, such as the arguments of a call.

    """

    names: dict[Path, Names]
    operands: frozenset[str]
    parts: frozenset[str]


@dataclass(frozen=True)
class Library:
    """The names that the knowledge base has: the first parts of dotted ones, and the last parts and methods."""

    roots: frozenset[str]
    last: frozenset[str]


@dataclass(frozen=True)
class Place:
    """Something that was counted. ``lines``: how many it takes."""

    path: Path
    line: int
    text: str
    lines: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass
class Counts:
    """What was found in a folder. ``modules``: the number of files."""

    modules: int = 0
    lines: int = 0
    functions: int = 0
    mentions: int = 0
    known: int = 0
    found: dict[str, list[Place]] = field(default_factory=lambda: {kind: [] for kind in LISTS})

    def number(self, kind: str) -> int:
        return len(self.found[kind])

    def length(self, kind: str) -> int:
        """How many lines the functions of a kind take."""
        return sum(place.lines for place in self.found[kind])


@functools.lru_cache(maxsize=256)  # each question about a module or a function begins with its nodes
def walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes in the order of `ast.walk`, in a third of its time; not to be changed."""
    nodes = [tree]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(each for each in value if isinstance(each, ast.AST))
    return nodes


def library(knowledge: Path = KNOWLEDGE) -> Library:
    """The names in the tables of what functions mean; the list of roles has what the linter itself uses, too."""
    tables = [path for path in sorted(knowledge.glob("*.toml")) if path.name != "names.toml"]
    texts = [path.read_text(encoding="utf-8") for path in tables]
    dotted = [name for text in texts for name in _DOTTED.findall(text)]
    methods = [name for text in texts for name in _METHOD.findall(text)]
    return Library(
        frozenset(name.partition(".")[0] for name in dotted),
        frozenset(name.rpartition(".")[2] for name in dotted) | frozenset(methods),
    )


def representation(summary: Module, ir: Sequence[Module], examined: Sequence[Module]) -> Representation:
    """The kinds of operations, what they are called in each file, and the fields that hold operands.

    The kinds are the classes in ``summary`` that inherit from its base, all classes in ``ir``, and classes in the
    examined files that inherit from one of them.
    """
    classes = {node.name: node for module in (summary, *ir) for node in _classes(module)}
    declared = {node.name for module in ir for node in _classes(module)}
    kinds = declared | {node.name for node in _classes(summary) if _inherits(classes, node.name, _BASE)}
    fields = {name: {f: set(_NAME.findall(text)) for f, text in _fields(classes[name]).items()} for name in kinds}
    used = {word for found in fields.values() for words in found.values() for word in words}
    parts = {name for name in (used & classes.keys()) - kinds if any(map(_ID.search, _fields(classes[name]).values()))}
    operands = {
        f
        for found in fields.values()
        for f, words in found.items()
        if any(map(_ID.fullmatch, words)) or words & (parts | declared)
    }
    operands |= {f for name in parts for f, text in _fields(classes[name]).items() if _ID.search(text)}
    modules = [summary, *ir, *(module for module in examined if module.path not in {m.path for m in (summary, *ir)})]
    names = {module.path: Names() for module in modules}
    for module in (summary, *ir):
        for node in _classes(module):
            if node.name in kinds:
                names[module.path].kinds[node.name] = frozenset((node.name,))
    for _ in range(4):  # names of names, in whatever order the files come
        for module in modules:
            _learn(module, modules, names)
    return Representation(names, frozenset(operands), frozenset(parts))


def _classes(module: Module) -> list[ast.ClassDef]:
    return [node for node in module.tree.body if isinstance(node, ast.ClassDef)]


def _learn(module: Module, modules: Sequence[Module], all_names: dict[Path, Names]) -> None:
    """What a module's imports, subclasses of kinds and collections of kinds are called."""
    names = all_names[module.path]
    others = [(other, there) for other in modules if (there := all_names[other.path]).kinds]
    for dotted, name, called in module.imports:
        whole = f"{dotted}.{name}".strip(".")
        for other, there in others:
            if other.is_called(whole):
                names.modules[called] = there
            elif name in there.kinds and other.is_called(dotted):
                names.kinds[called] = there.kinds[name]
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and any(map(names.mentioned, node.bases)):
            names.kinds.setdefault(node.name, frozenset((node.name,)))
        for name, value in _assigned(node):
            found = names.within(value)
            if found and not (
                isinstance(value, ast.Call) and names.mentioned(value.func)
            ):  # not an operation that is made
                names.kinds[name] = found


def _imports(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield node.module or "", each.name, each.asname or each.name
        elif isinstance(node, ast.Import):
            for each in node.names:
                if each.asname:
                    yield each.name, "", each.asname


def _fields(node: ast.ClassDef) -> dict[str, str]:
    return {
        each.target.id: ast.unparse(each.annotation)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def _inherits(classes: dict[str, ast.ClassDef], name: str, base: str, depth: int = 8) -> bool:
    node = classes.get(name)
    bases = [] if node is None or not depth else [ast.unparse(each).rpartition(".")[2] for each in node.bases]
    return base in bases or any(_inherits(classes, each, base, depth - 1) for each in bases)


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for each, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(each, ast.Name):
                        yield each.id, value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``; empty if it is no such thing."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _own_names(function: _FunctionNode) -> _FunctionNode:
    """The function with other names for the variables of comprehensions, each of which has variables of its own."""
    if not any(isinstance(node, _COMPREHENSIONS) for node in walk(function)):
        return function
    copied: _FunctionNode = pickle.loads(pickle.dumps(function))  # several times as fast as a deepcopy
    for number, node in enumerate(walk(copied)):
        if isinstance(node, _COMPREHENSIONS):
            bound = {n.id for each in node.generators for n in walk(each.target) if isinstance(n, ast.Name)}
            for inner in walk(node):
                if isinstance(inner, ast.Name) and inner.id in bound:
                    inner.id = f"{inner.id}:{number}"
    return copied


# -- functions


class Looks(ast.NodeVisitor):
    """The looks at kinds in one function, and whose kinds they are.

    A value is described by where it comes from: ``REACHED`` by an operand, or the names of the parameters that it was
    looked up by. That is computed per local name, whatever the order of the statements, until nothing changes.
    """

    REACHED = ":reached"

    def __init__(self, function: _FunctionNode, names: Names, ir: Representation) -> None:
        self.ir = ir
        self.names = names
        self.function = _own_names(function)
        self.operations: set[str] = set()
        """Local names that hold an operation, or a part of one."""
        self.containers: set[str] = set()
        """Local names that hold the operations of a function."""
        self.origins: dict[str, frozenset[str]] = {}
        self.kinds: set[str] = set()
        self.subjects: dict[str, set[str]] = {}
        """What is looked at: how it is written, and where it comes from."""
        self._parameters()
        self._settle()
        self._look()

    @property
    def verdict(self) -> str:
        """The list that the function belongs to; empty if it looks at no kind."""
        if not self.subjects:
            return ""
        if any(self.REACHED in origins for origins in self.subjects.values()) or self._siblings():
            return "recognisers"
        return "dispatches" if len(self.kinds) >= DISPATCH else "looks"

    def _siblings(self) -> bool:
        """Whether two operations are looked at that two different parameters stand for, alike both times."""
        by_number = {o for origins in self.subjects.values() for o in origins if o.startswith("number ")}
        passed = {o for origins in self.subjects.values() for o in origins if o.startswith("operation ")}
        return len(by_number) > 1 or len(passed) > 1

    def _parameters(self) -> None:
        for node in walk(self.function):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                formals = node.args
                for each in [*formals.posonlyargs, *formals.args, *formals.kwonlyargs]:
                    if each.annotation is not None:
                        self._parameter(each.arg, each.annotation, outer=node is self.function)

    def _parameter(self, name: str, annotation: ast.expr, *, outer: bool) -> None:
        text = ast.unparse(annotation)
        if self.names.within(_read(annotation)) or set(_NAME.findall(text)) & self.ir.parts:
            self.operations.add(name)
            kind = "operation"
        elif re.search(r"\bint\b", text) or _ID.search(text):
            kind = "parameter"
        else:
            return
        if outer:
            self.origins[name] = frozenset((f"{kind} {name}",))

    def _settle(self) -> None:
        nodes = walk(self.function)
        for node in nodes:  # what is looked at is an operation
            subject = self._subject(node)
            if isinstance(subject, ast.Name):
                self.operations.add(subject.id)
        steps = [
            (bindings, node.cases if isinstance(node, ast.Match) else [], node)
            for node in nodes
            if (bindings := list(_bindings(node))) or isinstance(node, ast.Match)
        ]
        while True:
            before = (len(self.operations), len(self.containers), dict(self.origins))
            for bindings, cases, node in steps:
                for target, value, element in bindings:
                    self._bind(target, value, element)
                for case in cases:
                    self._capture(case.pattern, node.subject)
            if before == (len(self.operations), len(self.containers), self.origins):
                return

    def _bind(self, target: ast.expr, value: ast.expr, element: bool) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, ast.Tuple) and not element else []
            for number, each in enumerate(target.elts):
                pairs = len(values) == len(target.elts)
                self._bind(each, values[number] if pairs else value, element if pairs else True)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, True)
        elif isinstance(target, ast.Name):
            self._bind_name(target, value, element)

    def _bind_name(self, target: ast.Name, value: ast.expr, element: bool) -> None:
        if self._is_operation(value) or (element and self._holds_operations(value)):
            self.operations.add(target.id)
        if not element and self._is_container(value):
            self.containers.add(target.id)
        self.origins[target.id] = self.origins.get(target.id, frozenset()) | self._origin(value)

    def _capture(self, pattern: ast.pattern, subject: ast.expr) -> None:
        """Names that a pattern gives to the subject, or to an operand of it."""
        if isinstance(pattern, ast.MatchAs):
            if pattern.name is not None:
                self._bind(ast.Name(pattern.name, ast.Store()), subject, False)
            if pattern.pattern is not None:
                self._capture(pattern.pattern, subject)
        elif isinstance(pattern, ast.MatchOr):
            for each in pattern.patterns:
                self._capture(each, subject)
        elif isinstance(pattern, ast.MatchClass) and self.names.mentioned(pattern.cls):
            inner = [
                each for a, each in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True) if a in self.ir.operands
            ]
            for each in [*pattern.patterns, *inner]:
                for part in walk(each):
                    if isinstance(part, ast.MatchAs) and part.name is not None:
                        self.origins[part.name] = self.origins.get(part.name, frozenset()) | {self.REACHED}

    def _is_container(self, node: ast.expr) -> bool:
        return (isinstance(node, ast.Attribute) and node.attr == _OPERATIONS) or (
            isinstance(node, ast.Name) and node.id in self.containers
        )

    def _is_operation(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.operations
        if isinstance(node, ast.Subscript):
            return self._is_container(node.value) or self._is_operation(node.value)
        if isinstance(node, ast.IfExp):
            return self._is_operation(node.body) or self._is_operation(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self._is_operation(node.value)
        # the arguments of a call
        return isinstance(node, ast.Attribute) and node.attr in self.ir.operands and self._is_operation(node.value)

    def _holds_operations(self, node: ast.expr) -> bool:
        """Whether something in an iterable is an operation."""
        if self._is_container(node) or self._is_operation(node):
            return True
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._is_operation(node.elt)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return any(self._is_operation(each) for each in node.elts)
        if isinstance(node, ast.Call):
            if last_name(node.func) in _SELECTS:
                return True
            return any(self._holds_operations(each) for each in node.args)
        return False

    def _origin(self, node: ast.AST) -> frozenset[str]:
        """Where the value of an expression comes from."""
        found: set[str] = set()
        if isinstance(node, ast.Name):
            return self.origins.get(node.id, frozenset())
        if isinstance(node, ast.Attribute):
            if node.attr in self.ir.operands and self._is_operation(node.value):
                return frozenset((self.REACHED,))
            return self._origin(node.value) & {self.REACHED}
        if isinstance(node, ast.Subscript) and self._is_container(node.value):
            inside = self._origin(node.slice)
            return frozenset(o.replace("parameter ", "number ") for o in inside)
        if isinstance(node, (ast.Lambda, ast.Constant)):
            return frozenset()
        if isinstance(node, ast.Call):
            # What a call returns comes from its operands, but is not what its parameters stand for.
            parts: list[ast.expr] = [node.func, *node.args, *(each.value for each in node.keywords)]
            for part in parts:
                found |= self._origin(part)
            if last_name(node.func) in _OPERANDS and any(map(self._is_operation, node.args)):
                return frozenset((self.REACHED,))
            if _keeps(node):
                return frozenset(found)
            return frozenset(found & {self.REACHED} | {o for o in found if o.startswith("parameter ")})
        for child in ast.iter_child_nodes(node):
            found |= self._origin(child)
        return frozenset(found)

    def _subject(self, node: ast.AST) -> ast.expr | None:
        """What a node looks at the kind of."""
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name == "isinstance" and len(node.args) == 2 and self.names.within(node.args[1]):
                return _unnamed(node.args[0])
            if name == "type" and len(node.args) == 1 and self._may_be_operation(node.args[0]):
                return _unnamed(node.args[0])
        if isinstance(node, ast.Attribute) and node.attr == "__class__" and self._may_be_operation(node.value):
            return _unnamed(node.value)
        if isinstance(node, ast.Match) and any(self._pattern_kinds(case.pattern) for case in node.cases):
            subject = node.subject
            if isinstance(subject, ast.Call) and last_name(subject.func) == "type" and subject.args:
                subject = subject.args[0]
            return _unnamed(subject)
        return None

    def _may_be_operation(self, node: ast.expr) -> bool:
        return self._is_operation(_unnamed(node))

    def _pattern_kinds(self, pattern: ast.pattern) -> frozenset[str]:
        classes = [each.cls for each in walk(pattern) if isinstance(each, ast.MatchClass)]
        values = [each.value for each in walk(pattern) if isinstance(each, ast.MatchValue)]
        return frozenset().union(*(self.names.within(each) for each in [*classes, *values]))

    def _look(self) -> None:
        for node in walk(self.function):
            subject = self._subject(node)
            if subject is None:
                continue
            self.subjects.setdefault(ast.unparse(subject), set()).update(self._origin(subject))
            if isinstance(node, ast.Match):
                self.kinds.update(*(self._pattern_kinds(case.pattern) for case in node.cases))
            elif isinstance(node, ast.Call) and len(node.args) == 2:
                self.kinds |= self.names.within(node.args[1])
        for node in walk(self.function):  # type(x) is K, type(x) in KINDS, TABLE[type(x)], TABLE.get(type(x))
            if isinstance(node, (ast.Compare, ast.Subscript, ast.Call)) and self._types(node):
                self.kinds |= self.names.within(node)

    def _types(self, node: ast.AST) -> bool:
        children = ast.iter_child_nodes(node)
        return any(isinstance(each, ast.Call) and last_name(each.func) == "type" for each in children)


def _read(annotation: ast.expr) -> ast.expr:
    """An annotation, also one that is written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _keeps(call: ast.Call) -> bool:
    """Whether a call gives the elements that it is given: what they come from stays what it is."""
    return last_name(call.func) in {"enumerate", "zip", "sorted", "list", "tuple", "set", "reversed", "map", "iter"}


def _unnamed(node: ast.expr) -> ast.expr:
    return node.target if isinstance(node, ast.NamedExpr) else node


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What a node gives a value to: the target, the value, and whether it is an element of that value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value, False
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
        yield node.target, node.value, False
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield node.target, node.iter, True
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        if node.func.attr in {"append", "add", "extend", "appendleft", "update"} and len(node.args) == 1:
            yield node.func.value, node.args[0], False
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr, False


def outer_functions(tree: ast.Module) -> Iterator[_FunctionNode]:
    """The functions that are not inside another one."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield child
            else:
                waiting.append(child)


# -- names, codes and numbers


def _docstrings(tree: ast.Module) -> set[int]:
    """The docstrings, those of attributes included: strings that are statements."""
    return {id(n.value) for n in walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}


def _library_names(tree: ast.Module, known: Library) -> Iterator[tuple[int, str]]:
    documented, bound = _docstrings(tree), _bound(tree)
    inner = {id(node.value) for node in walk(tree) if isinstance(node, ast.Attribute)}
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            for word in node.value.split():
                root, dot, _ = word.partition(".")
                if dot and root in known.roots and _WORD.fullmatch(word):
                    yield node.lineno, word
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            text = ast.unparse(node)
            root = text.partition(".")[0]
            foreign = root in known.roots and root not in sys.stdlib_module_names and root not in bound
            if foreign and _WORD.fullmatch(text):
                yield node.lineno, text


def _bound(tree: ast.Module) -> set[str]:
    """Names that a module uses for something of its own: they are no libraries there."""
    stored = {n.id for n in walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in walk(tree) if isinstance(n, ast.arg)}


def _codes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documented = _docstrings(tree)
    for node in walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            text = node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            text = last_name(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            text = node.name
        for code in _CODE.findall(text):
            yield getattr(node, "lineno", 0), code


def _mentions(path: Path, tree: ast.Module) -> int:
    if not _CODE.search(path.read_text(encoding="utf-8")):
        return 0
    documented = _docstrings(tree)
    count = sum(
        len(_CODE.findall(node.value))
        for node in walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) in documented
    )
    with path.open("rb") as opened:
        comments = [t.string for t in tokenize.tokenize(opened.readline) if t.type == tokenize.COMMENT]
    return count + sum(len(_CODE.findall(comment)) for comment in comments)


def _words(node: ast.AST) -> list[str]:
    """The words of a literal collection; empty if it is none, or holds something else."""
    elements: list[ast.expr | None] = []
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        elements = list(node.elts)
    elif isinstance(node, ast.Dict):
        elements = list(node.keys)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        if not node.args and isinstance(text, ast.Constant) and isinstance(text.value, str):
            return text.value.split()
    words = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return words if len(words) == len(elements) else []


def _name_lists(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    annotations = {id(inner) for node in walk(tree) for inner in _annotation(node)}
    for node in walk(tree):
        words = _words(node) if id(node) not in annotations else []
        if len(words) > 1 and all(_WORD.fullmatch(word) for word in words):
            yield getattr(node, "lineno", 0), words


def _annotation(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of annotations, and of aliases of types such as ``Literal["a", "b"]``."""
    for name in ("annotation", "returns"):
        annotation = getattr(node, name, None)
        if isinstance(annotation, ast.AST):
            yield from walk(annotation)
    if isinstance(node, ast.Subscript) and last_name(node.value) == "Literal":
        yield from walk(node)
    if isinstance(node, ast.Assign) and any(last_name(t) in {"__slots__", "__all__"} for t in node.targets):
        yield from walk(node)


def _numbers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    bodies = [tree.body, *(node.body for node in walk(tree) if isinstance(node, ast.ClassDef))]
    for node in (each for body in bodies for each in body):
        for name, value in _assigned(node):
            if _CAPITALS.fullmatch(name) and not _marks(node) and _is_number(value):
                yield node.lineno, f"{name} = {ast.unparse(value)}"


def _marks(node: ast.stmt) -> bool:
    """Whether several names are given numbers at once: they tell things apart, and tune nothing."""
    return isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple) for target in node.targets)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) == "range" and all(_is_number(each) for each in node.args)
    numbers = [each for each in walk(node) if isinstance(each, ast.Constant)]
    if not all(isinstance(each.value, (int, float)) and not isinstance(each.value, bool) for each in numbers):
        return False
    if isinstance(node, ast.Constant):
        return node.value not in {0, 1}
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant) and node.operand.value not in {0, 1}
    return isinstance(node, ast.BinOp) and all(
        isinstance(each, (ast.BinOp, ast.Constant, ast.operator)) for each in walk(node)
    )


# -- folders


def count(modules: Sequence[Module], known: Library, ir: Representation) -> Counts:
    """Everything in some files."""
    counts = Counts()
    for module in modules:
        path, tree = module.path, module.tree
        counts.modules += 1
        counts.lines += len(path.read_text(encoding="utf-8").splitlines())
        counts.mentions += _mentions(path, tree)
        for function in outer_functions(tree):
            counts.functions += 1
            looks = Looks(function, ir.names[path], ir)
            if looks.verdict:
                length = (function.end_lineno or function.lineno) - function.lineno + 1
                counts.found[looks.verdict].append(Place(path, function.lineno, function.name, length))
        for line, name in _library_names(tree, known):
            counts.found["names"].append(Place(path, line, name))
        for line, code in _codes(tree):
            counts.found["codes"].append(Place(path, line, code))
        for line, words in _name_lists(tree):
            counts.found["lists"].append(Place(path, line, " ".join(words)))
            counts.known += any(word.rstrip(".").rpartition(".")[2] in known.last for word in words)
        for line, number in _numbers(tree):
            counts.found["numbers"].append(Place(path, line, number))
    return counts


def files(folder: Path) -> list[Path]:
    """The Python files of a folder, or the file itself."""
    return [folder] if folder.is_file() else sorted(folder.rglob("*.py"))


def examine(folder: Path, ir: Sequence[Path] = (), summary: Path = SUMMARY, knowledge: Path = KNOWLEDGE) -> Counts:
    """Everything in a folder. ``ir``: further files with classes of operations.

    Raises:
        SyntaxError: a file does not parse.

    """
    modules = [Module.read(path.resolve()) for path in files(folder)]
    own = [Module.read(path.resolve()) for path in ir]
    return count(modules, library(knowledge), representation(Module.read(summary.resolve()), own, modules))


def table(rows: Iterable[tuple[str, Counts]]) -> Iterator[str]:
    """The figures, in Markdown."""
    head = [
        "folder", "modules", "lines", "functions", "recognisers", "their lines", "dispatches", "looks",
        "library names", "rule codes", "mentions", "name lists", "known", "tuned numbers",
    ]  # fmt: skip
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---|' * (len(head) - 1)}"
    for name, each in rows:
        figures = [
            each.modules, each.lines, each.functions, each.number("recognisers"), each.length("recognisers"),
            each.number("dispatches"), each.number("looks"), each.number("names"), each.number("codes"),
            each.mentions, each.number("lists"), each.known, each.number("numbers"),
        ]  # fmt: skip
        yield f"| {name} | {' | '.join(f'{figure:,}' for figure in figures)} |"


def held(counts: Counts) -> dict[str, int]:
    """The figures of a package that may fall and not rise."""
    return {
        "lines": counts.lines,
        "modules": counts.modules,
        "recognisers": counts.number("recognisers"),
        "library_names": len({place.text for place in counts.found["names"]}),
        "name_lists": counts.number("lists"),
        "tuned_numbers": counts.number("numbers"),
    }


def write() -> None:
    """Write down the figures of today."""
    tables = [(name, held(examine(ROOT / "spmdlint" / name))) for name in PACKAGES]
    texts = [f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in each.items()) for name, each in tables]
    HELD.write_text(
        "# Written by `python benchmarks/structure.py --write`: figures that may fall and not rise.\n\n"
        + "\n".join(texts),
        encoding="utf-8",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "spmdlint" / "analysis"])
    parser.add_argument(
        "--ir", type=Path, action="append", default=[], help="a further file with classes of operations"
    )
    parser.add_argument("--list", choices=LISTS, help="print each of these, with its place")
    parser.add_argument("--write", action="store_true", help="write the figures of the linter's packages down")
    options = parser.parse_args(arguments)
    if options.write:
        write()
        return 0
    if missing := [folder for folder in options.folders if not folder.exists()]:
        parser.error(f"there is no {missing[0]}")
    rows = [(folder, examine(folder, options.ir)) for folder in options.folders]
    if options.list:
        for _, counts in rows:
            for place in counts.found[options.list]:
                print(place)
    else:
        print("\n".join(table((_shown(folder), counts) for folder, counts in rows)))
    return 0


def _shown(folder: Path) -> str:
    resolved = folder.resolve()
    return f"`{resolved.relative_to(ROOT)}`" if resolved.is_relative_to(ROOT) else f"`{folder}`"


if __name__ == "__main__":
    sys.exit(main())

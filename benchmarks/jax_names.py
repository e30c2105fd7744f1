"""Measures which names and parameters each release of JAX has, and writes the table of those that came later.

    python benchmarks/jax_names.py --state FOLDER           measures the releases that FOLDER has nothing about
    python benchmarks/jax_names.py --state FOLDER --write   and writes spmdlint/knowledge/added.json

Each release is installed by pip in a temporary environment, newest first, and asked for every name that it shows, that
a newer one has, or that the table of removed names has: `hasattr` decides, so what is deprecated exists. `--python`
names the Python of these environments, which must suit the oldest release and the newest; Python 3.12 does. The table
of removed names, which is written by hand, is compared with what was measured; differences are printed, and are an
error.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spmdlint.knowledge.changes import Changes

Version = tuple[int, ...]
Measured = dict[Version, dict[str, Any]]

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "spmdlint" / "knowledge" / "added.json"
OLDEST = (0, 4, 20)
# Of no interest to programs, not importable everywhere, or without a stable interface.
LEFT_OUT = (
    "jax.cloud_tpu_init",
    "jax.collect_profile",
    "jax.example_libraries",
    "jax.experimental.array_api",
    "jax.experimental.hijax",
    "jax.experimental.jax2tf",
    "jax.experimental.jet",
    "jax.experimental.mosaic",
    "jax.experimental.pallas.mosaic_gpu",
    "jax.experimental.pallas.ops",
    "jax.experimental.roofline",
    "jax.experimental.sparse",
    "jax.experimental.thunky",
    "jax.extend.core.primitives",
    "jax.extend.mlir",
    "jax.interpreters",
    "jax.jaxlib",
    "jax.lib",
    "jax.test_util",
    "jax.tools",
    "jax.version",
)
# numpy 2 and scipy 1.13 dropped names that older releases use.
OLD_PACKAGES = ((0, 4, 31), ("numpy<2", "scipy<1.13"))

# -- in the environment of one release


def modules() -> tuple[dict[str, Any], list[str]]:
    """The public modules by name, and the names of those that cannot be imported here."""
    found: dict[str, Any] = {}
    closed: list[str] = []
    pending = ["jax"]
    while pending:
        name = pending.pop()
        try:
            module = importlib.import_module(name)
        except BaseException:  # a module for other hardware may raise anything
            closed.append(name)
            continue
        found[name] = module
        for each in pkgutil.iter_modules(getattr(module, "__path__", ())):
            below = f"{name}.{each.name}"
            if not each.name.startswith("_") and not below.startswith(LEFT_OUT):
                pending.append(below)
    return found, closed


def foreign(value: object, dotted: str) -> bool:
    """Whether a module only imports a value from elsewhere: another module, or a type for its annotations."""
    if inspect.ismodule(value):
        return value.__name__ != dotted
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and home.split(".")[0] in (*sys.stdlib_module_names, "numpy", "typing_extensions")


def keywords(value: object) -> list[str] | None:
    """The parameters that can be passed by name; None if any name may be one, or if that is not known."""
    if not callable(value):
        return None
    try:
        parameters = list(inspect.signature(value).parameters.values())
        if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
            return None
        # What a wrapper takes itself counts too: `concrete` of jax.checkpoint, of which what it wraps knows nothing.
        parameters += inspect.signature(value, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return None
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]


def imported(name: str) -> Any:
    """A module that may not be there."""
    try:
        return importlib.import_module(name)
    except BaseException:
        return None


def probe(asked: Iterable[str]) -> dict[str, Any]:
    """The names that are here, each with its parameters: those that modules show, and those that are asked for."""
    warnings.simplefilter("ignore")
    there, closed = modules()
    names: dict[str, list[str] | None] = dict.fromkeys((*there, *closed))
    for module, content in there.items():
        for name in dir(content):
            value, full = getattr(content, name, None), f"{module}.{name}"
            hidden = name.startswith("_") or name.endswith("_p")  # primitives are nobody's interface
            if not hidden and not foreign(value, full) and not full.startswith(LEFT_OUT):
                names[full] = keywords(value)
    for full in asked:
        module, _, name = full.rpartition(".")
        content = there.get(module) or imported(module)
        if full not in names and hasattr(content, name):
            names[full] = keywords(getattr(content, name))
        elif full not in names and imported(full) is not None:
            names[full] = None
    return {"names": names, "closed": closed}


# -- all releases


def releases(base: str) -> list[Version]:
    """The releases that pip can install here, newest first, without repairs of a release."""
    command = [base, "-m", "pip", "index", "versions", "jax"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"Available versions: (.*)", listed)
    versions = [tuple(map(int, each.split("."))) for each in found[1].split(", ")] if found else []
    return sorted((each for each in versions if len(each) == 3 and each >= OLDEST), reverse=True)


def dotted(version: Version) -> str:
    return ".".join(map(str, version))


def measure(base: str, version: Version, asked: Iterable[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([base, "-m", "venv", folder], check=True)
        python = str(Path(folder, "bin", "python"))
        limit, packages = OLD_PACKAGES
        wanted = [f"jax[cpu]=={dotted(version)}", *(packages if version < limit else ())]
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *wanted], check=True)
        command = [python, str(Path(__file__).resolve()), "--probe"]
        ran = subprocess.run(command, check=True, input=json.dumps(sorted(asked)), stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measured(base: str, state: Path) -> Measured:
    """What each release has, newest first; what ``state`` has nothing about is measured."""
    found: Measured = {}
    seen = set(removals().names)
    state.mkdir(parents=True, exist_ok=True)
    for version in releases(base):
        file = state / f"{dotted(version)}.json"
        if not file.exists():
            print(f"measuring JAX {dotted(version)}", file=sys.stderr, flush=True)
            file.write_text(json.dumps(measure(base, version, seen)), encoding="utf-8")
        found[version] = json.loads(file.read_text(encoding="utf-8"))
        seen |= set(found[version]["names"])
    return found


# -- the table


def below(name: str, others: Iterable[str]) -> bool:
    return any(name.startswith(f"{other}.") for other in others)


def first(has: Mapping[Version, bool]) -> Version | None:
    """The release that brought something; None if the oldest has it, or if it went and came back."""
    order = sorted(has)
    changes = [now for before, now in pairwise(order) if has[before] != has[now]]
    if has[order[0]] or not changes or len(changes) > 2:
        return None
    return changes[0]


def added_names(found: Measured) -> dict[str, Version]:
    """Names by the release that brought them; what came with its module is not named."""
    every = {name for each in found.values() for name in each["names"]}
    added: dict[str, Version] = {}
    for name in sorted(every):
        has = {v: name in each["names"] or below(name, each["closed"]) for v, each in found.items()}
        since = first(has)
        parents = (name[: dot.start()] for dot in re.finditer(r"\.", name))
        if since is not None and all(added.get(parent, (0,)) < since for parent in parents):
            added[name] = since
    return added


def added_parameters(found: Measured) -> dict[str, dict[str, Version]]:
    """Parameters that came after their function, which took no other names before."""
    every = {name for each in found.values() for name in each["names"]}
    added: dict[str, dict[str, Version]] = {}
    for name in sorted(every):
        taken = {v: each["names"][name] for v, each in found.items() if name in each["names"]}
        for parameter in sorted({each for names in taken.values() for each in names or ()}):
            since = first({v: names is None or parameter in names for v, names in taken.items()})
            if since is not None:
                added.setdefault(name, {})[parameter] = since
    return added


def table(found: Measured) -> str:
    """The table as JSON, a line for each name, so that a new release changes few lines."""
    names: dict[str, list[str]] = {}
    for name, since in sorted(added_names(found).items(), key=lambda item: (item[1], item[0])):
        names.setdefault(dotted(since), []).append(name)
    parameters = {
        function: {name: dotted(since) for name, since in entries.items()}
        for function, entries in added_parameters(found).items()
    }
    measured_with = f"benchmarks/jax_names.py, from JAX {dotted(min(found))} to {dotted(max(found))}"
    return json.dumps({"measured": measured_with, "names": names, "parameters": parameters}, indent=1) + "\n"


def wrongly_removed(found: Measured) -> Iterator[str]:
    """What the table of removed names says otherwise than was measured."""
    for name, removed in removals().names.items():
        for version in found:
            if name in found[version]["names"] and removed.absent(version):
                yield f"{name} is in JAX {dotted(version)}, and is said to be gone since {dotted(removed.since)}."
        later = [version for version in found if version >= removed.since]
        before = max((version for version in found if version < removed.since), default=None)
        known = any(name in each["names"] for each in found.values())
        if later and known and before is not None and name not in found[before]["names"]:
            yield f"{name} is not in JAX {dotted(before)}, and is said to be gone since {dotted(removed.since)}."


def removals() -> Changes:
    """The table of removed names."""
    from spmdlint.knowledge.changes import removals  # the environments of the releases do not have it

    return removals()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, help="the folder of what was measured")
    parser.add_argument("--python", default=sys.executable, help="the Python of the environments")
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(probe(json.load(sys.stdin))))
        return 0
    if options.state is None:
        parser.error("--state is needed")
    found = measured(options.python, options.state)
    if options.write:
        TABLE.write_text(table(found), encoding="utf-8")
    wrong = list(wrongly_removed(found))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

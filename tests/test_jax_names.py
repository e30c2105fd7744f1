"""The table of removed names against the JAX that is installed."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest

from spmdlint.knowledge.removed import removals

jax = pytest.importorskip("jax")

TABLE = removals()
INSTALLED = jax.__version_info__


def exists(dotted):
    """Is there a name; what is deprecated is."""
    parts = dotted.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cut in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:cut]))
            except ImportError:
                continue
            for part in parts[cut:]:
                if not hasattr(found, part):
                    return False
                found = getattr(found, part)
            return True
    return False


@pytest.mark.parametrize("name", sorted(TABLE.names))
def test_a_name_is_gone_from_the_version_on_that_the_table_says(name):
    if TABLE.names[name].gone(INSTALLED):
        assert not exists(name)


@pytest.mark.parametrize("name", sorted(n for n, removed in TABLE.names.items() if removed.same))
def test_what_to_put_in_its_place_exists(name):
    assert exists(TABLE.names[name].use)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_parameter_is_gone():
    for function, entries in TABLE.parameters.items():
        module, _, name = function.rpartition(".")
        there = inspect.signature(getattr(importlib.import_module(module), name)).parameters
        gone = {parameter for parameter, removed in entries.items() if removed.gone(INSTALLED)}
        assert gone.isdisjoint(there)


PROGRAM = """\
import jax

def put(shards, devices):
    return jax.device_put_sharded(shards, devices), jax.tree_map(abs, shards)
"""


@pytest.mark.parametrize(("version", "due"), [("0.5.3", 0), ("0.6", 1), ("0.9.2", 1), ("0.10.0", 2), ("newest", 2)])
def test_the_version_that_is_configured_decides(project, version, due):
    project.write({"put.py": PROGRAM, "spmdlint.toml": f'jax-version = "{version}"\n'})
    assert project.check("--select", "SPMD602").found == [("put.py", 4, "SPMD602")] * due


def test_what_can_be_put_in_place_comes_as_an_edit(project):
    project.write({"put.py": PROGRAM})
    first, second = project.check("--select", "SPMD602").json
    assert first["fix"] is None
    assert second["fix"]["edits"][0]["content"] == "jax.tree.map"

"""The tables of removed and added names against the JAX that is installed, and the version that counts."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest

from spmdlint.knowledge.changes import additions, removals
from spmdlint.knowledge.files import read_file
from spmdlint.releases import configured

jax = pytest.importorskip("jax")

TABLE, ADDED = removals(), additions()
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
    if TABLE.names[name].absent(configured(INSTALLED)):
        assert not exists(name)


@pytest.mark.parametrize("name", sorted(n for n, removed in TABLE.names.items() if removed.same))
def test_what_to_put_in_its_place_exists(name):
    assert exists(TABLE.names[name].use)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_parameter_is_gone():
    for function, entries in TABLE.parameters.items():
        module, _, name = function.rpartition(".")
        there = inspect.signature(getattr(importlib.import_module(module), name)).parameters
        gone = {parameter for parameter, removed in entries.items() if removed.absent(configured(INSTALLED))}
        assert gone.isdisjoint(there)


def test_a_name_that_is_newer_than_the_installed_version_is_not_there():
    newer = {name for name, added in ADDED.names.items() if added.absent(configured(INSTALLED))}
    assert newer == {name for name in newer if not exists(name)}


@pytest.mark.parametrize("name", ["jax.shard_map", "jax.set_mesh", "jax.lax.axis_size", "jax.sharding.AxisType"])
def test_a_name_is_there_from_the_version_on_that_the_table_says(name):
    assert exists(name) is not ADDED.names[name].absent(configured(INSTALLED))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_parameter_that_is_newer_than_the_installed_version_is_not_there():
    for function, entries in ADDED.parameters.items():
        newer = {parameter for parameter, added in entries.items() if added.absent(configured(INSTALLED))}
        if newer and exists(function):
            module, _, name = function.rpartition(".")
            assert newer.isdisjoint(inspect.signature(getattr(importlib.import_module(module), name)).parameters)


def test_what_to_write_before_is_about_something_that_was_added():
    added = set(ADDED.names)
    added |= {f"{function}.{name}" for function, entries in ADDED.parameters.items() for name in entries}
    assert set(read_file("before.toml")["before"]) <= added


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


NEW = """\
import jax
from jax.experimental import multihost_utils

def run(body, mesh):
    jax.set_mesh(mesh)
    return jax.shard_map(body, mesh=mesh)

mesh = jax.make_mesh(axis_sizes=(2,), axis_names=("x",))
"""


@pytest.mark.parametrize(
    ("version", "rows"),
    [
        ("0.5.3", [5, 6, 8]),
        ("0.6.0", [5, 6, 8]),
        ("0.6", [5, 8]),
        ("0.6.1", [5, 8]),
        ("0.7.1", [8]),
        ("0.11.0", [8]),
        ("0.11.1", []),
        ("newest", []),
        ("99", []),
    ],
)
def test_a_name_that_is_newer_than_the_configured_version(project, version, rows):
    project.write({"new.py": NEW, "spmdlint.toml": f'jax-version = "{version}"\n'})
    assert project.check("--select", "SPMD602").found == [("new.py", row, "SPMD602") for row in rows]


def test_what_is_said_of_a_newer_name(project):
    project.write({"new.py": NEW, "spmdlint.toml": 'jax-version = "0.5.3"\n'})
    _, mapped, made = project.check("--select", "SPMD602").json
    assert mapped["message"] == "jax.shard_map came with JAX 0.6.1, and jax-version is 0.5.3."
    assert "Use jax.experimental.shard_map.shard_map (with check_rep" in mapped["help"]
    assert made["message"] == (
        "The parameter 'axis_sizes' of jax.make_mesh came with JAX 0.11.1, and jax-version is 0.5.3."
    )


OLD = """\
import jax

def run(body, tree):
    return jax.shard_map(body), jax.tree_map(abs, tree)
"""


@pytest.mark.parametrize(
    ("dependencies", "found"),
    [
        ([], ["jax.tree_map"]),
        (["jax"], ["jax.tree_map"]),
        (["jaxtyping==0.2", "jaxlib==0.4.20", "jax-tqdm<1"], ["jax.tree_map"]),
        (["jax @ https://example.org/jax-0.4.20.tar.gz"], ["jax.tree_map"]),
        (["numpy", "jax==0.4.20"], ["jax.shard_map"]),
        (["jax[cuda12] == 0.4.20 ; sys_platform == 'linux'"], ["jax.shard_map"]),
        (["jax==0.4.*"], ["jax.shard_map"]),
        (["jax == 0.7.0"], ["jax.tree_map"]),
        (["jax>=0.4.20"], ["jax.shard_map", "jax.tree_map"]),
        (["JAX (>=0.4.20, !=0.4.22)"], ["jax.shard_map", "jax.tree_map"]),
        (["jax~=0.4.20"], ["jax.shard_map"]),
        (["jax>=0.4.20,<0.6"], ["jax.shard_map"]),
        (["jax>=0.4.20,<0.6.0"], ["jax.shard_map"]),
        (["jax>=0.4.20,<=0.6"], ["jax.shard_map", "jax.tree_map"]),
        (["jax<0.6"], ["jax.shard_map"]),
        (["jax<=0.4.30"], ["jax.shard_map"]),
        (["jax<0.7"], ["jax.tree_map"]),
        (["jax>=0.6.1"], ["jax.tree_map"]),
        (
            ["jax==0.4.20; python_version < '3.10'", "jax>=0.6.1; python_version >= '3.10'"],
            ["jax.shard_map", "jax.tree_map"],
        ),
        (["jax==0.4.20; python_version < '3.10'", "jax; python_version >= '3.10'"], ["jax.tree_map"]),
    ],
)
def test_the_dependencies_say_which_releases_count(project, dependencies, found):
    (project.root / "spmdlint.toml").unlink()
    project.write({"old.py": OLD, "pyproject.toml": f"[project]\nname = 'acme'\ndependencies = {dependencies!r}\n"})
    messages = [each["message"] for each in project.check("--select", "SPMD602", "--preview").json]
    assert sorted(message.split()[0] for message in messages) == found
    told = "jax.shard_map came with JAX 0.6.1, and the dependencies in pyproject.toml allow "
    only = {"jax<0.6": "none after 0.5.", "jax<=0.4.30": "none after 0.4.30."}.get("".join(dependencies), "0.4")
    assert all(message.startswith(told + only) for message in messages if "shard_map" in message)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("'0.4.20'", ["jax.shard_map"]),
        ("{version = '^0.4.20', extras = ['tpu']}", ["jax.shard_map"]),
        ("'~0.4'", ["jax.shard_map"]),
        ("'>=0.4.20'", ["jax.shard_map", "jax.tree_map"]),
        ("'^0.6.1'", ["jax.tree_map"]),
        ("'*'", ["jax.tree_map"]),
    ],
)
@pytest.mark.parametrize("table", ["tool.poetry.dependencies", "tool.poetry.group.tpu.dependencies"])
def test_the_dependencies_of_poetry_say_so_too(project, table, version, found):
    (project.root / "spmdlint.toml").unlink()
    project.write({"old.py": OLD, "pyproject.toml": f"[{table}]\npython = '>=3.9'\njax = {version}\n"})
    messages = [each["message"] for each in project.check("--select", "SPMD602", "--preview").json]
    assert sorted(message.split()[0] for message in messages) == found


@pytest.mark.parametrize(
    ("bound", "found"),
    [
        (">=0.4.20", ["jax.tree_map"]),
        (">=0.4.20,<=0.6", ["jax.shard_map", "jax.tree_map"]),
        ("==0.4.20", ["jax.shard_map"]),
    ],
)
def test_a_lower_bound_alone_counts_with_preview(project, bound, found):
    (project.root / "spmdlint.toml").unlink()
    project.write({"old.py": OLD, "pyproject.toml": f"[project]\nname = 'acme'\ndependencies = ['jax{bound}']\n"})
    messages = [each["message"] for each in project.check("--select", "SPMD602").json]
    assert sorted(message.split()[0] for message in messages) == found


@pytest.mark.parametrize(
    "files",
    [
        {"spmdlint.toml": 'jax-version = "newest"\n'},
        {"pyproject.toml": "[tool.spmdlint]\njax-version = '0.8'\n[project]\ndependencies = ['jax==0.4.20']\n"},
    ],
)
def test_what_is_configured_counts_before_the_dependencies(project, files):
    project.write({"old.py": OLD, "pyproject.toml": "[project]\ndependencies = ['jax==0.4.20']\n", **files})
    if "spmdlint.toml" not in files:
        (project.root / "spmdlint.toml").unlink()
    (finding,) = project.check("--select", "SPMD602").json
    assert finding["message"].startswith("jax.tree_map does not exist")


@pytest.mark.parametrize("text", ["[project", "project = 1", "[project]\ndependencies = 'jax==0.4.20'", b"\xff"])
def test_dependencies_of_an_odd_form_say_nothing(project, text):
    project.write({"old.py": OLD, "pyproject.toml": text})
    assert len(project.check("--select", "SPMD602").found) == 1


@pytest.mark.parametrize(("oldest", "put"), [("0.4.20", "jax.tree_util.tree_map"), ("0.4.25", "jax.tree.map")])
def test_what_is_put_in_place_exists_in_the_oldest_release(project, oldest, put):
    project.write({"put.py": PROGRAM, "pyproject.toml": f"[project]\ndependencies = ['jax>={oldest}']\n"})
    first, second = project.check("--select", "SPMD602").json
    assert first["fix"] is None
    assert second["fix"]["edits"][0]["content"] == put
    assert second["help"].startswith(f"Use {put} instead")


def test_the_cache_knows_the_dependencies(project):
    for oldest, count in (("0.4.20", 1), ("0.4.25", 1), ("0.6.1", 1), ("0.4.20,<0.6", 0)):
        project.write({"put.py": "import jax\n\njax.tree_map(abs, 1)\n"})
        project.write({"pyproject.toml": f"[project]\ndependencies = ['jax>={oldest}']\n"})
        assert len(project.check("--select", "SPMD602").found) == count


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("jax[tpu]==0.4.20  # of the pods", ["jax.shard_map"]),
        ("jax", ["jax.tree_map"]),
        ("jaxtyping==0.2", ["jax.tree_map"]),
    ],
)
def test_a_list_of_requirements_says_so_too(project, requirement, found):
    (project.root / "spmdlint.toml").unlink()
    project.write({"old.py": OLD, "requirements.txt": f"numpy==1.26\n{requirement}\n-r more.txt\n"})
    messages = [each["message"] for each in project.check("--select", "SPMD602").json]
    assert sorted(message.split()[0] for message in messages) == found


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("requirements.txt", "flax==0.6.11", 0),
        ("requirements.txt", "flax>=0.6", 1),
        ("requirements.txt", "flax==0.7.0", 1),
        ("setup.py", "import setuptools\n\nsetuptools.setup(name='x', install_requires=['absl-py', 'flax==0.6.3'])", 0),
        ("setup.py", "from setuptools import setup\n\nNEEDED = ['flax']\nsetup(install_requires=NEEDED)", 1),
        ("setup.py", "from setuptools import setup\n\nNEEDED = ['flax<0.7']\nsetup(install_requires=NEEDED)", 0),
        ("setup.py", "setup(install_requires=['flax==0.6.3']", 1),  # which does not parse, and is told of
    ],
)
def test_a_save_of_an_older_flax_is_no_parallel_call(project, file, text, found):
    source = (
        "import jax\nfrom flax.training import checkpoints\n\n\ndef save(folder, state, step):\n"
        "    if jax.process_index() == 0:\n        checkpoints.save_checkpoint(folder, state, step)\n"
    )
    project.write({"save.py": source, file: f"{text}\n"})
    assert sum(each["code"] == "SPMD309" for each in project.check("--select", "SPMD309").json) == found

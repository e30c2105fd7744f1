"""The second engine in shadow: what it finds, that the order of visits does not matter, what it may name."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from spmdlint.hazards.strata import Strata
from spmdlint.interpreter import deep
from spmdlint.rule import load_rules

REPOSITORY = Path(__file__).parents[1]


def helper():
    """The module of the folder of the same name."""
    spec = importlib.util.spec_from_file_location("shadow_fixtures", REPOSITORY / "tests" / "shadow" / "fixtures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_differences_from_what_is_due_are_those_that_are_known():
    shadow = helper()
    judged = shadow.judge()
    assert judged.due > 150
    assert list(judged.differences) == shadow.EXPECTED.read_text().splitlines()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """All fixtures of the rules in shadow that are single files, as one project."""
    shadow = helper()
    root = tmp_path_factory.mktemp("project").resolve()
    (root / "spmdlint.toml").write_text("")
    for case in shadow.cases():
        if case.suffix == ".py":
            shutil.copy(case, root)
    return shadow.program_of(root)


def test_the_order_of_visits_does_not_matter(program):
    with deep():
        usual = Strata(program.project, program.knowledge)
        found = set(usual.divergences())
        assert len(found) > 100
        for seed in range(3):
            other = Strata(program.project, program.knowledge, shuffled=seed)
            assert set(other.divergences()) == found
            assert dict(other.evaluation.cells.contents()) == dict(usual.evaluation.cells.contents())


def test_each_finding_has_a_reason_that_leads_to_a_source(program):
    with deep():
        strata = Strata(program.project, program.knowledge)
        reasons = [strata.reason(found) for found in strata.divergences()]
    told = [reason.source.text for reason in reasons]
    assert all(text[0].isalpha() or text[0] == "." for text in told)
    assert sum("differs between processes" in text and not text.startswith("this") for text in told) > 0.8 * len(told)


LIBRARIES = ("jax", "numpy", "flax", "orbax", "haiku", "optax", "tensorflow", "torch", "mpi4jax", "mpi4py", "functools")


@pytest.mark.parametrize("package", ["core", "domains"])
def test_no_library_and_no_rule_is_named(package):
    codes = {rule.code for rule in load_rules()}
    for path in (REPOSITORY / "spmdlint" / package).glob("*.py"):
        text = path.read_text()
        assert not [code for code in codes if code in text], path
        assert not re.findall(rf"[\"'](?:{'|'.join(LIBRARIES)})(?:\.[a-z_.A-Z]*)?[\"']", text), path


BARRIER = "import jax\nfrom jax.experimental import multihost_utils\n"
CALL = 'multihost_utils.sync_global_devices("save")'
SPELLINGS = {
    "imported by name": f"from hosts import CHIEF\nif CHIEF:\n    {CALL}\n",
    "imported with another name": f"from hosts import CHIEF as FIRST\nif not FIRST:\n    pass\nelse:\n    {CALL}\n",
    "attribute of the module": f"import hosts\ndef save():\n    if hosts.CHIEF:\n        {CALL}\nsave()\n",
    "imported with *": f"from hosts import *\ndef save():\n    if not CHIEF:\n        return\n    {CALL}\nsave()\n",
    "passed on by another module": f"from facts import CHIEF\ndef save(on):\n    if on:\n        {CALL}\nsave(CHIEF)\n",
    "yields more often": "from hosts import CHIEF\ndef phases():\n    yield 1\n    if CHIEF:\n        yield 2\n"
    f"for _ in phases():\n    {CALL}\n",
    "delegates to a generator": "from hosts import CHIEF\ndef more():\n    if CHIEF:\n        yield 2\ndef phases():\n"
    f"    yield from more()\nfor _ in phases():\n    {CALL}\n",
    "yields until it returns": "from hosts import CHIEF\ndef phases():\n    for n in range(9):\n        if CHIEF:\n"
    f"            return\n        yield n\nfor _ in phases():\n    {CALL}\n",
    "in a range": f"first = jax.process_index()\nif 3 in range(first, 9):\n    {CALL}\n",
    "in a list of own length": f"own = list(range(jax.process_index()))\nif 3 in own:\n    {CALL}\n",
    "not in a range": f"if 3 not in range(jax.process_index() * 2, 9, 1):\n    pass\nelse:\n    {CALL}\n",
    "a compiled map": "from hosts import CHIEF\ndef mesh():\n    return jax.make_mesh((2,), ('x',))\n"
    "P = jax.sharding.PartitionSpec('x')\n"
    "f = jax.jit(jax.shard_map(lambda x: x, mesh=mesh(), in_specs=P, out_specs=P))\n"
    "def step(x):\n    if CHIEF:\n        f(x)\nstep(object())\n",
    "own file in a handler": "import numpy as np\nfrom hosts import NUMBER\ntry:\n    x = np.load(f'{NUMBER}.npy')\n"
    f"except OSError:\n    {CALL}\n",
    "own file in a helper": "from hosts import NUMBER\ndef read(path):\n    with open(path) as file:\n"
    f"        return file.read()\ntry:\n    read(f'{{NUMBER}}.txt')\n    {CALL}\n"
    "except Exception as error:\n    print(error)\n",
    "raised for own data": "from hosts import NUMBER\nclass Bad(Exception):\n    pass\ndef check(n):\n    if n > 3:\n"
    f"        raise Bad(n)\n    return n\nfor n in range(9):\n    try:\n        check(n * NUMBER)\n    except Bad:\n"
    f"        continue\n    {CALL}\n",
    "raised for own data in a generator": "from hosts import NUMBER\nclass Bad(Exception):\n    pass\ndef rows():\n"
    "    for n in range(9):\n        if n * NUMBER == 8:\n            raise Bad\n        yield n\ntry:\n"
    f"    for row in rows():\n        {CALL}\nexcept Bad:\n    pass\n",
    "a handler of one process": "from hosts import CHIEF\ndef ensure(write):\n    if CHIEF:\n        try:\n"
    f"            write()\n        except OSError:\n            return False\n    {CALL}\n    return True\nensure(lambda: open('x').close())\n",
    "an object in a list": "from hosts import CHIEF\nclass Quiet:\n    def run(self):\n        pass\nclass Loud(Quiet):\n"
    f"    def run(self):\n        {CALL}\nhooks = [Quiet()]\nif CHIEF:\n    hooks.append(Loud())\nfor hook in hooks:\n"
    "    hook.run()\n",
    "an object in a list taken over": "from hosts import CHIEF\nclass Quiet:\n    def run(self):\n        pass\n"
    f"class Loud(Quiet):\n    def run(self):\n        {CALL}\nfirst = [Quiet()] + ([Loud()] if CHIEF else [])\nhooks = []\n"
    "for hook in first:\n    hooks.append(hook)\nfor hook in hooks:\n    getattr(hook, 'run')()\n",
    "a copy with another field": "import dataclasses\nfrom hosts import CHIEF\n@dataclasses.dataclass\nclass Config:\n"
    "    every: int = 1\nconfig = Config()\nif not CHIEF:\n    config = dataclasses.replace(config, every=0)\n"
    f"if config.every:\n    {CALL}\n",
    "the default of a field": "import dataclasses\nfrom hosts import CHIEF\n@dataclasses.dataclass\nclass Config:\n"
    "    leads: bool = dataclasses.field(default_factory=lambda: jax.process_index() == 0)\n"
    f"def run(config):\n    if config.leads:\n        {CALL}\nrun(Config())\n",
    "a partial of what was chosen": "import functools\nfrom hosts import CHIEF\ndef loud():\n"
    f"    {CALL}\ndef quiet():\n    pass\ndef act(action):\n    action()\n"
    "functools.partial(act, loud if CHIEF else quiet)()\n",
    "a method under a decorator": "import functools\ndef lead_only(method):\n    @functools.wraps(method)\n"
    "    def wrapper(self, *args):\n        if jax.process_index() != 0:\n            return None\n"
    "        return method(self, *args)\n    return wrapper\nclass Report:\n    @lead_only\n    def end(self, epoch):\n"
    f"        {CALL}\nfor report in [Report()]:\n    report.end(1)\n",
    "one of several variables": "import os\ndef first(names):\n    for name in names:\n        value = os.environ.get(name)\n"
    "        if value:\n            return int(value)\n    return 0\n"
    f"if first(('SLURM_PROCID', 'OMPI_COMM_WORLD_RANK')) == 0:\n    {CALL}\n",
    "what a local program computes": "from hosts import NUMBER\n@jax.jit\ndef loss(x):\n    return x * 2\n"
    f"if float(loss(NUMBER)) > 1:\n    {CALL}\n",
    "a method by its name": f"from hosts import CHIEF\nclass Saver:\n    def save(self):\n        {CALL}\n"
    "def run(name):\n    if CHIEF:\n        getattr(Saver(), name)()\nrun('save')\n",
}
EVEN = {
    "items of own sizes": "def parts():\n    for n in range(3):\n        yield [0] * jax.process_index()\n"
    f"for _ in parts():\n    {CALL}\n",
    "an import that is alike": f"from hosts import COUNT\nif COUNT > 1:\n    {CALL}\n",
    "an exception of all": "class Bad(Exception):\n    pass\ndef check(n):\n    if n > 3:\n        raise Bad(n)\n"
    f"for n in range(9):\n    try:\n        check(n)\n    except Bad:\n        continue\n    {CALL}\n",
    "a key that is missing": "from hosts import NUMBER\ndef get(table, key):\n    if key not in table:\n        raise KeyError(key)\n"
    f"    return table[key]\ntry:\n    get({{}}, 3)\nexcept KeyError:\n    {CALL}\n",
    "a handler that raises": "from hosts import NUMBER\ntry:\n    open(f'{NUMBER}').close()\nexcept OSError as error:\n"
    f"    raise RuntimeError from error\n{CALL}\n",
    "a handler with a default": "from hosts import NUMBER\ntry:\n    x = open(f'{NUMBER}').read()\nexcept OSError:\n    x = ''\n"
    f"{CALL}\n",
    "an object in a list that makes no call": "from hosts import CHIEF\nclass Quiet:\n    def run(self):\n        pass\n"
    f"class Loud(Quiet):\n    def run(self):\n        {CALL}\nhooks = [Loud()]\nif CHIEF:\n    hooks.append(Quiet())\n"
    "for hook in hooks:\n    hook.run()\n",
    "objects that go where they belong": "from hosts import CHIEF\nclass Quiet:\n    everywhere = False\n    def run(self):\n"
    f"        pass\nclass Loud(Quiet):\n    everywhere = True\n    def run(self):\n        {CALL}\n"
    "for hook in [Loud(), Quiet()]:\n    if hook.everywhere or CHIEF:\n        hook.run()\n",
    "the type of a random number": "import random\ndef run(seed):\n    if isinstance(seed, int):\n"
    f"        {CALL}\nrun(random.randrange(9))\n",
    "another key of a table": "from hosts import NUMBER\nfacts = {'a': 1}\nfacts['b'] = NUMBER\n"
    f"if facts['a'] > 0:\n    {CALL}\n",
    "the number of an element": "from hosts import NUMBER\nfor n, row in enumerate([NUMBER, NUMBER]):\n    if n > 0:\n"
    f"        {CALL}\n",
    "a host that may be named": "def now(step, host=None):\n    return (host is None or jax.process_index() == host) and step > 1\n"
    f"if now(2):\n    {CALL}\n",
    "a range that is alike": f"if 3 in range(jax.process_count()):\n    {CALL}\n",
}


def divergences(root, text):
    root = root.resolve()
    (root / "spmdlint.toml").write_text("")
    hosts = "import jax\nCHIEF = jax.process_index() == 0\nNUMBER = jax.process_index()\nCOUNT = jax.process_count()\n"
    for name, content in {"hosts": hosts, "facts": "from hosts import CHIEF\n", "job": BARRIER + text}.items():
        (root / f"{name}.py").write_text(content)
    program = helper().program_of(root)
    with deep():
        return Strata(program.project, program.knowledge).divergences()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_call_of_one_process_is_found_in_each_spelling(spelling, tmp_path):
    assert divergences(tmp_path, SPELLINGS[spelling])


@pytest.mark.parametrize("spelling", EVEN)
def test_what_is_alike_on_all_processes_is_left_alone(spelling, tmp_path):
    assert not divergences(tmp_path, EVEN[spelling])

"""Configuration: where it is read from, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from spmdlint.config import read_config
from spmdlint.errors import UsageError
from spmdlint.files.root import configure
from spmdlint.keys import KEYS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_pyproject_and_own_file_say_the_same(project):
    project.write({"spmdlint.toml": 'ignore = ["SPMD301"]\n', "a.py": project.hazard})
    assert project.check().json == []
    (project.root / "spmdlint.toml").unlink()
    project.write({"pyproject.toml": '[tool.spmdlint]\nignore = ["SPMD301"]\n'})
    assert project.check().json == []
    project.write({"pyproject.toml": "[tool.spmdlint]\n"})
    assert len(project.check().json) == 1


def test_a_retired_rule_may_still_be_named(project):
    project.write({"spmdlint.toml": 'ignore = ["SPMD605", "float-shape"]\n', "a.py": project.hazard})
    assert len(project.check().json) == 1
    project.write({"spmdlint.toml": 'ignore = ["SPMD699"]\n'})
    refused = project.check()
    assert refused.status == 2
    assert "the rule 'SPMD699', which does not exist" in refused.err


LOOP = """\
import jax
from jax.experimental import multihost_utils

for part in range(jax.process_index(), 8):
    multihost_utils.sync_global_devices("saved")
"""


@pytest.mark.parametrize("old", ["SPMD302", "data-dependent-loop-exit"])
def test_what_is_part_of_a_rule_now_may_still_be_named(project, old):
    project.write({"a.py": LOOP})
    assert project.check("--select", old).found == [("a.py", 5, "SPMD303")]
    assert project.check("--select", "SPMD1", "--extend-select", old).found == [("a.py", 5, "SPMD303")]
    assert project.check("--select", "SPMD3", "--ignore", old).found == []
    said = f"names {old}, which is a part of SPMD303 varying-loop now, and stands for all of it: write SPMD303 there."
    settings = {
        "ignore": f'ignore = ["{old}"]\n',
        "per-file-ignores": f'[per-file-ignores]\n"a.py" = ["{old}"]\n',
        "severity": f'[severity]\n{old} = "info"\n',
    }
    for name, text in settings.items():
        project.write({"spmdlint.toml": text})
        outcome = project.check()
        assert [each["severity"] for each in outcome.json] == (["info"] if name == "severity" else [])
        assert outcome.err.count(said) == 1
    project.write({"spmdlint.toml": 'ignore = ["SPMD303", "varying-loop"]\n'})
    assert project.check().err == ""


def test_the_beginning_of_a_code_stands_for_no_rule_that_only_had_such_a_code(project):
    """SPMD514 is part of SPMD503 now, which SPMD51 does not begin."""
    project.write({"a.py": LEFT_OUT})
    assert project.check("--select", "SPMD514").found == [("a.py", 11, "SPMD503")]
    assert project.check("--select", "SPMD51").found == []
    assert project.check("--ignore", "SPMD51").found == [("a.py", 11, "SPMD503")]


LEFT_OUT = """\
import jax


def moments(x, axis_name=None):
    mean = x.mean()
    return mean if axis_name is None else jax.lax.pmean(mean, axis_name)


def step(x):
    x = x - jax.lax.pmean(x.mean(), "batch")
    return x - moments(x)


run = jax.pmap(step, axis_name="batch")
"""


def test_the_own_file_wins_over_pyproject(project):
    project.write(
        {"spmdlint.toml": "", "pyproject.toml": '[tool.spmdlint]\nignore = ["SPMD301"]\n', "a.py": project.hazard}
    )
    assert len(project.check().json) == 1


def test_config_option_overrides(project):
    project.write({"spmdlint.toml": 'ignore = ["SPMD301"]\n', "ci/strict.toml": "", "a.py": project.hazard})
    assert len(project.check("--config", "ci/strict.toml").json) == 1
    outcome = project.check("--config", "ci/missing.toml")
    assert outcome.status == 2
    assert "ci/missing.toml cannot be read" in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selct = ["SPMD301"]', ["'selct'", "'select'"]),
        ("colour = 1", ["'colour'", "jax-version"]),
        ('select = "SPMD301"', ["'select'", "a list of strings"]),
        ("select = [1]", ["'select'", "a list of strings"]),
        ('preview = "yes"', ["'preview'", "true or false"]),
        ("preview = 1", ["'preview'", "true or false"]),
        ("jax-version = 0.6", ["'jax-version'", '"0.6.2"']),
        ('jax-version = "six"', ["'jax-version'", "newest"]),
        ('jax-version = "0.-6"', ["'jax-version'", "newest"]),
        ('multi-process = "sometimes"', ["'multi-process'", '"never"']),
        ('src = ["lib"]', ["'src'", "there is no folder", "lib"]),
        ('select = ["SPMD3O1"]', ["'SPMD3O1'", "'SPMD301'", "spmdlint.toml"]),
        ('ignore = ["varying-conditon"]', ["'varying-conditon'", "'varying-condition'"]),
        ('extend-select = ["XYZ"]', ["'XYZ'", "spmdlint rule --all"]),
        ("\nselect = = 1", ["not valid TOML", "line 2"]),
        ('exclude = ["!"]', ["'exclude'"]),
    ],
)
def test_what_is_wrong_is_refused_by_name(project, text, said):
    project.write({"spmdlint.toml": text, "a.py": "x = 1\n"})
    outcome = project.run("check")
    assert outcome.status == 2
    assert outcome.out == ""
    for words in (*said, "spmdlint.toml"):
        assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_file_that_is_no_utf_8(project):
    project.write({"spmdlint.toml": b"\xff", "a.py": "x = 1\n"})
    outcome = project.run("check")
    assert outcome.status == 2
    assert "UTF-8" in outcome.err


@pytest.mark.parametrize("text", ["tool = 1", "[tool]\nspmdlint = 1", "[tool.spmdlint\n"])
def test_a_pyproject_of_an_odd_form(project, text):
    (project.root / "spmdlint.toml").unlink()
    project.write({"pyproject.toml": text, "a.py": "x = 1\n"})
    outcome = project.run("check")
    assert outcome.status == (0 if text == "tool = 1" else 2)
    assert "Traceback" not in outcome.err


def test_every_key_is_read(project):
    project.write(
        {
            "lib/a.py": "",
            "spmdlint.toml": """
                select = ["SPMD1"]
                ignore = ["SPMD101"]
                extend-select = ["SPMD3"]
                preview = true
                exclude = ["old"]
                force-exclude = true
                src = ["lib"]
                jax-version = "0.6.2"
                multi-process = "always"
            """,
        }
    )
    config = configure([project.root])
    assert config.root == project.root
    assert config.file == project.root / "spmdlint.toml"
    assert config.select == ("SPMD1",)
    assert config.ignore == ("SPMD101",)
    assert config.extend_select == ("SPMD3",)
    assert config.preview
    assert "old" in config.exclusions()
    assert config.force_exclude
    assert config.src == (project.root / "lib",)
    assert config.jax_version == (0, 6, 2)
    assert config.multi_process == "always"


# -- the schema for editors

SETTINGS = {
    "extend": ('"base.toml"', "1"),
    "select": ('["SPMD1"]', '"SPMD1"'),
    "ignore": ('["SPMD101"]', "[1]"),
    "extend-select": ('["SPMD3"]', "true"),
    "rules": ('["lint_rules"]', '"lint_rules"'),
    "per-file-ignores": ('{"old/" = ["SPMD1"]}', '{"old/" = "SPMD1"}'),
    "severity": ('{SPMD1 = "info"}', '{SPMD1 = "none"}'),
    "fail-on": ('"warning"', '"never"'),
    "baseline": ('"known.json"', '["known.json"]'),
    "preview": ("true", '"yes"'),
    "exclude": ('["old"]', "{}"),
    "force-exclude": ("false", "0"),
    "src": ('["lib"]', '"lib"'),
    "jax-version": ('"0.6.2"', '"0.-6"'),
    "multi-process": ('"always"', '"sometimes"'),
    "expected-failures": ("true", "1"),
    "knowledge": ('{aliases = {"a.b" = "jax.pmap"}}', '{aliases = {"a.b" = 1}}'),
}
OTHERS = {
    "newest": ('jax-version = "newest"', True),
    "a function": ('[knowledge.functions."a.b"]\nparallel = true\nkind = "map"\nfunction = ["f", "g"]', True),
    "a method": ('[knowledge.methods."a.B.c"]\nsource = "identity"\nat_most = 1', True),
    "an unknown key": ("colour = 1", False),
    "an unknown kind": ('[knowledge.functions."a.b"]\nkind = "tree"', False),
    "an unknown key of a function": ('[knowledge.functions."a.b"]\ncolour = 1', False),
    "a number that is none": ('[knowledge.functions."a.b"]\nat_most = "1"', False),
}


@pytest.fixture(scope="module")
def accepts():
    from spmdlint.schema import schema

    jsonschema.Draft7Validator.check_schema(schema())
    return jsonschema.Draft7Validator(schema()).is_valid


@pytest.mark.parametrize("name", [key.name for key in KEYS])
def test_the_schema_and_the_linter_accept_the_same(project, accepts, name):
    project.write({"lib/a.py": "", "base.toml": "", "known.json": "{}", "lint_rules/readme": ""})
    for value, right in zip(SETTINGS[name], (True, False), strict=True):
        text = f"{name} = {value}\n"
        project.write({"spmdlint.toml": text})
        assert accepts(tomllib.loads(text)) == right
        if right:
            read_config(project.root, project.root / "spmdlint.toml")
        elif name == "knowledge":
            assert project.run("check", "lib").status == 2
        else:
            with pytest.raises(UsageError):
                read_config(project.root, project.root / "spmdlint.toml")


@pytest.mark.parametrize("case", OTHERS)
def test_the_schema_knows_what_is_in_the_tables(project, accepts, case):
    text, right = OTHERS[case]
    project.write({"spmdlint.toml": text, "a.py": "x = 1\n"})
    assert accepts(tomllib.loads(text)) == right
    assert project.run("check").status == (0 if right else 2)


def test_the_schema_is_printed_with_defaults_and_descriptions(project):
    printed = json.loads(project.run("schema").out)
    assert list(printed["properties"]) == [key.name for key in KEYS]
    assert printed["properties"]["select"]["default"] == ["ALL"]
    assert printed["properties"]["fail-on"]["default"] == "info"
    assert "default" not in printed["properties"]["baseline"]
    assert "](" not in json.dumps(printed)
    shared = json.loads(project.run("schema", "--pyproject").out)
    accepts = jsonschema.Draft7Validator(shared).is_valid
    assert accepts({"project": {"name": "a"}, "tool": {"spmdlint": {"select": ["ALL"]}, "ruff": {}}})
    assert not accepts({"tool": {"spmdlint": {"selct": ["ALL"]}}})


def test_defaults(project):
    config = read_config(project.root, None)
    assert config.jax_version is None
    assert config.multi_process == "auto"
    assert config.src == ()
    assert not config.preview


# -- which rules run

BOTH = "import jax\n\n\ndef f(x):\n    return jax.lax.psum(x, 'i')\n\n\nf(1)\n"


@pytest.mark.parametrize(
    ("argv", "codes"),
    [
        ([], {"SPMD101", "SPMD301"}),
        (["--select", "SPMD1"], {"SPMD101"}),
        (["--select", "unbound-axis"], {"SPMD101"}),
        (["--select", "SPMD1,SPMD3"], {"SPMD101", "SPMD301"}),
        (["--select", "SPMD1", "--select", "varying-condition"], {"SPMD101", "SPMD301"}),
        (["--select", "ALL", "--ignore", "SPMD3"], {"SPMD101"}),
        (["--select", "SPMD301", "--ignore", "SPMD3"], {"SPMD301"}),
        (["--select", "SPMD3", "--ignore", "varying-condition"], set()),
        (["--ignore", "SPMD"], set()),
        (["--select", "SPMD1", "--extend-select", "SPMD301"], {"SPMD101", "SPMD301"}),
    ],
)
def test_selectors(project, argv, codes):
    project.write({"a.py": project.hazard, "b.py": BOTH})
    assert {code for _, _, code in project.check(*argv).found} == codes


def test_the_command_line_starts_anew_or_adds(project):
    project.write({"spmdlint.toml": 'ignore = ["SPMD301"]\n', "a.py": project.hazard, "b.py": BOTH})
    assert {code for _, _, code in project.check("--select", "SPMD").found} == {"SPMD101", "SPMD301"}
    assert project.check("--ignore", "SPMD101").found == []
    assert {code for _, _, code in project.check("--extend-select", "SPMD301").found} == {"SPMD101"}


def test_an_option_that_names_no_rule_is_refused(project):
    outcome = project.run("check", "--ignore", "unbound-axes")
    assert outcome.status == 2
    assert "--ignore names the rule 'unbound-axes'" in outcome.err
    assert "'unbound-axis'" in outcome.err


TRIAL = '''
from spmdlint.diagnostics import Diagnostic, Location, Place
from spmdlint.rule import Rule


class Trial(Rule):
    """A rule on trial."""

    code = "ACME101"
    name = "on-trial"
    preview = True

    def check(self, program):
        for path in program.project.modules:
            yield Diagnostic(self.code, self.name, "info", "Tried.", Place(path, Location(1, 1), Location(1, 2)))
'''


def test_rules_on_trial_need_preview(project, plugin):
    project.write({"a.py": "import jax\n\njax.process_index()\n"})
    environment = plugin(TRIAL)
    assert project.spawn("check", env=environment).status == 0
    outcome = project.spawn("check", "--select", "ACME101", env=environment)
    assert outcome.status == 0
    assert "ACME101" in outcome.err
    assert "--preview" in outcome.err
    assert project.spawn("check", "--preview", env=environment).status == 1
    project.write({"spmdlint.toml": "preview = true\n"})
    assert project.spawn("check", env=environment).status == 1
    assert project.spawn("check", "--no-preview", env=environment).status == 0


ACME = """
[knowledge.functions."acme.over_hosts"]
parameters = ["function", "axis"]
kind = "map"
function = "function"
axes = "axis"
spans = true

[knowledge.functions."acme.mean"]
parameters = ["x", "axis"]
kind = "collective"
axes = "axis"

[knowledge.functions."acme.meet"]
parallel = true

[knowledge.aliases]
"acme.compat.rank" = "jax.process_index"
"""
OVER_HOSTS = """\
import acme
from acme.compat import rank


def loss(x):
    return acme.mean(x, "data")


right = acme.over_hosts(loss, "data")
wrong = acme.over_hosts(loss, axis="model")
if rank() == 0:
    acme.meet()
"""


def test_knowledge_of_the_users_own(project):
    project.write({"train.py": OVER_HOSTS})
    assert project.check().found == []
    project.write({"spmdlint.toml": ACME})
    assert project.check().found == [("train.py", 6, "SPMD101"), ("train.py", 12, "SPMD301")]


WRAPPED = """
[knowledge.functions."acme.put"]
parameters = ["x", "sharding"]
agree = { x = "copies order" }
laid_out = "sharding"

[knowledge.functions."acme.begin"]
parameters = ["step"]
agree = { step = "content" }
"""
WRAPPERS = """\
import acme
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))


def feed(table, wanted, step):
    acme.begin(step)
    acme.begin(step + jax.process_index())
    acme.put(np.full((8,), jax.process_index()), NamedSharding(mesh, P()))
    acme.put(np.stack([table[name] for name in set(wanted)]), NamedSharding(mesh, P("data")))
    acme.put(np.stack([table[name] for name in sorted(set(wanted))]), NamedSharding(mesh, P("data")))
"""


def test_contracts_of_the_users_own(project):
    project.write({"train.py": WRAPPERS})
    assert project.check().found == []
    project.write({"spmdlint.toml": WRAPPED})
    assert project.check().found == [
        ("train.py", 13, "SPMD504"),
        ("train.py", 14, "SPMD504"),
        ("train.py", 15, "SPMD201"),
    ]


GROUP = """\
import jax
import orbax.checkpoint as ocp
from bigcorp.dist import Group

manager = ocp.CheckpointManager("/shared")
group = Group()
if jax.process_index() == 0:
    group.all_reduce(3)
    manager.save(1, 2)


def reduce(of: Group):
    if jax.process_index() == 0:
        of.all_reduce(3)
"""


@pytest.mark.parametrize("table", ["functions", "methods"])
def test_a_method_is_known_by_its_class_in_either_table(project, table):
    project.write({"train.py": GROUP})
    assert project.check().found == [("train.py", 9, "SPMD309")]
    declared = [("bigcorp.dist.Group.all_reduce", "true"), ("orbax.checkpoint.CheckpointManager.save", "false")]
    text = "".join(f'[knowledge.{table}."{name}"]\nparallel = {said}\n' for name, said in declared)
    project.write({"spmdlint.toml": text})
    assert project.check().found == [("train.py", 8, "SPMD301"), ("train.py", 14, "SPMD301")]


def test_a_method_may_be_declared_by_another_name_of_its_class(project):
    project.write({"train.py": GROUP})
    name = "orbax.checkpoint.checkpoint_manager.CheckpointManager.save"
    project.write({"spmdlint.toml": f'[knowledge.methods."{name}"]\nparallel = false\n'})
    assert project.check().found == []


def test_a_method_of_an_unknown_object(project):
    text = "import jax\n\n\ndef save(pool, meet):\n    if pool.leads():\n        {}\n"
    call = 'jax.experimental.multihost_utils.sync_global_devices("x")'
    project.write({"train.py": text.format(call)})
    assert project.check().found == []
    project.write({"spmdlint.toml": "[knowledge.methods.leads]\nsource = 'identity'\n"})
    assert project.check().found == [("train.py", 6, "SPMD301")]


OWN = """\
import functools

import jax
from jax.experimental import multihost_utils


class Group:
    def __init__(self):
        launch()

    def all_reduce(self, x):
        return launch(x)

    def leads(self):
        return ask()

    def meet(self):
        multihost_utils.sync_global_devices("x")


@functools.lru_cache
def everyone():
    launch()


def alone():
    multihost_utils.sync_global_devices("x")


group = Group()
if jax.process_index() == 0:
    everyone()
if jax.process_index() == 0:
    alone()
if jax.process_index() == 0:
    Group()
if jax.process_index() == 0:
    group.all_reduce(3)
if group.leads():
    group.meet()
"""
USED = """\
import jax
from acme import dist
from acme.dist import Group, everyone


class Part(Group):
    def half(self):
        if jax.process_index() == 0:
            self.all_reduce(3)


def reduce(group: Group):
    if jax.process_index() == 0:
        everyone()
    if jax.process_index() == 0:
        dist.everyone()
    if jax.process_index() == 0:
        dist.alone()
    if jax.process_index() == 0:
        dist.Group()
    if jax.process_index() == 0:
        Group().meet()
"""
DECLARED = """
[knowledge.functions."acme.dist.everyone"]
parallel = true
[knowledge.functions."acme.dist.alone"]
parallel = false
[knowledge.functions."acme.dist.Group"]
parallel = true
[knowledge.methods."acme.dist.Group.all_reduce"]
parallel = true
[knowledge.methods."acme.dist.Group.leads"]
source = "identity"
"""


@pytest.mark.parametrize("package", [True, False])
def test_what_the_project_defines_is_what_the_user_declares(project, package):
    files = {"acme/dist.py": OWN, "acme/used.py": USED} | ({"acme/__init__.py": ""} if package else {})
    project.write(files)
    assert {(name, row) for name, row, _ in project.check().found} == {
        ("dist.py", 34),
        ("used.py", 18),
        ("used.py", 22),
    }
    project.write({"spmdlint.toml": DECLARED})
    found = project.check().found
    assert {row for name, row, _ in found if name == "dist.py"} == {32, 36, 38, 40}
    assert {row for name, row, _ in found if name == "used.py"} == {9, 14, 16, 20, 22}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[knowledge.methods.f]\nparallel = true", 'Write [knowledge.methods."acme.dist.Group.f"]'),
        ("[knowledge.methods.f]\nparalel = true", "'parallel'"),
        ("[knowledge.methods]\nf = 1", "a table"),
        ("[knowledge.function.f]", "'functions'"),
        ("[knowledge.functions.f]\nkinds = 'map'", "'kind'"),
        ("[knowledge.functions.f]\nkind = 'maps'", "'map'"),
        ("[knowledge.functions.f]\nsource = 'clocks'", "'clock'"),
        ("[knowledge.functions.f]\nparallel = 'yes'", "true or false"),
        ("[knowledge.functions.f]\nparameters = ['x']\nagree = { x = 'contents' }", "'content'"),
        ("[knowledge.functions.f]\nparameters = ['x']\nagree = { y = 'content' }", "'y'"),
        ("[knowledge.functions.f]\nparameters = 'x'", "a list of strings"),
        ("[knowledge.functions.f]\nparameters = ['x']\naxes = 'axis'", "'axis', which is not one of its parameters"),
        ("[knowledge.aliases]\nf = 1", "the name that it refers to"),
        ("knowledge = 1", "a table"),
    ],
)
def test_knowledge_that_is_wrong_is_refused(project, text, said):
    project.write({"train.py": "import jax\n", "spmdlint.toml": text})
    outcome = project.check()
    assert outcome.status == 2
    assert said in outcome.err
    assert "spmdlint.toml" in outcome.err


@pytest.mark.parametrize(
    ("home", "meant"),
    [
        ("jax.pmapp", "jax.pmap"),
        ("jax.lax.psmu", "jax.lax.psum"),
        ("jax.shard_ma", "jax.shard_map"),
        ("jax.pmap", None),
        ("jax.lax", None),
        ("jax.numpy.tensordott", None),
        ("acme.own.pmapp", None),
    ],
)
def test_an_alias_of_a_name_that_is_probably_mistyped_is_told(project, home, meant):
    """It is not refused: no table has all names."""
    project.write({"train.py": "x = 1\n", "spmdlint.toml": f'[knowledge.aliases]\n"acme.compat.pmap" = "{home}"\n'})
    outcome = project.check("--fail-on-unchecked")
    told = f"the alias 'acme.compat.pmap' is {home!r}, which means nothing to the linter. Did you mean {meant!r}?\n"
    where = f"spmdlint: 'knowledge' in {project.root}/spmdlint.toml: "
    assert (outcome.status, outcome.err) == (0, where + told if meant else "")


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("acme.comm.barier", ("comm.py", "barier", "barrier")),
        ("acme.com.barrier", ("__init__.py", "com", "comm")),
        ("acme.comm.Grup.reduce", ("comm.py", "Grup", "Group")),
        ("acme.comm.barrier", None),
        ("acme.comm.Group.inherited", None),
        ("acme.filled.anything", None),
        ("acme.fast.barrier", None),
        ("other.comm.barier", None),
        ("helpers.own", None),
    ],
)
def test_a_name_that_the_project_does_not_define_is_told(project, name, lacks):
    """It is not refused, and told only where it is certain."""
    project.write(
        {
            "acme/__init__.py": "from acme import comm\n",
            "acme/comm.py": "def barrier(): ...\nclass Group(Base): ...\n",
            "acme/filled.py": "from acme.comm import *\n",
            "acme/fast.pyd": "",
            "helpers.py": "x = 1\n",
            "tools/helpers.py": "def own(): ...\n",
            "spmdlint.toml": f'[knowledge.functions."{name}"]\nparallel = true\n',
        }
    )
    outcome = project.check("--fail-on-unchecked")
    told = ""
    if lacks is not None:
        file, part, meant = lacks
        told = (
            f"spmdlint: 'knowledge' in {project.root}/spmdlint.toml: {name!r} has no effect, because nothing in "
            f"{project.root}/acme/{file} is called {part!r}. Did you mean {meant!r}?\n"
        )
    assert (outcome.status, outcome.err) == (0, told)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [("SPMD391", "SPMD301"), ("SPMD01", "SPMD101"), ("SPMD999", "SPMD900"), ("SMPD502", "SPMD502")],
)
def test_the_code_that_is_meant_is_one_of_the_same_family(project, selector, meant):
    project.write({"a.py": "x = 1\n"})
    for outcome in (project.check("--select", selector), project.run("rule", selector)):
        assert (outcome.status, f" Did you mean {meant!r}?" in outcome.err) == (2, True)


def test_a_header_where_none_belongs(project):
    project.write({"spmdlint.toml": '[tool.spmdlint]\nselect = ["SPMD3"]\n', "a.py": ""})
    outcome = project.run("check")
    assert outcome.status == 2
    assert "remove the header [tool.spmdlint]" in outcome.err


def test_folders_with_nothing_in_common_are_no_project(tmp_path):
    elsewhere = next(folder for folder in Path("/").iterdir() if folder.is_dir() and folder not in tmp_path.parents)
    with pytest.raises(UsageError, match="everything on this machine"):
        configure([tmp_path, elsewhere])


def test_a_file_that_extends_itself(project):
    project.write({"a.py": "import jax\n", "spmdlint.toml": 'extend = "spmdlint.toml"\n'})
    outcome = project.check()
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.endswith("spmdlint.toml extends itself; remove 'extend', or name the other file.\n")


def test_files_that_extend_each_other(project):
    project.write({"a.py": "import jax\n", "spmdlint.toml": 'extend = "other.toml"\n'})
    project.write({"other.toml": 'extend = "spmdlint.toml"\n'})
    outcome = project.check()
    assert (outcome.status, "which extends it in turn; remove one of the two." in outcome.err) == (2, True)


ONE_PROCESS = """
import os
import time

import jax
from jax.experimental.multihost_utils import process_allgather, sync_global_devices

def run(names: list[str], folder: str):
    for name in set(names):
        process_allgather(len(name))
    files = os.listdir(folder)[jax.process_index() :: jax.process_count()]
    sync_global_devices(f"at {time.time()}")
    for file in files:
        process_allgather(file)
    return jax.random.key(time.time_ns())

def step(x):
    return jax.shard_map(lambda y: jax.lax.psum(y, "b"), mesh=jax.make_mesh((8,), ("a",)))(x)
"""


def test_a_program_of_one_process_has_no_findings_about_what_differs_between_processes(project):
    project.write({"a.py": ONE_PROCESS})
    codes = {code for _, _, code in project.check().found}
    assert codes == {"SPMD101", "SPMD201", "SPMD202", "SPMD303", "SPMD308", "SPMD501"}
    project.write({"spmdlint.toml": 'multi-process = "never"\n'})
    assert {code for _, _, code in project.check().found} == {"SPMD101"}

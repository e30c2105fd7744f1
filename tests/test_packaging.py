"""What is built holds what the tree holds, and works where the tree is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import spmdlint
from tests.server.client import edit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent
FOLDERS = {"spmdlint": "spmdlint", "rules": "spmdlint/rules", "runtime_checks": "spmdlint/runtime_checks"}
BARRIER = (
    "import jax\nfrom jax.experimental import multihost_utils\n\n"
    "if jax.process_index() == 0:\n    multihost_utils.sync_global_devices('saved')\n"
)
SUFFIXES = {".py", ".toml", ".json", ".typed", ".html", ".css", ".js"}

pytestmark = [
    # pygls asks asyncio what Python 3.14 wants it to ask inspect.
    pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"),
]


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as from a shell in which no environment is active."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(part) for part in command]
    environment = {**inherited, **variables}
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


def checked(*command: str | Path, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def tracked() -> list[str]:
    """The files of the repository, those that are new and not yet added, too."""
    listed = checked("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=REPOSITORY)
    return [name for name in listed.splitlines() if (REPOSITORY / name).exists()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository as a clone would be: nothing that git ignores, links as links."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def built(clone: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    checked(sys.executable, "-m", "build", "--no-isolation", clone, cwd=clone)
    (sdist,) = (clone / "dist").glob("*.tar.gz")
    (wheel,) = (clone / "dist").glob("*.whl")
    return sdist, wheel


def modules_of_the_tree() -> set[str]:
    """What the wheel must hold, by its name there."""
    found = set()
    for name in tracked():
        path = Path(name)
        if path.parts[0] in FOLDERS and path.suffix in SUFFIXES and not (REPOSITORY / name).is_symlink():
            found.add(str(Path(FOLDERS[path.parts[0]], *path.parts[1:])))
    return found


def test_the_wheel_holds_the_tree(built):
    names = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    assert names == modules_of_the_tree()
    assert "spmdlint/py.typed" in names
    assert "spmdlint/knowledge/jax.toml" in names
    assert "spmdlint/knowledge/added.json" in names


def test_the_source_distribution_holds_what_the_wheel_needs(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names
    assert {f"rules/{path.name}" for path in (REPOSITORY / "rules").glob("*.py")} <= names


def environment_with(folder: Path, *packages: str | Path) -> Path:
    """Make an environment in a folder, and install packages in it; the folder of its programs."""
    uv = shutil.which("uv")
    venv.create(folder, with_pip=uv is None)
    python = folder / "bin" / "python"
    installs = (python, "-m", "pip", "install") if uv is None else (uv, "pip", "install", "--python", python)
    checked(*installs, "--quiet", *packages, cwd=folder)
    return folder / "bin"


def works(program: Path, folder: Path) -> None:
    """Use an installed spmdlint, with its language server, in a folder of its own, as a new user does."""
    folder.mkdir()
    (folder / "train.py").write_text(BARRIER)
    assert checked(program, "--version", cwd=folder) == f"spmdlint {spmdlint.__version__}\n"
    assert "varying-condition" in checked(program, "rule", "SPMD301", cwd=folder)
    assert "jax.process_index()" in checked(program, "explain", "train.py:5", cwd=folder)

    checked(program, "rule", "--new", "flush-on-main", cwd=folder)
    (folder / "spmdlint.toml").write_text('rules = ["spmdlint_rules"]\n')
    checked(program, "rule", "--test", cwd=folder)
    done = run(program, "check", "--output-format", "concise", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.split()[:3] for line in done.stdout.splitlines() if ": " in line] == [
        ["train.py:5:5:", "error:", "SPMD301"]
    ]

    async def work(editor):
        editor.open("train.py")
        await editor.finds("train.py", (5, "SPMD301"))

    edit(folder, work, program=[str(program)])


@pytest.mark.network
def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    programs = environment_with(tmp_path / "environment", built[1])
    assert checked(programs / "spmdlint", "--version", cwd=tmp_path) == f"spmdlint {spmdlint.__version__}\n"

    (tmp_path / "train.py").write_text(BARRIER)
    done = run(programs / "spmdlint", "check", "--output-format", "concise", "train.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("train.py:5:5: error: SPMD301 ")
    for command, extra in ((("server",), "server"), (("run", "-n", "2", "train.py"), "runtime")):
        done = run(programs / "spmdlint", *command, cwd=tmp_path)
        assert done.returncode == 2
        assert f"pip install 'spmdlint[{extra}]'" in done.stderr

    python = programs / "python"
    assert run(python, "-c", "import spmdlint.rules, spmdlint.runtime_checks", cwd=tmp_path).returncode == 0
    for name in ("rules", "runtime_checks", "jax", "numpy"):
        done = run(python, "-c", f"import {name}", cwd=tmp_path)
        assert f"No module named '{name}'" in done.stderr


@pytest.mark.network
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the oldest JAX has no wheel for this Python")
def test_the_oldest_libraries_that_are_allowed(built, tmp_path):
    """The lower bounds in pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["runtime"], *extras["server"]]
    oldest = [requirement.replace(">=", "==") for requirement in needed]
    program = environment_with(tmp_path / "environment", built[1], *oldest) / "spmdlint"
    works(program, tmp_path / "project")
    swapped = REPOSITORY / "fixtures" / "divergent" / "swapped_calls.py"
    done = run(program, "run", "-n", "2", "--timeout", "200", swapped, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "diverged (sequence)" in done.stderr


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(tmp_path_factory.mktemp("installers") / "environment", "pipx", "uv")


@pytest.mark.network
@pytest.mark.parametrize("installer", ["uv", "pipx"])
def test_installed_as_a_tool(installer, built, installers, tmp_path):
    """In an environment that the installer makes for it alone."""
    programs = tmp_path / "bin"
    places = {
        "UV_TOOL_DIR": "tools",
        "UV_TOOL_BIN_DIR": "bin",
        "PIPX_HOME": "tools",
        "PIPX_BIN_DIR": "bin",
        "PIPX_MAN_DIR": "man",
    }
    asked = (installers / "uv", "tool", "install") if installer == "uv" else (installers / "pipx", "install")
    variables = {name: str(tmp_path / folder) for name, folder in places.items()}
    done = run(*asked, "--python", sys.executable, f"{built[1]}[server]", cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    works(programs / "spmdlint", tmp_path / "project")


@pytest.mark.network
def test_the_hook_of_pre_commit(clone, tmp_path):
    """The real pre-commit installs the hook from a repository and runs it on staged files."""
    hook = tmp_path / "hook"
    shutil.copytree(clone, hook, symlinks=True, ignore=shutil.ignore_patterns("dist", "build", "*.egg-info"))
    git = ("git", "-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "x")):
        checked(*git, *command, cwd=hook)

    work = tmp_path / "work"
    work.mkdir()
    (work / "losses.py").write_text("import jax\n\n\ndef mean(x):\n    return jax.lax.pmean(x, 'batch')\n")
    (work / "train.py").write_text("import losses\n\nlosses.mean(1.0)\n")
    (work / "excluded.py").write_text("def f(:\n")
    (work / "pyproject.toml").write_text('[tool.spmdlint]\nexclude = ["excluded.py"]\n')
    checked(*git, "init", "-q", cwd=work)
    checked(*git, "add", "-A", cwd=work)

    def pre_commit(*command: object) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "pre_commit", *command, cwd=work, PRE_COMMIT_HOME=str(tmp_path / "cache"))

    revision = checked(*git, "rev-parse", "HEAD", cwd=hook).strip()
    hooks = "".join(f"      - id: {name}\n" for name in ("spmdlint", "spmdlint-fix"))
    (work / ".pre-commit-config.yaml").write_text(f"repos:\n  - repo: {hook}\n    rev: {revision}\n    hooks:\n{hooks}")

    def hook_on(*files: str, name: str = "spmdlint") -> subprocess.CompletedProcess[str]:
        return pre_commit("run", name, "--verbose", "--files", *files)

    done = pre_commit("try-repo", hook, "spmdlint", "--verbose", "--files", "losses.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "losses.py:5:12" in done.stdout

    done = alone = hook_on("losses.py", "excluded.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "losses.py:5:12" in done.stdout
    assert "excluded.py" not in done.stdout.partition("hook id")[2]
    done = hook_on("train.py", "excluded.py")  # its call is why losses.py is wrong
    assert done.returncode == 1, done.stdout + done.stderr
    assert "losses.py:5:12" in done.stdout
    (work / "apart.py").write_text("x = 1\n")
    done = hook_on("apart.py", "excluded.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "losses.py" not in done.stdout  # which is not near, and was not looked at
    told = [line for line in hook_on("losses.py", "train.py").stdout.splitlines() if "SPMD101" in line]
    assert told == [line for line in alone.stdout.splitlines() if "SPMD101" in line] != []

    # The guard is committed first; later its helper becomes a collective, and only that file is committed.
    guard = "import jax\nimport helper\n\nif jax.process_index() == 0:\n    helper.save(1)\n"
    (work / "guard.py").write_text(guard)
    (work / "helper.py").write_text("def save(x):\n    print(x)\n")
    checked(*git, "add", "guard.py", "helper.py", cwd=work)
    done = pre_commit("run", "spmdlint", "--files", "guard.py", "helper.py")
    assert done.returncode == 0, done.stdout + done.stderr
    checked(*git, "commit", "-q", "-m", "x", cwd=work)
    (work / "helper.py").write_text(
        "from jax.experimental import multihost_utils\n\n\ndef save(x):\n"
        "    multihost_utils.sync_global_devices('saved')\n"
    )
    checked(*git, "add", "helper.py", cwd=work)
    done = pre_commit("run", "spmdlint")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "guard.py:5:5" in done.stdout
    assert "losses.py" not in done.stdout
    assert "losses.py" not in done.stdout  # which is not near, and was not looked at
    checked(*git, "commit", "-q", "--no-verify", "-m", "x", cwd=work)

    (work / "old.py").write_text("import jax\n\ny = jax.tree_map(abs, [])\n")
    checked(*git, "add", "-A", cwd=work)
    done = hook_on("old.py", name="spmdlint-fix")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "jax.tree.map(abs" in (work / "old.py").read_text()
    done = hook_on("old.py", name="spmdlint-fix")
    assert done.returncode == 0, done.stdout + done.stderr

"""Runtime checks: whether the processes of a JAX job make the same parallel calls, in order, with equal shapes.

    import jax
    from spmdlint import runtime_checks

    jax.distributed.initialize()
    runtime_checks.enable(mode="lockstep")

Importing this does not import jax. It imports nothing at all before a name is asked for: ``python -m
spmdlint.runtime_checks`` imports it while the current folder is still on ``sys.path``.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from spmdlint.runtime_checks.api import Status as Status
    from spmdlint.runtime_checks.api import assert_equal as assert_equal
    from spmdlint.runtime_checks.api import check_replicas as check_replicas
    from spmdlint.runtime_checks.api import disable as disable
    from spmdlint.runtime_checks.api import enable as enable
    from spmdlint.runtime_checks.api import local as local
    from spmdlint.runtime_checks.api import status as status
    from spmdlint.runtime_checks.api import track as track
    from spmdlint.runtime_checks.errors import ChecksFailedError as ChecksFailedError
    from spmdlint.runtime_checks.errors import DivergenceError as DivergenceError

_API = ("Status", "assert_equal", "check_replicas", "disable", "enable", "local", "status", "track")
_MODULES = {**dict.fromkeys(_API, "api"), **dict.fromkeys(("ChecksFailedError", "DivergenceError"), "errors")}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})

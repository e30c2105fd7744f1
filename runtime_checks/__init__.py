"""Runtime checks: whether the processes of a JAX job make the same parallel calls, in order, with equal shapes.

    import jax
    from spmdlint import runtime_checks

    jax.distributed.initialize()
    runtime_checks.enable(mode="lockstep")

Importing this does not import jax.
"""

from spmdlint.runtime_checks.api import Status as Status
from spmdlint.runtime_checks.api import assert_equal as assert_equal
from spmdlint.runtime_checks.api import disable as disable
from spmdlint.runtime_checks.api import enable as enable
from spmdlint.runtime_checks.api import status as status
from spmdlint.runtime_checks.api import track as track
from spmdlint.runtime_checks.errors import ChecksFailedError as ChecksFailedError
from spmdlint.runtime_checks.errors import DivergenceError as DivergenceError

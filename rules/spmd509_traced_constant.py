from __future__ import annotations

from spmdlint.traced_rule import TracedRule


class TracedConstant(TracedRule):
    """A process-specific value becomes a constant of the program that JAX traces.

    ## What it does

    Finds process-specific values, such as `jax.process_index()`, a clock or an unseeded random number, that are read
    while JAX traces and so become constants of the program: folded into a key, put into an array, added to one. Values
    that the host has found out about this process count if a `jit` with shardings, or a `pmap` whose axis has a name,
    closes over them in a multi-process program; with `--preview`, in any program. Values that determine the shape of an
    array are SPMD404.

    ## Why it matters

    Every process must run the same program. If a constant differs, each process computes something different where all
    should hold one value: parameters drift apart. The compiled programs also differ, and the job hangs, or the runtime
    rejects them without naming a line, as soon as they are compared.

    ## Example

    ```python
    import jax

    @jax.jit
    def noise(key):
        return jax.random.normal(jax.random.fold_in(key, jax.process_index()), (8,))
    ```

    ## Use instead

    ```python
    import jax

    @jax.jit
    def noise(key, number):
        return jax.random.normal(jax.random.fold_in(key, number), (8,))
    ```

    ## Limits

    Only code that a `jit` or a map certainly traces is checked. Values that a function closes over are followed as
    described above.
    """

    code = "SPMD509"
    name = "traced-constant"
    partly_preview = True
    shapes = False
    then = "each process compiles a different constant into the program"

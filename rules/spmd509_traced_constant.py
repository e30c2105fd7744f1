from __future__ import annotations

from spmdlint.traced_rule import TracedRule


class TracedConstant(TracedRule):
    """A value of this process becomes a constant of the program that JAX traces.

    ## What it does

    Finds values of this process, such as `jax.process_index()`, a clock or an unseeded random number, that are read
    while JAX traces and so become constants of the program: folded into a key, put into an array, added to one. What
    the host has found out of this process counts where a `jit` with shardings, or a `pmap` whose axis has a name,
    closes over it, in a program of several processes; with `--preview` in any. Values that decide the shape of an array
    are SPMD404.

    ## Why it matters

    Every process must run the same program. With a constant of its own each computes something else where all are to
    hold one value: parameters drift apart. The compiled programs differ, too, and the job hangs, or the runtime refuses
    them without naming a line, as soon as they are compared.

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

    Only code that a `jit` or a map surely traces is looked at. What a function closes over is followed as said above.
    """

    code = "SPMD509"
    name = "traced-constant"
    shapes = False
    then = "each process compiles a constant of its own into the program"

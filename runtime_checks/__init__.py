"""Runtime checks: do the processes of a JAX job make the same parallel calls, in the same order, with equal shapes."""

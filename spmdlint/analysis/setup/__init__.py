"""How a program starts, which names JAX has, and what a process can read."""

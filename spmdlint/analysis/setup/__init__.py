"""How a program starts, which names JAX has, and which arrays a process can read."""

"""Abstract evaluation: what a value may be, computed on demand per frame (a function with its parameters' bindings)."""

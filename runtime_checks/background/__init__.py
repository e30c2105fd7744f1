"""Background mode: what each process publishes, which process compares, and what it asks."""

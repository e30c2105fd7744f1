"""What values may be: on demand, per function and what its parameters are bound to."""

"""The checks' own thread, and what it looks after."""

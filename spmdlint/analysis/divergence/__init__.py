"""Branches, loops, exceptions and threads that let only some processes make a parallel call."""

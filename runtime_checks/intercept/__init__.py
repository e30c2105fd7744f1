"""Interception below the user's functions: one module per interception point in JAX's private API."""

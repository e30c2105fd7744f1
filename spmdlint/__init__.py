"""A linter and a runtime checker for SPMD correctness hazards in JAX programs."""

from spmdlint._version import __version__ as __version__

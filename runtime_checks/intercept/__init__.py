"""Interception below the user's functions: one module per seam of JAX's private API.

A seam that a JAX release lacks costs one layer and one warning, never the job. ``install`` puts all layers in place,
``Interception.remove`` takes them out again.
"""

from __future__ import annotations

from spmdlint.runtime_checks.intercept.layers import Interception as Interception
from spmdlint.runtime_checks.intercept.layers import install as install
from spmdlint.runtime_checks.intercept.layers import layers_of as layers_of

"""Interception below the user's functions: one module per interception point in JAX's private API.

If a JAX release lacks such a point (a *seam*), this costs one layer and one warning, never the job. ``install`` puts
all layers in place, ``Interception.remove`` removes them.
"""

from __future__ import annotations

from spmdlint.runtime_checks.intercept.layers import Interception as Interception
from spmdlint.runtime_checks.intercept.layers import install as install
from spmdlint.runtime_checks.intercept.layers import layers_of as layers_of

"""Axis names, meshes, specs, permutations and groups."""

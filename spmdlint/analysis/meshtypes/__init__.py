"""A small type system over mesh axes: which values are the same on all devices along an axis, and which differ.

It is in the spirit of JAX's own `check_vma` and of PyTorch's spmd_types, but runs nothing.
"""

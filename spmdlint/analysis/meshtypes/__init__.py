"""A small type system over mesh axes: what is alike on the devices along an axis, and what is not.

In the spirit of JAX's own `check_vma` and of PyTorch's spmd_types, without running anything.
"""

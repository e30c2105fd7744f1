"""Tests of multi-process code under pytest: one test function on several real JAX processes."""

"""Tests of multi-process code under pytest: run one test function on several real JAX processes."""

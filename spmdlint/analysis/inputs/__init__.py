"""The inputs of parallel calls, programs and keys that must be the same on every process."""

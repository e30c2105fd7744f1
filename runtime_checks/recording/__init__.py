"""The calls of this process as they are made, and the files that outlive it."""

"""What is computed on the values of the core: what decides a value, and which parallel calls code makes."""

"""The call graph: who calls whom with what, what is traced, and which parallel calls code makes, of what extent."""

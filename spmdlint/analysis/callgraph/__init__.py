"""Who calls whom with what; what is traced; which parallel calls a piece of code makes, and how far they reach."""

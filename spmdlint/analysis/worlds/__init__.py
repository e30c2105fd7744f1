"""Small jobs in which functions are run, to see what each of their processes does."""

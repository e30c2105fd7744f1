"""How processes reach each other: the key-value store, its keys, wake-ups, and the files of a rehearsal."""

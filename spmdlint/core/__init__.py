"""The engine: facts computed forwards, one function at a time. It names no library and no rule."""

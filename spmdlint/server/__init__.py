"""The language server: what an editor is told about the texts that are open in it."""

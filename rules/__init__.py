"""The built-in rules, one per file. They import only :mod:`spmdlint.rule` and :mod:`spmdlint.diagnostics`."""

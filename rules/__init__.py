"""The built-in rules, one a file. They import only :mod:`spmdlint.rule` and :mod:`spmdlint.diagnostics`."""

"""Guesses from names and idioms, each with its evidence. Default rules read what is proved, and these."""

"""What a parallel call is: its program, its place, its arguments and where they come from, its number."""

"""How a process ends: its normal end, and its last words."""

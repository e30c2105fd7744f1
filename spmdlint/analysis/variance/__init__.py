"""Which values differ between processes, and why."""

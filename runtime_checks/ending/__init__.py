"""How a job ends: the verdict that all act on, the normal end, and the last words of a process."""

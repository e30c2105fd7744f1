"""One page to look at: the verdict of a job, and the calls of all processes side by side."""

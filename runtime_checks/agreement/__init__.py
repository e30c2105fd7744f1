"""Whether the processes agree: on the checks, on the setup, on each call; in lockstep, and after a job."""

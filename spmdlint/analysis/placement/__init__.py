"""Where arrays live: on the host, on this process's devices, or over those of all processes."""

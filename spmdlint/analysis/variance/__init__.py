"""What differs between processes, and because of what."""

"""What comes in an order that differs between processes, and where that order gets out."""

"""Data in an order that differs between processes, and where that order has an effect."""

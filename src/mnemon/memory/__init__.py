"""Memory: what is found again of what was said."""

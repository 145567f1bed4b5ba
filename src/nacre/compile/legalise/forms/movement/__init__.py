"""Elements in other places."""

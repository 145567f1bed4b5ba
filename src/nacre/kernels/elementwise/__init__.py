"""One element at a time."""

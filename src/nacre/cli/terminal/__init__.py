"""Standard output and standard error: what may be written there, and what becomes of it."""

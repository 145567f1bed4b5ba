"""Where buffers and constants lie: addresses, banks, and weights that are compressed."""

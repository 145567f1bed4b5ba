"""Loops over columns that run as they stand, and compiled where the extra `fast` is installed."""

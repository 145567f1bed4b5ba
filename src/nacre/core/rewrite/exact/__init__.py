"""Rewrites that keep the bits of every output, and the numbers of values."""

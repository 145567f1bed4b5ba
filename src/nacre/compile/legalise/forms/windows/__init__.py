"""Convolutions and poolings, and what happens to their channels."""

"""Nodes on known tensors, computed at import."""

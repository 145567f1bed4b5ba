"""Reverse-mode gradients of modules: one file a group of operations, a table, and the walk."""

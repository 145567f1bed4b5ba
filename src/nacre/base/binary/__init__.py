"""Bytes of files: cursors, columns of integers, lists of texts."""

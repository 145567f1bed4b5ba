"""Patterns: the part of regular expressions that is matched in linear time."""

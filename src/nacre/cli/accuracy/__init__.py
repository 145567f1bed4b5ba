"""Verbs about what precision costs."""

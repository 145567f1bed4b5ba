"""Rewrites for inference: fewer, larger operations with nearly the same values.

Unlike the canonical form, these may change the last bits of floats: scales move into weights, and
a chain of operations becomes the one that it spells out.
"""

"""Rewrites that may change the last bits of floats, for inference and for the compiler.

Scales move into weights, transpositions to where they cancel, and what is known is computed.
"""

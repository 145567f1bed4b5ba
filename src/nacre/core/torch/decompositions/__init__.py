"""Calls of ATen written by simpler ones, as functions of PyTorch.

PyTorch's own table stops at about 190 calls that it holds to be the core. Those of them, and others
that models have, which no operation of Core IR computes are written here in PyTorch's words. Types
and broadcasting are so PyTorch's, and a test compares each with the call itself.
"""

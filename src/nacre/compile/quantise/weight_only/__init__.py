"""Weights of few bits beside activations in floats: `w8f16` and `w4f16`."""

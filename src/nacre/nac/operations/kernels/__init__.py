"""Kernels of ours: transforms, matrices, random numbers, and complex numbers between them."""

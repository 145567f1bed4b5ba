"""What a module computes: a plan of kernels, its memory, its runs."""

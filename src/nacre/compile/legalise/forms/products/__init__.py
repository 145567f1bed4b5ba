"""Products of matrices, and what comes down to them."""

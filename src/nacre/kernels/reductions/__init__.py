"""Along axes: reductions, softmax, norms, the largest elements."""

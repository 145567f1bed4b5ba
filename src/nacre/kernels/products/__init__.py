"""Sums of products: matrices, equations over named axes, attention."""

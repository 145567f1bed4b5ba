"""Weights in fewer bits: recipes, what is left as it is, and what it costs."""

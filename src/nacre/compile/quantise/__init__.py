"""From a legal float module to one on integers of 8 bits, by data or by the model's own scales."""

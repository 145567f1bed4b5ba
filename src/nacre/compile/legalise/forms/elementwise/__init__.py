"""Functions of elements and of rows, and what exporters spell out of them."""

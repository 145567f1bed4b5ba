"""The tables of the format: what is declared once, and from which the rest is derived."""

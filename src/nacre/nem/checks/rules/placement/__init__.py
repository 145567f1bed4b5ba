"""Rules about engines, units, memory levels, and the decorators that choose them."""

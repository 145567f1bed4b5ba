"""Rules about type families as declarations."""

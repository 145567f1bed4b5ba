"""The codes of NAC: what a file promises, and what a run is given."""

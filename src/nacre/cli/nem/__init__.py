"""The verbs of `nacre nem`."""

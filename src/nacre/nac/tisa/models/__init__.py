"""Models: what makes ids of fragments."""

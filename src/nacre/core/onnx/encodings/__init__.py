"""Encodings beside a float model: scales that somebody else has found."""

"""Passes: pure functions from a module to a module with the same values, and their runner."""

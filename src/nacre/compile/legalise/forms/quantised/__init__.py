"""Quantised operations for devices that compute in floats."""

"""Channels made alike before they share a scale."""

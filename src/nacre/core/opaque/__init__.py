"""Calls that Core IR does not know and keeps by their names: `Opaque` operations."""

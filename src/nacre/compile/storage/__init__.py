"""Bundles in folders."""

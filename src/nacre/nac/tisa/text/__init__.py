"""Texts that change: each new text, and where its characters come from."""

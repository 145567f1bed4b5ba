"""Decoders in Core IR, built from what a file says of them."""

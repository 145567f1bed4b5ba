"""Microarchitectures: `.uarch` files, which the binder alone reads."""

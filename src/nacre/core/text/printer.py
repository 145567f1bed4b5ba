"""A module as canonical text."""

from __future__ import annotations

from nacre.core.module import Module
from nacre.core.values import kind_of


def print_module(module: Module) -> str:
    """The canonical text: one operation a line, outputs last, then state."""
    if not isinstance(module, Module):
        raise TypeError(f"what is to be printed is {kind_of(module)}, expected a Module")
    return str(module)

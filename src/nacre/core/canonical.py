"""The canonical form of a module."""

from __future__ import annotations

from dataclasses import replace

from nacre.core.module import Module
from nacre.core.passes.runner import PIPELINE, OnPass, run_passes


def canonicalise(
    module: Module,
    *,
    verify_each: bool = True,
    until: str | None = None,
    on_pass: OnPass | None = None,
) -> Module:
    """A new module with the same values in canonical form; twice is the same as once.

    Ids stay, except that hoisting Inputs renumbers. A module that is not valid raises InputError.
    """
    made = run_passes(module, PIPELINE, verify_each=verify_each, until=until, on_pass=on_pass)
    return replace(made) if made is module else made

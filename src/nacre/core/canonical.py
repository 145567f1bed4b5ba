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
    keep_parameters: bool = False,
) -> Module:
    """A new module with the same values in canonical form; twice is the same as once.

    Ids stay, except that hoisting Inputs renumbers. A module that is not valid raises InputError.
    With `keep_parameters`, constants that are parameters of the model keep their names and stay
    apart where their elements are equal: what is to be changed later is not one for that.
    """
    source = module if keep_parameters else module.without_parameters()
    canonical = run_passes(source, PIPELINE, verify_each=verify_each, until=until, on_pass=on_pass)
    return replace(canonical) if canonical is module else canonical

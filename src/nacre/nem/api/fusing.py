"""Fusing a program: the chains that a binder may make of it, for runs and for times."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.plan.fusion.chains import Fusion, find_chains
from nacre.nem.run.memory.host import host_error


def chains_of(
    program: LoadedProgram, observed: Iterable[str] = (), *, has_errors: bool = False
) -> Fusion:
    """The chains of a program; InputError for one with errors, and for unknown buffers."""
    if has_errors:
        raise host_error(
            "a program that runs in spite of errors cannot be fused: its values may be anybody's",
            "mend the errors, or run it without fusing",
        )
    names = tuple(observed)
    known = [buffer.name for buffer in program.plan.program.buffers]
    for name in names:
        if name not in known:
            message = f"no buffer {backquote(name)} that could be observed"
            raise host_error(message, did_you_mean(name, known))
    imported = [mark.name for mark in program.options.imports]
    return find_chains(program.plan, program.device, names, imported)

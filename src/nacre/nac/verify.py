"""Everything that is wrong with a file, in one go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError, has_errors, in_order
from nacre.base.files import read_settled
from nacre.base.source import Source
from nacre.nac.checks import carried, program, schedule, tables, weights
from nacre.nac.checks.examination import Check, Examination
from nacre.nac.format.cursor import Broken
from nacre.nac.format.external import External, read_external, weights_path
from nacre.nac.format.file import Examined, FileSource, examined, mapped
from nacre.nac.format.places import Place, finding
from nacre.nac.format.values import NacFile
from nacre.nac.program.interface import surroundings
from nacre.nac.rules.program import NAC39

CHECKS: tuple[Check, ...] = (
    tables.header,
    tables.operations,
    tables.signatures,
    tables.resources,
    program.operations,
    program.codes,
    program.constants,
    program.operands,
    program.branches,
    program.inputs,
    program.parameters,
    program.states,
    program.outputs,
    schedule.ticks,
    schedule.actions,
    schedule.frees,
    weights.quantization,
    weights.external,
    weights.unused,
)
# What a file carries beside its program: it runs without them.
CARRIED: tuple[Check, ...] = (carried.plan, carried.tokenizer)
_MOST_FINDINGS = 100  # of one check


def verify(
    path: FileSource, *, max_bytes: int | None = None, max_work: int | None = None
) -> list[Diagnostic]:
    """Every promise of the format that a file breaks, in the order of its bytes.

    For a file that breaks none, and as far as it says the types of its inputs, also what would keep
    a run from its end; the limits are those of `load`.
    """
    made, external, found = judged(path, (*CHECKS, *CARRIED))
    if made.file is not None and not has_errors(found):
        found += _foretold(made.file, made.source, external, max_bytes, max_work)
    return in_order(found)


def _foretold(
    file: NacFile,
    source: Source,
    external: External | None,
    max_bytes: int | None,
    max_work: int | None,
) -> list[Diagnostic]:
    # Imported for a file that is sound: to find one that is not, nobody needs the runtime.
    from nacre.nac.run.dry_run import dry_run_findings
    from nacre.nac.run.model import made_model

    try:
        model = made_model(file, source, external)
    except InputError as refused:  # as `load` refuses it
        return list(refused.diagnostics)
    return dry_run_findings(replace(model, max_bytes=max_bytes, max_work=max_work))


def judged(
    path: FileSource, checks: Sequence[Check] = CHECKS
) -> tuple[Examined, External | None, list[Diagnostic]]:
    """A file, its weights where they lie beside it, and all that is wrong with both."""
    if isinstance(path, bytes | memoryview):
        return _judged(path, checks)
    return read_settled(Path(os.fspath(path)), lambda: _judged(path, checks))


def _judged(
    path: FileSource, checks: Sequence[Check]
) -> tuple[Examined, External | None, list[Diagnostic]]:
    made = examined(path)
    found = list(made.found)
    if made.file is None:
        return made, None, found
    external = None
    if not made.file.header.is_internal:
        try:
            external = _beside(path, made.file)
        except Broken as problem:
            found.append(finding(problem.rule, made.source, problem.place, problem.message))
    case = Examination(made.file, made.source, made.lost, external)
    for check in checks:
        found += islice(check(case), _MOST_FINDINGS)
    if case.has("OPS ", "DATA", "CNST", "RSRC"):
        found += surroundings(made.file, made.source, external)[1]
    return made, external, found


def _beside(path: FileSource, file: NacFile) -> External:
    """The weights beside a file."""
    if isinstance(path, bytes | memoryview):
        message = "the weights lie beside the file, and these bytes have no folder"
        raise Broken(NAC39, Place(0, "DATA"), message)
    wanted = weights_path(Path(os.fspath(path)), file)
    try:
        return read_external(mapped(wanted))
    except Broken as problem:
        if problem.rule is NAC39:
            raise
        message = f"the weights `{wanted.name}` beside the file {problem.message}"
        raise Broken(NAC39, Place(0, "DATA"), message) from None

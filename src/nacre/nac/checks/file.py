"""A file against every promise of the format that it can break, with its weights beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from nacre.base.diagnostics import Diagnostic
from nacre.base.files import read_unchanged
from nacre.nac.checks import program, schedule, tables, weights
from nacre.nac.checks.examination import Check, Examination
from nacre.nac.format.cursor import Broken
from nacre.nac.format.external import External, read_external, weights_path
from nacre.nac.format.file import FileSource, ReadResult, examine, map_file
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.values import NacFile
from nacre.nac.program.interface import program_interface
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
    weights.find_unused,
)
_MOST_FINDINGS = 100  # of one check


def check_file(
    path: FileSource, checks: Sequence[Check] = CHECKS
) -> tuple[ReadResult, External | None, list[Diagnostic]]:
    """A file, its weights where they lie beside it, and all that is wrong with both."""
    if isinstance(path, bytes | memoryview):
        return _check(path, checks)
    return read_unchanged(Path(os.fspath(path)), lambda: _check(path, checks))


def _check(
    path: FileSource, checks: Sequence[Check]
) -> tuple[ReadResult, External | None, list[Diagnostic]]:
    made = examine(path)
    found = list(made.found)
    if made.file is None:
        return made, None, found
    external = None
    if not made.file.header.is_internal:
        try:
            external = _read_weights_beside(path, made.file)
        except Broken as problem:
            found.append(finding(problem.rule, made.source, problem.position, problem.message))
    case = Examination(made.file, made.source, made.lost, external)
    for check in checks:
        found += islice(check(case), _MOST_FINDINGS)
    if case.has("OPS ", "DATA", "CNST", "RSRC"):
        found += program_interface(made.file, made.source, external)[1]
    return made, external, found


def _read_weights_beside(path: FileSource, file: NacFile) -> External:
    """The weights beside a file."""
    if isinstance(path, bytes | memoryview):
        message = "the weights lie beside the file, and these bytes have no folder"
        raise Broken(NAC39, Position(0, "DATA"), message)
    wanted = weights_path(Path(os.fspath(path)), file)
    try:
        return read_external(map_file(wanted))
    except Broken as problem:
        if problem.rule is NAC39:
            raise
        message = f"the weights `{wanted.name}` beside the file {problem.message}"
        raise Broken(NAC39, Position(0, "DATA"), message) from None

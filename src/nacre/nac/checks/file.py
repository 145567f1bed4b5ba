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
    path: FileSource, checks: Sequence[Check] = CHECKS, name: str | None = None
) -> tuple[ReadResult, External | None, list[Diagnostic]]:
    """A file, its weights where they lie beside it, and all that is wrong with both.

    Findings stand at the `name`, which is the path where nobody gives one.
    """
    if isinstance(path, bytes | memoryview):
        return _check(path, checks, name)
    return read_unchanged(Path(os.fspath(path)), lambda: _check(path, checks, name))


def _check(
    path: FileSource, checks: Sequence[Check], name: str | None
) -> tuple[ReadResult, External | None, list[Diagnostic]]:
    result = examine(path, name)
    findings = list(result.findings)
    if result.file is None:
        return result, None, findings
    external = None
    if not result.file.header.is_internal:
        try:
            external = _read_weights_beside(path, result.file)
        except Broken as problem:
            findings.append(finding(problem.rule, result.source, problem.position, problem.message))
    case = Examination(result.file, result.source, result.lost, external)
    for check in checks:
        findings += islice(check(case), _MOST_FINDINGS)
    if case.has("OPS ", "DATA", "CNST", "RSRC"):
        findings += program_interface(result.file, result.source, external)[1]
    return result, external, findings


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

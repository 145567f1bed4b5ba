"""Weights: scales that fit their tensors, and tensors that lie in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.nac.checks.examination import Examination
from nacre.nac.format.external import weights_digest
from nacre.nac.format.scales import scale_problem
from nacre.nac.rules.program import NAC38, NAC39, NAC53
from nacre.nac.spec.elements import QUANTIZATIONS
from nacre.nac.spec.instructions import INPUT, PARAMETER

_SHOWN_DIGITS = 16  # of a hash
_RESTORE = "restore the weights; if they were changed on purpose, load the file and save it again"


def quantization(case: Examination) -> Iterator[Diagnostic]:
    """Scales fit their tensors."""
    for record, tensor in enumerate(case.file.data.tensors):
        problem = scale_problem(tensor)
        if problem is not None:
            message = f"tensor {tensor.id} ({QUANTIZATIONS[tensor.quant].name}): {problem}"
            yield case.at(NAC38, case.position("DATA", record, "tensor"), message)


def external(case: Examination) -> Iterator[Diagnostic]:
    """Parameters that are loaded lie in the file beside, in types that the format has."""
    file, weights = case.file, case.external
    if weights is None or not case.has("OPS ", "DATA"):
        return
    names = {entry.id: entry.text for entry in file.data.parameters}
    seen: set[int] = set()
    is_sound = True
    for index, instruction in enumerate(file.instructions):
        if (instruction.op, instruction.variant) != (INPUT, PARAMETER) or not instruction.c:
            continue
        id_ = instruction.c[1]
        if id_ in seen or id_ not in names:
            continue
        seen.add(id_)
        problem = weights.problem(names[id_], file.header.quant)
        if problem is not None:
            is_sound = False
            message = f"parameter {backquote(names[id_])}: {problem}"
            yield case.at(NAC39, case.position("OPS ", index), message)
    layout_problem = weights.layout_problem() if is_sound else None
    if layout_problem is not None:
        yield case.at(NAC39, case.position("DATA", 0), layout_problem)


def unchanged(case: Examination) -> Iterator[Diagnostic]:
    """The file beside is the one that this file was written with, byte for byte."""
    expected = weights_digest(case.file) if case.has("RSRC") else None
    if case.external is None or expected is None:
        return
    found = case.external.sha256()
    if found != expected:
        message = "the weights beside the file are not those that it was written with"
        digests = f"SHA-256 {found[:_SHOWN_DIGITS]}.., expected {expected[:_SHOWN_DIGITS]}.."
        yield case.at(NAC39, case.position("DATA", 0), f"{message}: {digests}", _RESTORE)


def find_unused(case: Examination) -> Iterator[Diagnostic]:
    """The file beside has no tensors that the program does not know."""
    if case.external is None or not case.has("DATA"):
        return
    known = {entry.text for entry in case.file.data.parameters}
    for name in sorted(case.external.names - known):
        message = f"the weights have {backquote(name)}, which is no parameter of the program"
        yield case.at(NAC53, case.position("DATA", 0), message)

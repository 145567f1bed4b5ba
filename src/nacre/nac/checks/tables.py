"""The header and the tables on their own."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.nac.checks.examination import Examination
from nacre.nac.format.positions import Position
from nacre.nac.rules.container import NAC09, NAC10, NAC16
from nacre.nac.rules.program import NAC19, NAC20
from nacre.nac.spec.elements import QUANTIZATIONS
from nacre.nac.spec.header import OFFSET_BYTES, OFFSETS_AT, RESERVED_AT
from nacre.nac.spec.instructions import FIRST_REGULAR, MOST_OPERATION, MOST_SIGNATURES
from nacre.nac.spec.operations import standard_ids


def header(case: Examination) -> Iterator[Diagnostic]:
    """The quantisation is known, reserved bytes are 0."""
    head = case.file.header
    if head.quant not in QUANTIZATIONS:
        message = f"quantisation {head.quant}, expected 0 to {max(QUANTIZATIONS)}"
        yield case.at(NAC09, Position(4), message)
    if head.reserved:
        yield case.at(
            NAC10, Position(RESERVED_AT), f"a reserved byte is {head.reserved}, expected 0"
        )
    if any(head.padding):
        at = OFFSETS_AT + OFFSET_BYTES * len(head.rules.sections)
        yield case.at(NAC10, Position(at), "the padding is not 0")


def operations(case: Examination) -> Iterator[Diagnostic]:
    """CMAP names what instructions can have and no other table does."""
    standard = standard_ids(case.file.header.version)
    for index, named in enumerate(case.file.operations):
        if named.id < FIRST_REGULAR:
            reason = "is of a system operation"
        elif named.id > MOST_OPERATION:
            reason = f"is above {MOST_OPERATION}"
        elif named.id in standard:
            reason = f"is that of `{standard[named.id].name}`"
        else:
            continue
        yield case.at(
            NAC19, case.position("CMAP", index), f"the id {named.id} of an operation {reason}"
        )


def signatures(case: Examination) -> Iterator[Diagnostic]:
    """PERM has signatures that instructions can have."""
    for index, named in enumerate(case.file.signatures):
        if named.id > MOST_SIGNATURES:
            message = f"the id {named.id} of a signature is above {MOST_SIGNATURES}"
            yield case.at(NAC20, case.position("PERM", index), message)
        elif named.id == 0 and named.text:
            message = "signature 0 is not empty, but stands for none"
            yield case.at(NAC20, case.position("PERM", index), message)


def resources(case: Examination) -> Iterator[Diagnostic]:
    """Names of resources are plain names of files."""
    for index, resource in enumerate(case.file.resources):
        if not is_plain_name(resource.name):
            message = f"a resource is called {resource.name[:40]!r}, expected a plain name"
            yield case.at(NAC16, case.position("RSRC", index), message)


def is_plain_name(name: str) -> bool:
    """Whether a file of that name lies in the folder that it is put in."""
    if name in ("", ".", ".."):
        return False
    return all(c.isprintable() and c not in "/\\:" for c in name)

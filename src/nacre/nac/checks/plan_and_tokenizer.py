"""What a file carries for others: the plan in ORCH, the tokenizer in PROC.

A file whose plan or tokenizer is wrong still runs as a program, so that loading does not ask here.
"""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nac.checks.examination import Examination
from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position

_MANIFEST_AT = 8  # behind the tag and the length


def plan(case: Examination) -> Iterator[Diagnostic]:
    """Instructions, jumps and constants of the plan are sound."""
    if not case.has("ORCH") or not case.file.plan.bytecode:
        return
    # Imported for a file that has a plan: most have none.
    from nacre.nac.mep.program import program_of

    try:
        program_of(case.file.plan, case.source, case.position("ORCH", 0).offset)
    except InputError as error:
        yield from error.diagnostics


def tokenizer(case: Examination) -> Iterator[Diagnostic]:
    """The manifest is a program, and fits the vocabulary if that is in the file, too."""
    manifest = case.file.sections.get("PROC", b"")
    if not manifest or not case.has("PROC", "RSRC"):
        return
    from nacre.nac.tisa.program import check_manifest
    from nacre.nac.tisa.resources import VOCABULARY

    resources = {resource.name: resource.data for resource in case.file.resources}
    try:
        check_manifest(manifest, resources)
    except Broken as problem:
        if problem.position.section == "RSRC":
            place = case.position("RSRC", list(resources).index(VOCABULARY))
        else:
            base = case.position("PROC", 0).offset + _MANIFEST_AT
            place = Position(base + problem.position.offset, "PROC")
        yield case.at(problem.rule, place, problem.message, problem.help)

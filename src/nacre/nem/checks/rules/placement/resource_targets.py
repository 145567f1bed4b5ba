"""DEC04 to DEC06: units that `@resource` may not ask for."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.fixes import removal_fix
from nacre.base.rules import Check, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.rules.placement.resources import requests
from nacre.nem.spec.units import RESOURCE_TARGETS, UNITS

_TARGETS = "Decorators / Resource-invalid unit types"


def _report_untargetable(
    facts: ProgramFacts, check: Check[ProgramFacts], unit: str
) -> Iterator[Diagnostic]:
    for request in requests(facts):
        if request.unit.unit == unit:
            decorator = request.task.decorator("resource")
            allowed = ", ".join(f"`{name}`" for name in RESOURCE_TARGETS)
            yield check.at(
                facts.span(request.node.unit),
                f"`@resource` asks for a `{unit}`, which {UNITS[unit].role}; it takes {allowed}",
                help="leave `@resource` out",
                fix=None if decorator is None else removal_fix(facts.span(decorator.node)),
            )


@rule("DEC04", "resource-is-a-sequencer", _TARGETS, fix="takes `@resource` out")
def resource_is_a_sequencer(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` names a sequencer, which starts tasks and runs none.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(SEQ[0])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
    """
    yield from _report_untargetable(facts, resource_is_a_sequencer, "SEQ")


@rule("DEC05", "resource-is-a-system-dma", _TARGETS, fix="takes `@resource` out")
def resource_is_a_system_dma(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` names an sDMA; the memory levels of a transfer decide whether it takes one.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(sDMA[0])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
    """
    yield from _report_untargetable(facts, resource_is_a_system_dma, "sDMA")


@rule("DEC06", "resource-is-a-decompressor", _TARGETS, fix="takes `@resource` out")
def resource_is_a_decompressor(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` names a WDM, which changes data on its way and is not scheduled.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(WDM[0])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
    """
    yield from _report_untargetable(facts, resource_is_a_decompressor, "WDM")

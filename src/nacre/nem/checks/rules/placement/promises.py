"""DEC11 to DEC14: what decorators promise about regions and results."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import Check, declare, rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import region_text
from nacre.nem.model.program import Operand

_DECORATORS = "Decorators / Semantic Decorators"


@rule("DEC11", "readonly-region-written", _DECORATORS)
def readonly_region_written(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task writes through a region that is `@readonly`.

    The decorator binds the region that carries it, not others over the same bytes.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - let X = region(B, 0, 64) @readonly
        - t = transfer.async(dst=X, src=region(A, 0, 64))
        + let X = region(A, 0, 64) @readonly
        + t = transfer.async(dst=region(B, 0, 64), src=X)
    """
    yield from _broken_promise(facts, readonly_region_written, "readonly")


@rule("DEC12", "writeonly-region-read", _DECORATORS)
def writeonly_region_read(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task reads through a region that is `@writeonly`.

    The decorator binds the region that carries it, not others over the same bytes.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - let X = region(A, 0, 64) @writeonly
        - t = transfer.async(dst=region(B, 0, 64), src=X)
        + let X = region(B, 0, 64) @writeonly
        + t = transfer.async(dst=X, src=region(A, 0, 64))
    """
    yield from _broken_promise(facts, writeonly_region_read, "writeonly")


def _broken_promise(
    facts: ProgramFacts, check: Check[ProgramFacts], decorator: str
) -> Iterator[Diagnostic]:
    access, verb = ("write", "writes") if decorator == "readonly" else ("read", "reads")
    for task in facts.program.tasks:
        for operand in task.operands:
            if operand.access == access and operand.region and operand.carries(decorator):
                yield check.at(
                    facts.span(operand.node.value),
                    f"`{task.op}` {verb} {region_text(operand.region)}, which is `@{decorator}`",
                    related=_promise(facts, operand, decorator),
                )


def _promise(facts: ProgramFacts, operand: Operand, decorator: str) -> tuple[Related, ...]:
    declared = operand.region.decorators if operand.region is not None else ()
    nodes = [d.node for d in (*operand.decorators, *declared) if d.name == decorator]
    return tuple(Related(facts.span(node), "the decorator stands here") for node in nodes[:1])


declare(
    "DEC13",
    "deterministic-results",
    "Execution Semantics / Determinism Semantics",
    """
    Under `@deterministic` every schedule gives the same bytes.

    A backend that does not declare itself deterministic is refused when the program is run; no
    diagnostic of a check carries this code.
    """,
    behaviour=True,
)
declare(
    "DEC14",
    "materialized-values-exist",
    "Execution Semantics / Materialization Semantics",
    """
    The value of a region with `@materialized` is in memory when the task that produces it is
    complete. No diagnostic carries this code.
    """,
    behaviour=True,
)

"""HAZ04, HAZ09, HAZ10: operands of one task that share bytes. BUF11, BUF12: imports."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import Check, rule
from nacre.base.suggest import did_you_mean
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration, task_text
from nacre.nem.model.program import Buffer, Operand
from nacre.nem.plan.aliasing import OperandOverlap, operand_overlaps

_HAZARDS = "Hazards and Aliasing Rules"


def _report_overlaps(
    facts: ProgramFacts, check: Check[ProgramFacts], kind: str, verb: str, help_: str | None = None
) -> Iterator[Diagnostic]:
    for overlap in operand_overlaps(facts.plan):
        if overlap.kind == kind:
            yield _explain(facts, check, overlap, verb, help_)


def _explain(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    overlap: OperandOverlap,
    verb: str,
    help_: str | None,
) -> Diagnostic:
    task = overlap.task
    region = overlap.second.region
    buffer = region.buffer.name if region is not None and region.buffer is not None else "?"
    when = in_iteration(overlap.grid, overlap.row) if overlap.varies else ""
    return check.at(
        facts.span(overlap.second.node.value),
        f"{task_text(task)} {verb} bytes {overlap.low}..{overlap.high - 1} of `{buffer}`{when}",
        related=(Related(facts.span(overlap.first.node.value), "the other operand stands here"),),
        help=help_,
    )


@rule("HAZ04", "copy-onto-itself", f"{_HAZARDS} 2")
def copy_onto_itself(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Source and destination of a transfer or store overlap.

    `@memmove` allows it for a transfer, which then reads everything before it writes; a store has
    no such form.

    Bad (-) and good (+):

          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 4, 8), src=region(B, 0, 8))
        + t = transfer.async(dst=region(B, 4, 8), src=region(B, 0, 8)) @memmove
    """
    verb = "reads and writes"
    yield from _report_overlaps(facts, copy_onto_itself, "transfer", verb, "add `@memmove`")
    yield from _report_overlaps(facts, copy_onto_itself, "store", verb)


@rule("HAZ09", "compute-onto-its-input", f"{_HAZARDS} 1")
def compute_onto_its_input(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An output of a compute task overlaps one of its inputs.

    Elementwise operations, normalisations and softmax may work in place: the output lies exactly
    on an input, element on element. A partial overlap is wrong for them too.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=128)
          let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
        - let Y = region(B, 32, 64) elem=i8, shape=[64], layout=C
          t = transfer.sync(dst=X, src=region(A, 0, 64))
        - r = relu.sync in X out Y
        - s = store.sync(dst=region(A, 0, 64), src=Y)
        + r = relu.sync in X out X
        + s = store.sync(dst=region(A, 0, 64), src=X)
    """
    yield from _report_overlaps(
        facts,
        compute_onto_its_input,
        "shifted",
        "works in place, but not element on element: it reads and writes",
        "let input and output be the same region, or share no byte",
    )
    yield from _report_overlaps(
        facts,
        compute_onto_its_input,
        "in place",
        "cannot work in place, but reads and writes",
        "write the output to other bytes",
    )


@rule("HAZ10", "outputs-overlap", f"{_HAZARDS} 1")
def outputs_overlap(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Two outputs of one task share bytes, so that one destroys the other.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=128)
          let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
          let Y = region(B, 64, 32) elem=i8, shape=[32], layout=C
        - let Z = region(B, 80, 32) elem=i8, shape=[32], layout=C
        + let Z = region(B, 96, 32) elem=i8, shape=[32], layout=C
          t = transfer.sync(dst=X, src=region(A, 0, 64))
          r = split.sync in X out Y, Z axis=0 split_sizes=[32, 32]
        - s = store.sync(dst=region(A, 0, 48), src=region(B, 64, 48))
        + s = store.sync(dst=region(A, 0, 64), src=region(B, 64, 64))
    """
    yield from _report_overlaps(facts, outputs_overlap, "outputs", "writes twice")


# Imported buffers

_BUFFERS = "Core Program Objects / Buffers"


@rule("BUF11", "imported-buffer-written", _BUFFERS)
def imported_buffer_written(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task writes a buffer that the host imports and has not marked as mutable.

    The contents of an imported buffer belong to the host, which may share them with others. With
    `--import W:mutable` (`imports=["W:mutable"]`) the program may write them.
    """
    for task in facts.program.tasks:
        for operand in task.operands:
            buffer = _buffer(operand)
            mark = facts.imports.get(buffer.name) if buffer is not None else None
            if mark is None or operand.access != "write" or mark.is_mutable:
                continue
            message = f"{task_text(task)} writes `{mark.name}`, which the host imports read-only"
            yield imported_buffer_written.at(
                facts.span(operand.node.value),
                message,
                help=f"write another buffer, or import `{mark.name}:mutable`",
            )


@rule("BUF12", "imported-buffer-absent", _BUFFERS)
def imported_buffer_absent(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The host imports a buffer that the program does not declare."""
    names = [buffer.name for buffer in facts.program.buffers]
    for name in facts.imports:
        if name not in names:
            message = f"the host imports `{name}`, but the program declares no such buffer"
            declared = facts.program.buffers
            place = declared[0].node.name if declared else facts.program.document
            yield imported_buffer_absent.at(
                facts.span(place), message, help=did_you_mean(name, names)
            )


def _buffer(operand: Operand) -> Buffer | None:
    return operand.region.buffer if operand.region is not None else None

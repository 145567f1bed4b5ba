"""PLC10, PLC11: compute works on what is in L1."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.model.program import Operand, Task

_LEVELS = "Abstract Machine Model / Memory Levels"


@rule("PLC10", "compute-operand-in-l2", _LEVELS, severity="warning")
def compute_operand_in_l2(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A main operand of a compute task lies in L2 instead of L1.

    Inputs, weights and outputs belong in the engine's L1. Biases, scales, tables and indices are
    small and may stay in L2.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - let X = region(A, 0, 64) elem=i8, shape=[64], layout=C
        - r = relu.async in X out X
        + buffer B : L1 (size=64)
        + let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
        + t = transfer.sync(dst=X, src=region(A, 0, 64))
        + r = relu.sync in X out X
        + s = store.sync(dst=region(A, 0, 64), src=X)
    """
    for task, operand, name in _operands(facts, "L2"):
        if operand.spec is not None and operand.spec.is_main:
            yield compute_operand_in_l2.at(
                facts.span(operand.node.value),
                f"operand `{operand.spec.name}` of `{task.op}` is `{name}` in L2, expected L1",
                help=_mend(operand),
            )


@rule("PLC11", "compute-operand-in-ddr", _LEVELS, severity="warning")
def compute_operand_in_ddr(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operand of a compute task lies in DDR, off the chip.

    No unit that computes reaches DDR. Data comes in through transfers, usually by way of L2. The
    table of a `gather` may lie there: its rows are fetched by DMA.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
        - let X = region(A, 0, 64) elem=i8, shape=[64], layout=C
        - r = relu.async in X out X
        + buffer B : L1 (size=64)
        + let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
        + t = transfer.sync(dst=X, src=region(A, 0, 64))
        + r = relu.sync in X out X
        + u = transfer.sync(dst=region(A, 0, 64), src=X)
    """
    for task, operand, name in _operands(facts, "DDR"):
        if operand.spec is not None and operand.spec.role == "table":
            continue
        role = f"operand `{operand.spec.name}`" if operand.spec is not None else "an operand"
        yield compute_operand_in_ddr.at(
            facts.span(operand.node.value),
            f"{role} of `{task.op}` is `{name}` in DDR, which no compute unit reaches",
            help=_mend(operand),
        )


def _operands(facts: ProgramFacts, level: str) -> Iterator[tuple[Task, Operand, str]]:
    """Operands of compute tasks in a level; the buffer's name with each."""
    for task in facts.program.tasks:
        if task.op in ("transfer", "store") or task.opcode is None:
            continue
        for operand in task.operands:
            buffer = operand.region.buffer if operand.region is not None else None
            if buffer is not None and buffer.level == level:
                yield task, operand, buffer.name


def _mend(operand: Operand) -> str:
    if operand.access == "read":
        return "transfer it to a buffer in L1 first"
    return "write to a buffer in L1, then store it"

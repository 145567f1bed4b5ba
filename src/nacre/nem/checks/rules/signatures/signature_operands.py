"""SIG01, SIG02, SIG06, SIG07: how many operands a task has, of which rank and layout."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.nem.checks.concrete_tasks import ConcreteTask
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shape_findings import (
    first_findings,
    layout_problem,
    rank_problem,
    unexpected_shapes,
)
from nacre.nem.checks.tasks import (
    compute_tasks,
    has_its_operands,
    op_span,
    operand_declaration,
    operand_span,
    operand_title,
)
from nacre.nem.model.matching import join_names
from nacre.nem.spec.opcodes import Opcode, OperandSpec

_SIGNATURES = "Opcode Signatures"
_CONVOLUTION = "Compute Tasks / Convolution Operations"


@rule("SIG01", "operand-missing", f"{_SIGNATURES} / Operand rules")
def operand_missing(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task lacks an operand that its opcode requires.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - r = add.sync in A out A
        + let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        + r = add.sync in A, B out A
    """
    for task, opcode in compute_tasks(facts):
        names = {operand.spec.name for operand in task.operands if operand.spec is not None}
        missing = [s.name for s in opcode.operands if s.required and s.name not in names]
        if missing:
            word = "operand" if len(missing) == 1 else "operands"
            message = f"`{task.op}` lacks {word} {join_names(missing)}"
            yield operand_missing.at(op_span(facts, task), message, help=_signature(opcode))


def _signature(opcode: Opcode) -> str:
    inputs, outputs = (", ".join(map(_operand_text, s)) for s in (opcode.inputs, opcode.outputs))
    return f"the signature is `{opcode.name}.async in {inputs} out {outputs}`"


def _operand_text(spec: OperandSpec) -> str:
    return f"{spec.name}{'...' if spec.variadic else ''}{'' if spec.required else '?'}"


@rule("SIG02", "too-many-operands", f"{_SIGNATURES} / Operand rules")
def too_many_operands(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task has more operands than its opcode takes.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        - r = relu.sync in A, B out A
        + r = relu.sync in A out A
    """
    for task, opcode in compute_tasks(facts):
        for access, most in (("read", opcode.max_inputs), ("write", opcode.max_outputs)):
            side = [operand for operand in task.operands if operand.access == access]
            if most is not None and len(side) > most:
                word = "input" if access == "read" else "output"
                message = f"`{task.op}` has {len(side)} {word}s, expected at most {most}"
                span = facts.span(side[most].node.value)
                yield too_many_operands.at(span, message, help=_signature(opcode))


@rule("SIG06", "wrong-rank", _SIGNATURES)
def wrong_rank(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operand has another number of dimensions than its opcode takes, or a bias another size.

    The bias of a convolution is a vector with one element for each output channel.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
        - let A = region(M, 0, 8) elem=f16, shape=[4], layout=K
        + let A = region(M, 0, 8) elem=f16, shape=[1, 4], layout=MK
          let B = region(M, 8, 32) elem=f16, shape=[4, 4], layout=KN
          let Y = region(M, 40, 8) elem=f16, shape=[1, 4], layout=MN
          g = gemm.sync in A, B out Y accum_type=f32
    """
    for task, opcode in compute_tasks(facts):
        if not has_its_operands(task, opcode):
            continue
        for operand in task.operands:
            problem = rank_problem(opcode, operand)
            if problem is not None:
                span = operand_span(facts, operand, "shape")
                related = operand_declaration(facts, operand, "shape")
                yield wrong_rank.at(
                    span, f"{operand_title(task, operand)} {problem}", related=related
                )
    yield from first_findings(facts, _bias_size, "convolution")


def _bias_size(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    weights = concrete.shape("W")
    if weights is not None:
        is_depthwise = concrete.opcode.attribute("groups") is None
        channels = weights[-2] * weights[-1] if is_depthwise else weights[-1]
        why = ", one element for each output channel"
        yield from unexpected_shapes(facts, wrong_rank, concrete, "B", (channels,), why)


@rule("SIG07", "wrong-layout", _CONVOLUTION)
def wrong_layout(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An operand's layout names other axes than its opcode takes, or in another order.

    A region with `strides` instead of a layout has its dimensions in the order that is asked for.

    Bad (-) and good (+):

          buffer S : L2 (size=40)
          buffer M : L1 (size=40)
          t = transfer.sync(dst=region(M, 0, 40), src=region(S, 0, 40))
        - let X = region(M, 0, 32) elem=i8, shape=[1, 4, 4, 2], layout=NCHW
        + let X = region(M, 0, 32) elem=i8, shape=[1, 4, 4, 2], layout=NHWC
          let Y = region(M, 32, 8) elem=i8, shape=[1, 2, 2, 2], layout=NHWC
          p = maxpool.sync in X out Y kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]
    """
    for task, opcode in compute_tasks(facts):
        if not has_its_operands(task, opcode):
            continue
        for operand in task.operands:
            problem = layout_problem(operand)
            if problem is not None and rank_problem(opcode, operand) is None:
                yield wrong_layout.at(
                    operand_span(facts, operand, "layout"),
                    f"{operand_title(task, operand)} {problem}",
                    related=operand_declaration(facts, operand, "layout"),
                )

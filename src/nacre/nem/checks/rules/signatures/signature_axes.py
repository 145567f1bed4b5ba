"""SIG16, SIG18, SIG23: joining and cutting, reductions, gathering."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, rule
from nacre.kernels.interface import shapes
from nacre.nem.checks.attributes import attribute_value
from nacre.nem.checks.concrete_tasks import ConcreteTask
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shape_findings import (
    attribute_finding,
    axis_out_of_range,
    first_findings,
    shape_finding,
    shape_text,
    unexpected_shapes,
)
from nacre.nem.checks.tasks import (
    compute_tasks,
    has_its_operands,
    operand_declaration,
    operand_span,
    operand_title,
    operands,
)

_VIEWS = "Compute Tasks / Layout and Tensor View Operations"
_REDUCTIONS = "Compute Tasks / Reduction Operations"


@rule("SIG16", "parts-do-not-fit", _VIEWS)
def parts_do_not_fit(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The inputs of a `concat` or the outputs of a `split` do not fit together.

    Off the axis all shapes are equal; along it the parts add up to the whole.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let A = region(M, 0, 8) elem=i8, shape=[2, 4], layout=MN
          let B = region(M, 8, 6) elem=i8, shape=[2, 3], layout=MN
        - let Y = region(M, 16, 16) elem=i8, shape=[2, 8], layout=MN
        + let Y = region(M, 16, 14) elem=i8, shape=[2, 7], layout=MN
          r = concat.sync in A, B out Y axis=1
    """
    yield from first_findings(facts, _concat, "concat")
    yield from first_findings(facts, _split, "split")


def _concat(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    axis = concrete.number("axis")
    inputs = concrete.shapes_of("X")
    if axis is None:
        return
    at = shapes.axis_of(axis, len(inputs[0]))
    if at is None:
        yield from axis_out_of_range(facts, parts_do_not_fit, concrete, len(inputs[0]))
        return
    result = shapes.concat(inputs, at)
    if result is not None:
        yield from unexpected_shapes(facts, parts_do_not_fit, concrete, "Y", result)
        return
    for operand, dims in zip(operands(concrete.task, "X"), inputs, strict=True):
        if shapes.sizes_off_axis(dims, at) != shapes.sizes_off_axis(inputs[0], at):
            expected = f"{shape_text(inputs[0])} off axis {axis}"
            message = f"has shape {shape_text(dims)}, expected {expected}"
            yield shape_finding(facts, parts_do_not_fit, concrete, operand, message)
            return


def _split(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    axis, sizes = concrete.number("axis"), concrete.numbers("split_sizes")
    x, outputs = concrete.shapes[0], operands(concrete.task, "Y")
    if axis is None or sizes is None:
        return
    at = shapes.axis_of(axis, len(x))
    if at is None:
        yield from axis_out_of_range(facts, parts_do_not_fit, concrete, len(x))
        return
    parts = shapes.split(x, at, sizes)
    if parts is None:
        message = f"is {shape_text(sizes)}, expected positive sizes that add up to {x[at]}"
        yield attribute_finding(facts, parts_do_not_fit, concrete, "split_sizes", message)
        return
    if len(parts) != len(outputs):
        message = f"has {len(parts)} entries, expected {len(outputs)}, one for each output"
        yield attribute_finding(facts, parts_do_not_fit, concrete, "split_sizes", message)
        return
    for operand, dims, part in zip(outputs, concrete.shapes_of("Y"), parts, strict=True):
        if dims != part:
            message = f"has shape {shape_text(dims)}, expected {shape_text(part)}"
            yield shape_finding(facts, parts_do_not_fit, concrete, operand, message)
            return


@rule("SIG18", "reduction-output", _REDUCTIONS)
def reduction_output(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of a reduction has the wrong shape, or that of `argmax` is no integer.

    With `keepdims` each reduced axis stays with size 1, without it they go. Where all go, the
    output is [1].

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
        - let X = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MN
        - let Y = region(M, 16, 4) elem=i8, shape=[4], layout=M
        - r = reduce_max.sync in X out Y axes=[1] keepdims=true
        + let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        + let Y = region(M, 16, 4) elem=i8, shape=[1, 4, 1, 1], layout=NHWC
        + r = maxpool.sync in X out Y kernel_shape=[1, 4] pads=[0, 0, 0, 0] strides=[1, 1]
    """
    yield from _not_integers(facts, reduction_output, "reduction")
    yield from first_findings(facts, _reduction, "reduction")


def _reduction(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    x = concrete.shapes[0]
    axis = concrete.number("axis")
    axes = concrete.numbers("axes") if axis is None else (axis,)
    name = "axes" if axis is None else "axis"
    if axes is None:
        return
    known = shapes.axes_of(axes, len(x))
    if known is None:
        found = str(axis) if axis is not None else shape_text(axes)
        allowed = "" if axis is not None else "different axes from "
        message = f"is {found}, expected {allowed}{-len(x)} to {len(x) - 1}"
        yield attribute_finding(facts, reduction_output, concrete, name, message)
        return
    spec = concrete.opcode.attribute("keepdims")
    keepdims = attribute_value(concrete.task, spec) if spec is not None else None
    if isinstance(keepdims, bool):
        result = shapes.reduce(x, known, keepdims)
        why = f" with `keepdims={str(keepdims).lower()}`"
        yield from unexpected_shapes(facts, reduction_output, concrete, "Y", result, why)


def _not_integers(
    facts: ProgramFacts, check: Check[ProgramFacts], *kinds: str
) -> Iterator[Diagnostic]:
    """A finding for each operand that must be an integer by the registry and is not."""
    for task, opcode in compute_tasks(facts, *kinds):
        if not has_its_operands(task, opcode):
            continue
        for operand in task.operands:
            elem = operand.region.elem if operand.region is not None else None
            wants_integer = operand.spec is not None and operand.spec.elem == "integer"
            if wants_integer and elem is not None and not ELEMENT_TYPES[elem].is_integer:
                yield check.at(
                    operand_span(facts, operand, "elem"),
                    f"{operand_title(task, operand)} is {elem}, expected an integer type",
                    related=operand_declaration(facts, operand, "elem"),
                )


@rule("SIG23", "gather-operands", _VIEWS)
def gather_operands(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The indices of a `gather` are no integers, its axis does not exist, or its output is wrong.

    The output has the shape of the input with the shape of the indices in the place of the axis.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 32) elem=i8, shape=[8, 4], layout=MN
        - let rows = region(M, 32, 4) elem=f16, shape=[2], layout=C
        + let rows = region(M, 32, 4) elem=i16, shape=[2], layout=C
          let Y = region(M, 48, 8) elem=i8, shape=[2, 4], layout=MN
          g = gather.sync in X, rows out Y axis=0
    """
    yield from _not_integers(facts, gather_operands, "gather")
    yield from first_findings(facts, _gather, "gather")


def _gather(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    x, indices = concrete.shapes[:2]
    axis = concrete.number("axis")
    at = shapes.axis_of(axis, len(x)) if axis is not None else None
    if at is None:
        yield from axis_out_of_range(facts, gather_operands, concrete, len(x))
    else:
        result = shapes.gather(x, indices, at)
        yield from unexpected_shapes(facts, gather_operands, concrete, "Y", result)

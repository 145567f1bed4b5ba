"""SIG16, SIG18, SIG23: joining and cutting, reductions, gathering."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import Check, rule
from nacre.kernels.interface import shapes
from nacre.nem.checks.attributes import usable
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.readings import Reading
from nacre.nem.checks.shape_findings import (
    at_attribute,
    at_shape,
    axis_out_of_range,
    differing,
    first_findings,
    shape_text,
)
from nacre.nem.checks.tasks import (
    computes,
    declaration_of,
    has_its_operands,
    named,
    operands,
    span_of,
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


def _concat(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    axis = reading.number("axis")
    inputs = reading.shapes_of("X")
    if axis is None:
        return
    at = shapes.axis_of(axis, len(inputs[0]))
    if at is None:
        yield from axis_out_of_range(facts, parts_do_not_fit, reading, len(inputs[0]))
        return
    result = shapes.concat(inputs, at)
    if result is not None:
        yield from differing(facts, parts_do_not_fit, reading, "Y", result)
        return
    for operand, dims in zip(operands(reading.task, "X"), inputs, strict=True):
        if shapes.sizes_off_axis(dims, at) != shapes.sizes_off_axis(inputs[0], at):
            expected = f"{shape_text(inputs[0])} off axis {axis}"
            message = f"has shape {shape_text(dims)}, expected {expected}"
            yield at_shape(facts, parts_do_not_fit, reading, operand, message)
            return


def _split(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    axis, sizes = reading.number("axis"), reading.numbers("split_sizes")
    x, outputs = reading.shapes[0], operands(reading.task, "Y")
    if axis is None or sizes is None:
        return
    at = shapes.axis_of(axis, len(x))
    if at is None:
        yield from axis_out_of_range(facts, parts_do_not_fit, reading, len(x))
        return
    parts = shapes.split(x, at, sizes)
    if parts is None:
        message = f"is {shape_text(sizes)}, expected positive sizes that add up to {x[at]}"
        yield at_attribute(facts, parts_do_not_fit, reading, "split_sizes", message)
        return
    if len(parts) != len(outputs):
        message = f"has {len(parts)} entries, expected {len(outputs)}, one for each output"
        yield at_attribute(facts, parts_do_not_fit, reading, "split_sizes", message)
        return
    for operand, dims, part in zip(outputs, reading.shapes_of("Y"), parts, strict=True):
        if dims != part:
            message = f"has shape {shape_text(dims)}, expected {shape_text(part)}"
            yield at_shape(facts, parts_do_not_fit, reading, operand, message)
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


def _reduction(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    x = reading.shapes[0]
    axis = reading.number("axis")
    axes = reading.numbers("axes") if axis is None else (axis,)
    name = "axes" if axis is None else "axis"
    if axes is None:
        return
    known = shapes.axes_of(axes, len(x))
    if known is None:
        found = str(axis) if axis is not None else shape_text(axes)
        allowed = "" if axis is not None else "different axes from "
        message = f"is {found}, expected {allowed}{-len(x)} to {len(x) - 1}"
        yield at_attribute(facts, reduction_output, reading, name, message)
        return
    spec = reading.opcode.attribute("keepdims")
    keepdims = usable(reading.task, spec) if spec is not None else None
    if isinstance(keepdims, bool):
        result = shapes.reduce(x, known, keepdims)
        why = f" with `keepdims={str(keepdims).lower()}`"
        yield from differing(facts, reduction_output, reading, "Y", result, why)


def _not_integers(
    facts: ProgramFacts, check: Check[ProgramFacts], *kinds: str
) -> Iterator[Diagnostic]:
    """A finding for each operand that must be an integer by the registry and is not."""
    for task, opcode in computes(facts, *kinds):
        if not has_its_operands(task, opcode):
            continue
        for operand in task.operands:
            elem = operand.region.elem if operand.region is not None else None
            wants_integer = operand.spec is not None and operand.spec.elem == "integer"
            if wants_integer and elem is not None and not ELEMENT_TYPES[elem].is_integer:
                yield check.at(
                    span_of(facts, operand, "elem"),
                    f"{named(task, operand)} is {elem}, expected an integer type",
                    related=declaration_of(facts, operand, "elem"),
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


def _gather(facts: ProgramFacts, reading: Reading) -> Iterator[Diagnostic]:
    x, indices = reading.shapes[:2]
    axis = reading.number("axis")
    at = shapes.axis_of(axis, len(x)) if axis is not None else None
    if at is None:
        yield from axis_out_of_range(facts, gather_operands, reading, len(x))
    else:
        result = shapes.gather(x, indices, at)
        yield from differing(facts, gather_operands, reading, "Y", result)

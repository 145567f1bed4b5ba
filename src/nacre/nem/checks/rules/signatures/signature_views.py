"""SIG11, SIG12, SIG17, SIG25: view opcodes that take one tensor and give one."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.kernels.interface import shapes
from nacre.nem.checks.concrete_tasks import ConcreteTask
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shape_findings import (
    attribute_finding,
    first_findings,
    shape_text,
    unexpected_shapes,
)

_VIEWS = "Compute Tasks / Layout and Tensor View Operations"


@rule("SIG11", "reshape-changes-elements", "Appendix: Type Family Definitions / View, note 2")
def reshape_changes_elements(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A `reshape` changes the number of elements, or its output is not of `target_shape`.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let Y = region(M, 16, 12) elem=i8, shape=[3, 4], layout=MN
        - r = reshape.sync in X out Y target_shape=[3, 4]
        + let Y = region(M, 16, 16) elem=i8, shape=[4, 4], layout=MN
        + r = reshape.sync in X out Y target_shape=[4, 4]
    """
    yield from first_findings(facts, _reshape, "reshape")


def _reshape(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    target = concrete.numbers("target_shape")
    if target is None:
        return
    x = concrete.shapes[0]
    if any(dim < 1 for dim in target) or shapes.count(target) != shapes.count(x):
        found = f"is {shape_text(target)}, {shapes.count(target)} elements"
        if any(dim < 1 for dim in target):
            found = f"is {shape_text(target)}"
        message = f"{found}, expected the {shapes.count(x)} elements of {shape_text(x)}"
        yield attribute_finding(facts, reshape_changes_elements, concrete, "target_shape", message)
        return
    why = " by `target_shape`"
    yield from unexpected_shapes(facts, reshape_changes_elements, concrete, "Y", target, why)


@rule("SIG12", "transpose-shape", _VIEWS)
def transpose_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`perm` is no permutation of the axes, or the output has another shape than it gives.

    Dimension i of the output is dimension perm[i] of the input.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 8) elem=i8, shape=[2, 4], layout=MN
        - let Y = region(M, 16, 8) elem=i8, shape=[2, 4], layout=NM
        + let Y = region(M, 16, 8) elem=i8, shape=[4, 2], layout=NM
          r = transpose.sync in X out Y perm=[1, 0]
    """
    yield from first_findings(facts, _transpose, "transpose")


def _transpose(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    perm = concrete.numbers("perm")
    if perm is None:
        return
    result = shapes.transpose(concrete.shapes[0], perm)
    if result is None:
        rank = len(concrete.shapes[0])
        message = f"is {shape_text(perm)}, expected each of 0 to {rank - 1} once"
        yield attribute_finding(facts, transpose_shape, concrete, "perm", message)
    else:
        yield from unexpected_shapes(facts, transpose_shape, concrete, "Y", result)


@rule("SIG17", "slice-shape", _VIEWS)
def slice_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The attributes of a `slice` do not go together, or its output has another shape.

    `starts`, `ends`, `axes` and `steps` have one entry for each axis that is cut. Starts and ends
    may be negative, counted from the end, and stop at the ends of the axis; steps are not zero.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
          let Y = region(M, 16, 8) elem=i8, shape=[8], layout=C
        - r = slice.sync in X out Y starts=[0] ends=[8] axes=[0] steps=[2]
        + r = slice.sync in X out Y starts=[0] ends=[16] axes=[0] steps=[2]
    """
    yield from first_findings(facts, _slice, "slice")


def _slice(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    starts, ends = concrete.numbers("starts"), concrete.numbers("ends")
    axes, steps = concrete.numbers("axes"), concrete.numbers("steps")
    if starts is None or ends is None or axes is None or steps is None:
        return
    x = concrete.shapes[0]
    for name, values in (("starts", starts), ("ends", ends), ("steps", steps)):
        if len(values) != len(axes):
            message = f"has {len(values)} entries, expected {len(axes)}, as many as `axes`"
            yield attribute_finding(facts, slice_shape, concrete, name, message)
            return
    known = shapes.axes_of(axes, len(x))
    if known is None:
        message = f"is {shape_text(axes)}, expected different axes from {-len(x)} to {len(x) - 1}"
        yield attribute_finding(facts, slice_shape, concrete, "axes", message)
    elif 0 in steps:
        yield attribute_finding(facts, slice_shape, concrete, "steps", "holds 0, expected no zero")
    else:
        result = shapes.slice_(x, starts, ends, known, steps)
        yield from unexpected_shapes(facts, slice_shape, concrete, "Y", result)


@rule("SIG25", "pad-shape", _VIEWS)
def pad_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The pads of a `pad` do not fit its input, or its output has another shape.

    `pads` holds all beginnings, then all ends: two numbers for each axis. Reflection stops before
    the edge, so it has less than the size of the axis to offer on each side.

    Bad (-) and good (+):

          buffer S : L2 (size=64)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 64), src=region(S, 0, 64))
          let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        - let Y = region(M, 16, 16) elem=i8, shape=[16], layout=C
        + let Y = region(M, 16, 18) elem=i8, shape=[18], layout=C
          r = pad.sync in X out Y pads=[1, 1] mode=constant
    """
    yield from first_findings(facts, _pad, "pad")


def _pad(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    pads = concrete.numbers("pads")
    if pads is None or min(pads, default=0) < 0:
        return
    x = concrete.shapes[0]
    if len(pads) != 2 * len(x):
        message = f"has {len(pads)} entries, expected {2 * len(x)}, two for each axis"
        yield attribute_finding(facts, pad_shape, concrete, "pads", message)
        return
    if concrete.task.attributes.get("mode") == "reflect":
        for index, width in enumerate(pads):
            axis = index % len(x)
            if width >= x[axis]:
                message = f"reflects {width} elements of axis {axis}, expected at most"
                message = f"{message} {x[axis] - 1}"
                yield attribute_finding(facts, pad_shape, concrete, "pads", message)
                return
    yield from unexpected_shapes(facts, pad_shape, concrete, "Y", shapes.pad(x, pads))

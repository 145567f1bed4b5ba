"""SIG13, SIG15, SIG19: convolution and pooling, and opcodes that keep the element type."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.kernels.interface import shapes
from nacre.kernels.interface.shapes import Dims
from nacre.nem.checks.concrete_tasks import ConcreteTask
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shape_findings import (
    attribute_finding,
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

_CONVOLUTION = "Compute Tasks / Convolution Operations"
_POOLING = "Compute Tasks / Pooling Operations"


@rule("SIG13", "window-output-shape", f"{_CONVOLUTION}; Pooling Operations")
def window_output_shape(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The output of a convolution or pooling has not the shape that follows from its input.

    Along each spatial axis the output has (size + pads - dilation * (window - 1) - 1) / stride + 1
    elements, rounded down.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let X = region(M, 0, 32) elem=i8, shape=[1, 4, 4, 2], layout=NHWC
          let Y = region(M, 32, 8) elem=i8, shape=[1, 2, 2, 2], layout=NHWC
        - p = maxpool.sync in X out Y kernel_shape=[2, 2] pads=[1, 1, 1, 1] strides=[2, 2]
        + p = maxpool.sync in X out Y kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]
    """
    yield from first_findings(facts, _window_output, "convolution", "pooling")


def _window_output(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    parts = _parts(concrete)
    if parts is None:
        return
    expected = _derive(concrete, parts)
    if min(expected) < 1:
        yield _window_too_large(facts, concrete, parts, expected)
        return
    help_ = _advice(concrete.shapes[0][1:-1], parts, concrete.shapes[-1][1:-1])
    yield from unexpected_shapes(facts, window_output_shape, concrete, "Y", expected, help=help_)


Parts = tuple[Dims, Dims, Dims, Dims]  # window, pads, strides, dilations


def _parts(concrete: ConcreteTask) -> Parts | None:
    """The window and how it moves; None where an attribute is missing or wrong."""
    weights = concrete.shape("W")
    window = concrete.numbers("kernel_shape") if weights is None else weights[:-2]
    pads, strides = concrete.numbers("pads"), concrete.numbers("strides")
    if window is None or pads is None or strides is None:
        return None
    dilations = (1,) * len(window)
    if concrete.opcode.attribute("dilations") is not None:
        written = concrete.numbers("dilations")
        if written is None:
            return None
        dilations = written
    if min((*window, *strides, *dilations)) < 1 or min(pads) < 0:
        return None
    return window, pads, strides, dilations


def _derive(concrete: ConcreteTask, parts: Parts) -> Dims:
    x, weights = concrete.shapes[0], concrete.shape("W")
    window, *motion = parts
    if weights is None:
        return shapes.pool(x, window, *motion[:2])
    derive = shapes.depthwise if _is_depthwise(concrete) else shapes.conv
    return derive(x, weights, *motion)


def _window_too_large(
    facts: ProgramFacts, concrete: ConcreteTask, parts: Parts, derived: Dims
) -> Diagnostic:
    window, pads, _, dilations = parts
    axis = next(axis for axis, size in enumerate(derived[1:-1]) if size < 1)
    room = concrete.shapes[0][axis + 1] + pads[axis] + pads[axis + len(window)]
    reach = dilations[axis] * (window[axis] - 1) + 1
    message = f"has {room} elements along axis {axis + 1}, pads included, expected at least {reach}"
    operand = concrete.task.operands[0]
    return shape_finding(
        facts, window_output_shape, concrete, operand, f"{message}, the reach of the window"
    )


def _is_depthwise(concrete: ConcreteTask) -> bool:
    return concrete.opcode.attribute("groups") is None


def _advice(size: Dims, parts: Parts, declared_size: Dims) -> str | None:
    """Where the first size comes from that is not as declared, and pads that would make it so."""
    window, pads, strides, dilations = parts
    count = shapes.windows(size, *parts)
    pairs = enumerate(zip(count, declared_size, strict=False))
    axis = next((axis for axis, (derived, declared) in pairs if derived != declared), None)
    if axis is None:
        return None
    begin, end = pads[axis], pads[axis + len(size)]
    reach = f"{dilations[axis]} * ({window[axis]} - 1) - 1"
    text = (
        f"along axis {axis + 1}: ({size[axis]} + {begin} + {end} - {reach}) / {strides[axis]} + 1 "
        f"= {count[axis]}"
    )
    none = (0,) * len(pads)
    if shapes.windows(size, window, none, strides, dilations) == declared_size:
        return f"{text}; `pads={shape_text(none)}` would give the declared shape"
    return text


@rule("SIG15", "channels-do-not-fit", _CONVOLUTION)
def channels_do_not_fit(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The channels of a convolution's input, weights and groups do not go together.

    Each group sees Cin / groups input channels and makes Cout / groups output channels. The weights
    of `depthwise_conv2d` are [Kh, Kw, Cin, multiplier] or, as those of a `conv2d` with as many
    groups as channels, [Kh, Kw, 1, Cout].

    Bad (-) and good (+):

          buffer S : L2 (size=512)
          buffer M : L1 (size=512)
          t = transfer.sync(dst=region(M, 0, 512), src=region(S, 0, 512))
          let X = region(M, 0, 128) elem=f16, shape=[1, 4, 4, 4], layout=NHWC
        - let W = region(M, 128, 12) elem=f16, shape=[1, 1, 3, 2], layout=HWIO
        + let W = region(M, 128, 8) elem=f16, shape=[1, 1, 2, 2], layout=HWIO
          let Y = region(M, 256, 64) elem=f16, shape=[1, 4, 4, 2], layout=NHWC
          c = conv2d.sync in X, W out Y
        -     pads=[0, 0, 0, 0] strides=[1, 1] dilations=[1, 1] accum_type=f32
        +     pads=[0, 0, 0, 0] strides=[1, 1] dilations=[1, 1] groups=2 accum_type=f32
    """
    yield from first_findings(facts, _channel_findings, "convolution")


def _channel_findings(facts: ProgramFacts, concrete: ConcreteTask) -> Iterator[Diagnostic]:
    x, w = concrete.shapes[:2]
    weights = concrete.task.operands[1]
    if _is_depthwise(concrete):
        if shapes.depthwise_multiplier(x[-1], w) is None:
            message = _depthwise_problem(x[-1], w)
            yield shape_finding(facts, channels_do_not_fit, concrete, weights, message)
        return
    groups = concrete.number("groups")
    if groups is None or groups < 1:
        return
    times = f" * {groups} groups = {w[-2] * groups}" if groups > 1 else ""
    if x[-1] != w[-2] * groups:
        message = f"takes {w[-2]}{times} channels, expected {x[-1]}, the channels of `X`"
        yield shape_finding(facts, channels_do_not_fit, concrete, weights, message)
    elif w[-1] % groups:
        message = f"is {groups}, which does not divide the {w[-1]} output channels of `W`"
        yield attribute_finding(facts, channels_do_not_fit, concrete, "groups", message)


def _depthwise_problem(channels: int, w: Dims) -> str:
    if w[-2] == 1:
        return f"gives {w[-1]} channels, expected a multiple of {channels}, the channels of `X`"
    return f"takes {w[-2]} channels, expected {channels}, the channels of `X`, or 1"


@rule("SIG19", "element-type-not-kept", _POOLING)
def element_type_not_kept(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An opcode without a type family has another element type in its output than in its input.

    These are poolings, reductions, and the convolutions other than `conv2d`.

    Bad (-) and good (+):

          buffer S : L2 (size=48)
          buffer M : L1 (size=48)
          t = transfer.sync(dst=region(M, 0, 48), src=region(S, 0, 48))
          let X = region(M, 0, 32) elem=i8, shape=[1, 4, 4, 2], layout=NHWC
        - let Y = region(M, 32, 16) elem=f16, shape=[1, 2, 2, 2], layout=NHWC
        + let Y = region(M, 32, 8) elem=i8, shape=[1, 2, 2, 2], layout=NHWC
          p = maxpool.sync in X out Y kernel_shape=[2, 2] pads=[0, 0, 0, 0] strides=[2, 2]
    """
    for task, opcode in compute_tasks(facts):
        if not has_its_operands(task, opcode) or opcode.name in facts.device.effective_by_opcode:
            continue
        alike = [one for name in opcode.same_elem for one in operands(task, name)]
        typed = [(one, one.region.elem) for one in alike if one.region and one.region.elem]
        for one, elem in typed:
            if elem != typed[0][1]:
                yield element_type_not_kept.at(
                    operand_span(facts, one, "elem"),
                    f"{operand_title(task, one)} is {elem}, expected {typed[0][1]} "
                    f"like `{opcode.same_elem[0]}`",
                    related=operand_declaration(facts, one, "elem"),
                    help="convert with `cast`",
                )
                break

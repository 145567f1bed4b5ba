"""Convolutions."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


def per_axis(call: AtenCall, name: str, rank: int, default: int) -> tuple[int, ...]:
    """A number for each axis; one alone is for all."""
    numbers = call.integers(name) or (default,)
    made = numbers * rank if len(numbers) == 1 else numbers
    if len(made) != rank:
        raise Unsupported(f"`{name}` is {list(numbers)} for {rank} axes")
    return made


def add_batch(call: AtenCall, name: str, rank: int) -> tuple[int, bool]:
    """An operand [N, C, ..]; the axis N is put before one that lacks it."""
    value = call.value(name)
    dims = call.type_of(value).shape
    is_single = len(dims) == rank + 1
    return (call.reshape(value, (1, *dims)) if is_single else value), is_single


def drop_batch(call: AtenCall, value: int, is_single: bool) -> int:
    """The axis N taken away again."""
    return call.reshape(value, call.type_of(value).shape[1:]) if is_single else value


@handles("conv1d.default", "conv2d.default", "conv3d.default", "conv1d.padding",
         "conv2d.padding", "conv3d.padding", "convolution.default")  # fmt: skip
def conv(call: AtenCall) -> int:
    """A convolution with channels first."""
    if call.get("transposed", False):
        return _conv_transpose(call)
    kernel = call.shape_of("weight")[2:]
    rank = len(kernel)
    dilations = per_axis(call, "dilation", rank, 1)
    x, is_single = add_batch(call, "input", rank)
    bias = [call.value("bias")] if call.has("bias") else []
    convolved = call.add(
        "Conv",
        *(x, call.value("weight"), *bias),
        strides=per_axis(call, "stride", rank, 1),
        pads=_pads(call, kernel, dilations),
        dilations=dilations,
        groups=call.integer("groups", 1),
    )
    return drop_batch(call, convolved, is_single)


def _pads(call: AtenCall, kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    given = call.get("padding")
    if given == "valid":
        return (0,) * (2 * len(kernel))
    if given == "same":  # an odd one stands at the end
        totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))
    return per_axis(call, "padding", len(kernel), 0) * 2


@handles("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(call: AtenCall) -> int:
    """What a convolution's gradient by its input computes."""
    return _conv_transpose(call)


def _conv_transpose(call: AtenCall) -> int:
    rank = len(call.shape_of("weight")) - 2
    x, is_single = add_batch(call, "input", rank)
    bias = [call.value("bias")] if call.has("bias") else []
    convolved = call.add(
        "ConvTranspose",
        *(x, call.value("weight"), *bias),
        strides=per_axis(call, "stride", rank, 1),
        pads=per_axis(call, "padding", rank, 0) * 2,
        dilations=per_axis(call, "dilation", rank, 1),
        groups=call.integer("groups", 1),
        output_padding=per_axis(call, "output_padding", rank, 0),
    )
    return drop_batch(call, convolved, is_single)

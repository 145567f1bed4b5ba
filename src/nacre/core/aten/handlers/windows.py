"""Convolutions."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


def per_axis(use: AtenCall, name: str, rank: int, default: int) -> tuple[int, ...]:
    """A number for each axis; one alone is for all."""
    numbers = use.integers(name) or (default,)
    made = numbers * rank if len(numbers) == 1 else numbers
    if len(made) != rank:
        raise Unsupported(f"`{name}` is {list(numbers)} for {rank} axes")
    return made


def add_batch(use: AtenCall, name: str, rank: int) -> tuple[int, bool]:
    """An operand [N, C, ..]; the axis N is put before one that lacks it."""
    value = use.value(name)
    dims = use.type_of(value).shape
    is_single = len(dims) == rank + 1
    return (use.reshape(value, (1, *dims)) if is_single else value), is_single


def drop_batch(use: AtenCall, value: int, is_single: bool) -> int:
    """The axis N taken away again."""
    return use.reshape(value, use.type_of(value).shape[1:]) if is_single else value


@handles("conv1d.default", "conv2d.default", "conv3d.default", "conv1d.padding",
         "conv2d.padding", "conv3d.padding", "convolution.default")  # fmt: skip
def conv(use: AtenCall) -> int:
    """A convolution with channels first."""
    if use.get("transposed", False):
        return _conv_transpose(use)
    kernel = use.shape_of("weight")[2:]
    rank = len(kernel)
    dilations = per_axis(use, "dilation", rank, 1)
    x, is_single = add_batch(use, "input", rank)
    bias = [use.value("bias")] if use.has("bias") else []
    made = use.add(
        "Conv",
        *(x, use.value("weight"), *bias),
        strides=per_axis(use, "stride", rank, 1),
        pads=_pads(use, kernel, dilations),
        dilations=dilations,
        groups=use.integer("groups", 1),
    )
    return drop_batch(use, made, is_single)


def _pads(use: AtenCall, kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    given = use.get("padding")
    if given == "valid":
        return (0,) * (2 * len(kernel))
    if given == "same":  # an odd one stands at the end
        totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))
    return per_axis(use, "padding", len(kernel), 0) * 2


@handles("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(use: AtenCall) -> int:
    """What a convolution's gradient by its input computes."""
    return _conv_transpose(use)


def _conv_transpose(use: AtenCall) -> int:
    rank = len(use.shape_of("weight")) - 2
    x, is_single = add_batch(use, "input", rank)
    bias = [use.value("bias")] if use.has("bias") else []
    made = use.add(
        "ConvTranspose",
        *(x, use.value("weight"), *bias),
        strides=per_axis(use, "stride", rank, 1),
        pads=per_axis(use, "padding", rank, 0) * 2,
        dilations=per_axis(use, "dilation", rank, 1),
        groups=use.integer("groups", 1),
        output_padding=per_axis(use, "output_padding", rank, 0),
    )
    return drop_batch(use, made, is_single)

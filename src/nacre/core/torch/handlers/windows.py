"""Convolutions of ATen."""

from __future__ import annotations

from typing import Any

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.use import AtenCall


def several(given: Any, rank: int, default: int) -> tuple[int, ...]:  # noqa: ANN401 - one or more
    """A number for each axis; one alone is for all."""
    found = given if isinstance(given, list | tuple) else [given] if given is not None else []
    numbers = tuple(int(n) for n in found) or (default,)
    return numbers * rank if len(numbers) == 1 else numbers


def batched(use: AtenCall, name: str, rank: int) -> tuple[int, bool]:
    """An operand [N, C, ..]; the axis N is put before one that lacks it."""
    value = use.value(name)
    dims = use.type_of(value).shape
    is_single = len(dims) == rank + 1
    return (use.reshaped(value, (1, *dims)) if is_single else value), is_single


@handles("conv1d.default", "conv2d.default", "conv3d.default", "conv1d.padding",
         "conv2d.padding", "conv3d.padding", "convolution.default")  # fmt: skip
def conv(use: AtenCall) -> int:
    """A convolution with channels first."""
    if use.get("transposed", False):
        return _transposed(use)
    kernel = use.shape_of("weight")[2:]
    rank = len(kernel)
    dilations = several(use.get("dilation"), rank, 1)
    x, is_single = batched(use, "input", rank)
    bias = [use.value("bias")] if use.has("bias") else []
    made = use.add(
        "Conv",
        *(x, use.value("weight"), *bias),
        strides=several(use.get("stride"), rank, 1),
        pads=_pads(use.get("padding"), kernel, dilations),
        dilations=dilations,
        groups=int(use.get("groups", 1)),
    )
    return use.reshaped(made, use.shape) if is_single else made


def _pads(given: Any, kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ANN401
    if given == "valid":
        return (0,) * (2 * len(kernel))
    if given == "same":  # an odd one stands at the end
        totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))
    return several(given, len(kernel), 0) * 2


@handles("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(use: AtenCall) -> int:
    """What a convolution's gradient by its input computes."""
    return _transposed(use)


def _transposed(use: AtenCall) -> int:
    rank = len(use.shape_of("weight")) - 2
    x, is_single = batched(use, "input", rank)
    bias = [use.value("bias")] if use.has("bias") else []
    extra, strides = (
        several(use.get("output_padding"), rank, 0),
        several(use.get("stride"), rank, 1),
    )
    made = use.add(
        "ConvTranspose",
        *(x, use.value("weight"), *bias),
        strides=strides,
        pads=several(use.get("padding"), rank, 0) * 2,
        dilations=several(use.get("dilation"), rank, 1),
        groups=int(use.get("groups", 1)),
        output_padding=extra,
    )
    return use.reshaped(made, use.shape) if is_single else made

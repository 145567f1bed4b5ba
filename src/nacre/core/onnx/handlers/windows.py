"""Operations of ONNX over windows: convolutions and poolings."""

from __future__ import annotations

from math import ceil
from typing import Any

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode

_AUTOMATIC = ("SAME_UPPER", "SAME_LOWER", "VALID")
_WORDS = ("NOTSET", *_AUTOMATIC)


def _of_axes(node: OnnxNode, name: str, default: int, count: int) -> tuple[int, ...]:
    """An attribute with so many entries: of `pads` none is negative, of the others none is 0."""
    found = node.ints(name, None, [default] * count) or ()
    if len(found) != count:
        raise Unsound(f"`{name}` is {list(found)}, expected {count} entries")
    if min(found, default=default) < default:
        raise Unsound(f"`{name}` is {list(found)}, expected at least {default} everywhere")
    return found


def weights_kernel(node: OnnxNode, index: int = 1) -> tuple[int, ...]:
    """The window of a convolution, which its weights say; `kernel_shape` may say it again."""
    dims = node.shape(index)
    if len(dims) != len(node.shape(0)) or len(dims) < 3:
        own = f"weights of shape {list(dims)} for an input of shape {list(node.shape(0))}"
        raise Unsound(f"{own}, expected a batch, channels and as many further axes")
    given = node.ints("kernel_shape")
    if given is not None and given != dims[2:]:
        message = f"`kernel_shape` is {list(given)}, the weights have {list(dims[2:])}"
        raise Unsound(message, "leave `kernel_shape` out: the weights say it")
    return dims[2:]


def window_attributes(node: OnnxNode, kernel: tuple[int, ...]) -> dict[str, Any]:
    """Strides, dilations and pads, `auto_pad` worked out."""
    rank = len(kernel)
    strides, dilations = (_of_axes(node, name, 1, rank) for name in ("strides", "dilations"))
    pads = _of_axes(node, "pads", 0, 2 * rank)
    auto = node.attribute("auto_pad", "NOTSET")
    if auto in _AUTOMATIC and any(pads):
        message = f"`auto_pad` is {auto} and `pads` is {list(pads)}: they contradict each other"
        raise Unsound(message, "leave one of the two out")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        sizes = node.shape(0)[2:]
        pads = _same(sizes, kernel, strides, dilations, is_upper=auto == "SAME_UPPER")
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto not in ("NOTSET", ""):
        raise Unsound(f"`auto_pad` is {backquote(auto)}, expected one of {', '.join(_WORDS)}")
    return {"strides": strides, "pads": pads, "dilations": dilations}


def _same(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    *,
    is_upper: bool,
) -> tuple[int, ...]:
    """Pads for ceil(size / stride) windows; an odd one at the end, or at the beginning."""
    begins, ends = [], []
    for size, window, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        count = ceil(size / stride)
        total = max((count - 1) * stride + dilation * (window - 1) + 1 - size, 0)
        begins.append(total // 2 if is_upper else total - total // 2)
        ends.append(total - begins[-1])
    return (*begins, *ends)


@handles("Conv")
def conv(node: OnnxNode) -> int:
    """A convolution with channels first."""
    given = window_attributes(node, weights_kernel(node))
    values = [node.value(i) for i in range(node.count)]
    return node.add("Conv", *values, groups=int(node.attribute("group", 1)), **given)


@handles("ConvTranspose")
def conv_transpose(node: OnnxNode) -> int:
    """A transposed convolution; `output_shape` decides the pads."""
    kernel = weights_kernel(node)
    rank = len(kernel)
    given = window_attributes(node, kernel)
    extra = _of_axes(node, "output_padding", 0, rank)
    wanted = node.ints("output_shape")
    auto = node.attribute("auto_pad", "NOTSET")
    sizes = node.shape(0)[2:]
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(s * t for s, t in zip(sizes, given["strides"], strict=True))
    if wanted is not None:
        if len(wanted) not in (rank, rank + 2) or min(wanted, default=0) < 1:
            raise Unsound(f"`output_shape` is {list(wanted)}, expected {rank} positive sizes")
        given["pads"], extra = _transposed_pads(sizes, kernel, given, extra, wanted[-rank:], auto)
    values = [node.value(i) for i in range(node.count)]
    groups = int(node.attribute("group", 1))
    return node.add("ConvTranspose", *values, groups=groups, output_padding=extra, **given)


def _transposed_pads(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    given: dict[str, Any],
    extra: tuple[int, ...],
    wanted: tuple[int, ...],
    auto: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pads for a size, and elements behind the windows where they do not reach it."""
    begins, ends, behind = [], [], []
    for axis, size in enumerate(sizes):
        reach = given["dilations"][axis] * (kernel[axis] - 1) + 1
        full = given["strides"][axis] * (size - 1) + extra[axis] + reach
        total = max(full - wanted[axis], 0)
        behind.append(extra[axis] + max(wanted[axis] - full, 0))
        less = total // 2
        begins.append(less if auto == "SAME_UPPER" else total - less)
        ends.append(total - begins[-1])
    return (*begins, *ends), tuple(behind)


@handles("AveragePool")
def average_pool(node: OnnxNode) -> int:
    """The mean of each window."""
    return pool(node, "AvgPool", count_pad=bool(node.attribute("count_include_pad", 0)))


@handles("LpPool")
def lp_pool(node: OnnxNode) -> int:
    """The p-norm of each window."""
    return pool(node, "LpPool", p=int(node.attribute("p", 2)))


def pool(node: OnnxNode, opcode: str, **further: object) -> int:
    """A pooling with the node's windows."""
    kernel = tuple(int(k) for k in node.require("kernel_shape"))
    if len(kernel) != len(node.shape(0)) - 2 or min(kernel, default=0) < 1:
        message = f"`kernel_shape` is {list(kernel)}, the input has the shape {list(node.shape(0))}"
        raise Unsound(message, "give one size of 1 or more for each spatial axis")
    given = window_attributes(node, kernel)
    is_up = bool(node.attribute("ceil_mode", 0))
    return node.add(opcode, node.value(0), kernel=kernel, ceil=is_up, **given, **further)


@handles("GlobalAveragePool")
def global_average_pool(node: OnnxNode) -> int:
    """The mean of each channel."""
    axes = tuple(range(2, len(node.shape(0))))
    return node.add("Mean", node.value(0), axes=axes, keepdims=True)


@handles("GlobalMaxPool")
def global_max_pool(node: OnnxNode) -> int:
    """The largest element of each channel."""
    axes = tuple(range(2, len(node.shape(0))))
    return node.add("Reduce", node.value(0), op="Max", axes=axes, keepdims=True)


@handles("GlobalLpPool")
def global_lp_pool(node: OnnxNode) -> int:
    """The p-norm of each channel."""
    kernel = node.shape(0)[2:]
    return node.add("LpPool", node.value(0), kernel=kernel, p=int(node.attribute("p", 2)))

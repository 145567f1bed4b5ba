"""Convolutions: X [N, spatial.., Cin], W [window.., Cin / groups, Cout], Y [N, spatial.., Cout].

A depthwise convolution, W [Kh, Kw, Cin, multiplier] or [Kh, Kw, 1, Cout], is one with as many
groups as channels; the elements of W lie in the same order in both forms.
A padded element is the real value 0; in floats it takes part as 0 * w, as in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as boxes
from math import prod
from types import MappingProxyType

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Example,
    Primitive,
    Run,
    TensorType,
    Work,
)
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import Float32
from nacre.kernels.products.contraction import (
    Contraction,
    Taken,
    bind_contraction,
    slices,
    starts_of_groups,
)
from nacre.kernels.products.products import Product
from nacre.kernels.windows.patches import ChannelwiseProduct, PatchProduct, Windows


@dataclass(frozen=True, eq=False)
class _Geometry:
    """The numbers of one convolution, a depthwise one seen as grouped."""

    x: TensorType
    w: TensorType
    y: TensorType
    pads: Dims
    strides: Dims
    dilations: Dims
    groups: int
    is_depthwise: bool

    @property
    def w_shape(self) -> Dims:
        """[window.., Cin / groups, Cout], also of depthwise weights."""
        if self.is_depthwise:
            return (*self.w.shape[:-2], 1, self.y.shape[-1])
        return self.w.shape

    @property
    def summed(self) -> Dims:
        """The sizes of the axes that are summed over: window and channels."""
        return self.w_shape[:-1]

    @property
    def pads_of_x(self) -> Dims | None:
        """The pads of every axis of X; None where there are none."""
        if not any(self.pads):
            return None
        half = len(self.pads) // 2
        return (0, *self.pads[:half], 0, 0, *self.pads[half:], 0)

    @property
    def windows(self) -> Windows:
        padded = self.x.shape
        if self.pads_of_x is not None:
            padded = shapes.pad(padded, self.pads_of_x)
        return Windows(
            padded, self.summed[:-1], self.y.shape, self.strides, self.dilations, self.groups
        )


def bind_convolution(call: Call) -> Run:
    """`conv1d`, `conv2d` and `conv3d`."""
    return _bind(_geometry(call, call.attributes.get("groups", 1), is_depthwise=False), call)


def bind_depthwise(call: Call) -> Run:
    """`depthwise_conv2d`."""
    return _bind(_geometry(call, call.input(0).shape[-1], is_depthwise=True), call)


def _geometry(call: Call, groups: int, is_depthwise: bool) -> _Geometry:
    pads, strides, dilations = (call.attributes[name] for name in _SPATIAL)
    return _Geometry(
        call.input(0),
        call.input(1),
        call.output,
        tuple(pads),
        tuple(strides),
        tuple(dilations),
        groups,
        is_depthwise,
    )


def _bind(use: _Geometry, call: Call) -> Run:
    x_starts, w_starts = _starts_by_x(use), _starts_by_w(use)
    cuts = [
        slices({0} | x_starts.get(axis, set()) | w_starts.get(axis, set()), size)
        for axis, size in enumerate(use.summed)
    ]
    is_channelwise = use.groups > 1 and use.summed[-1] == 1
    multiply = (ChannelwiseProduct if is_channelwise else PatchProduct)(use.windows)
    return bind_contraction(
        Contraction(
            call=call,
            pads=use.pads_of_x,
            parts=tuple(boxes(*cuts)),
            x_varies=bool(x_starts),
            w_varies=bool(w_starts),
            x_scale=lambda part: _x_scale(use, part),
            w_scale=lambda part: _w_scale(use, part),
            contract=_in_shape(use.w_shape, multiply),
            uses_blas=not is_channelwise,
        )
    )


def _in_shape(
    w_shape: Dims, multiply: Callable[[Array, Array, Taken, Product], Array]
) -> Callable[[Array, Array, Taken, Product], Array]:
    def contract(x: Array, w: Array, part: Taken, product: Product) -> Array:
        return multiply(x, w.reshape(w_shape), part, product)

    return contract


def _starts_by_w(use: _Geometry) -> dict[int, set[int]]:
    """Where groups of weights begin along an axis that is summed over."""
    quant = use.w.quant
    summed = len(use.w.shape) - (2 if use.is_depthwise else 1)
    if quant is None or quant.axis is None or quant.axis >= summed:
        return {}
    return {quant.axis: starts_of_groups(use.w.shape[quant.axis], quant.group_size)}


def _starts_by_x(use: _Geometry) -> dict[int, set[int]]:
    """Where the scale of X changes along an axis that is summed over."""
    quant = use.x.quant
    if quant is None or not quant.axis:  # one for the tensor, or one for each image
        return {}
    axis = quant.axis - 1
    size = use.summed[axis]
    if quant.axis < len(use.x.shape) - 1:
        # Windows lie anywhere, so each of their places has a scale of its own.
        starts = set(range(size))
    else:
        # Groups of channels begin where groups of scales need not.
        starts = {c % size for c in starts_of_groups(use.x.shape[-1], quant.group_size)}
    return {axis: starts} if starts - {0} else {}


def _x_scale(use: _Geometry, part: Taken) -> Float32:
    """The scale of X for a part, to be broadcast against Y."""
    quant, rank = use.x.quant, len(use.x.shape)
    if quant is None:
        return np.ones((), np.float32)
    scale = quant.broadcast_parameters(use.x.shape)[0]
    if not quant.axis:
        return scale
    axis = quant.axis - 1
    first = part[axis].start
    if quant.axis == rank - 1:
        channels = np.arange(use.groups) * use.summed[-1] + first
        places = np.repeat(channels, use.y.shape[-1] // use.groups)
    else:
        outputs = np.arange(use.y.shape[quant.axis])
        places = outputs * use.strides[axis] + first * use.dilations[axis] - use.pads[axis]
    # What lies in the padding is 0 under any scale.
    inside = np.clip(places, 0, use.x.shape[quant.axis] - 1)
    taken: Float32 = np.take(scale, inside, axis=quant.axis)
    return taken


def _w_scale(use: _Geometry, part: Taken) -> Float32:
    """The scale of W for a part: one, or one for each output channel."""
    if use.w.quant is None:
        return np.ones((), np.float32)
    scale = use.w.quant.broadcast_parameters(use.w.shape)[0]
    if use.w.quant.axis is None:
        return scale
    firsts = tuple(axis.start for axis in part)
    taken: Float32 = np.broadcast_to(scale, use.w.shape).reshape(use.w_shape)[firsts]
    return taken


_SPATIAL = ("pads", "strides", "dilations")


def convolution_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    """The shape of a convolution in groups."""
    x, w = inputs[0], inputs[1]
    groups = attributes.get("groups", 1)
    if x is None or w is None or not _fits(x, w, attributes) or groups < 1:
        return None
    if x[-1] != w[-2] * groups or w[-1] % groups:
        return None
    return _check_shapes(shapes.conv(x, w, *_spatial(attributes)), inputs)


def depthwise_shape(inputs: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
    """The shape of a convolution of each channel by itself."""
    x, w = inputs[0], inputs[1]
    if x is None or w is None or not _fits(x, w, attributes):
        return None
    if shapes.depthwise_multiplier(x[-1], w) is None:
        return None
    return _check_shapes(shapes.depthwise(x, w, *_spatial(attributes)), inputs)


def _spatial(attributes: Attributes) -> tuple[Dims, Dims, Dims]:
    pads, strides, dilations = (tuple(attributes[name]) for name in _SPATIAL)
    return pads, strides, dilations


def _fits(x: Dims, w: Dims, attributes: Attributes) -> bool:
    """Whether ranks and lengths go together and no step is below 1."""
    rank = len(x) - 2
    if rank < 1 or len(w) != len(x) or not all(name in attributes for name in _SPATIAL):
        return False
    pads, strides, dilations = _spatial(attributes)
    lengths = (len(pads), len(strides), len(dilations))
    return lengths == (2 * rank, rank, rank) and min(*strides, *dilations) >= 1


def _check_shapes(y: Dims, inputs: Sequence[Dims | None]) -> list[Dims] | None:
    bias = inputs[2] if len(inputs) > 2 else None
    if min(y) < 1 or (bias is not None and bias != y[-1:]):
        return None
    return [y]


def convolution_work(call: Call) -> Work:
    """A multiplication and addition for each output and place of its window."""
    return Work(macs=call.output.count * prod(call.input(1).shape[:-1]))


def depthwise_work(call: Call) -> Work:
    """The same, where an output sees one channel."""
    return Work(macs=call.output.count * prod(call.input(1).shape[:-2]))


def _example(
    shapes: tuple[Dims, ...], pads: Dims, strides: Dims, dilations: Dims, **more: int
) -> Example:
    spatial = {"pads": pads, "strides": strides, "dilations": dilations}
    return Example(shapes, {**spatial, **more})


_EXAMPLES: Mapping[str, tuple[Example, ...]] = MappingProxyType(
    {
        "conv1d": (
            _example(((2, 9, 4), (3, 4, 5), (5,)), (1, 1), (1,), (1,)),
            _example(((1, 8, 4), (3, 2, 6), (6,)), (2, 0), (2,), (2,), groups=2),
            _example(((1, 1, 1), (1, 1, 1), (1,)), (0, 0), (1,), (1,)),
        ),
        "conv2d": (
            _example(((1, 5, 5, 4), (3, 3, 4, 6), (6,)), (1, 1, 1, 1), (1, 1), (1, 1)),
            _example(((2, 6, 7, 4), (3, 2, 2, 6), (6,)), (1, 0, 0, 1), (2, 1), (1, 2), groups=2),
            _example(((1, 4, 3, 3), (2, 2, 1, 3), (3,)), (0, 0, 1, 1), (1, 1), (1, 1), groups=3),
            _example(((1, 1, 1, 1), (1, 1, 1, 1), (1,)), (0, 0, 0, 0), (1, 1), (1, 1)),
        ),
        "conv3d": (
            _example(
                ((1, 3, 4, 5, 4), (2, 3, 3, 4, 3), (3,)), (0, 1, 1, 1, 1, 1), (1, 1, 2), (1, 1, 1)
            ),
            _example(
                ((1, 3, 3, 3, 4), (2, 2, 2, 2, 2), (2,)), (0,) * 6, (1,) * 3, (2, 1, 1), groups=2
            ),
            _example(((1,) * 5, (1,) * 5, (1,)), (0,) * 6, (1,) * 3, (1,) * 3),
        ),
        "depthwise_conv2d": (
            _example(((1, 5, 5, 3), (3, 3, 3, 1), (3,)), (1, 1, 1, 1), (1, 1), (1, 1)),
            _example(((2, 6, 5, 3), (3, 2, 3, 2), (6,)), (1, 0, 0, 1), (2, 1), (1, 2)),
            _example(((1, 5, 4, 3), (2, 3, 1, 6), (6,)), (1, 1, 0, 1), (1, 2), (1, 1)),
            _example(((1, 1, 1, 1), (1, 1, 1, 1), (1,)), (0, 0, 0, 0), (1, 1), (1, 1)),
        ),
    }
)
CONVOLUTION = (
    *(
        Primitive(
            name, bind_convolution, convolution_shape, convolution_work, examples=_EXAMPLES[name]
        )
        for name in ("conv1d", "conv2d", "conv3d")
    ),
    Primitive(
        "depthwise_conv2d", bind_depthwise, depthwise_shape, depthwise_work,
        examples=_EXAMPLES["depthwise_conv2d"],
    ),
)  # fmt: skip

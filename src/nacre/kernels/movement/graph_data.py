"""Elements in other places, as graphs have them; every element type goes the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run
from nacre.kernels.interface.fitting import (
    Fitting,
    Misfit,
    dims_text,
    expect_least,
    expect_length,
    expect_rank,
    fitting_axes,
    fitting_axis,
)
from nacre.kernels.interface.graph_runs import bind_at_first_run, with_dense_output
from nacre.kernels.interface.runs import copy_run, fill_run, quiet
from nacre.kernels.interface.shapes import Dims, broadcasts_to, sizes_off_axis
from nacre.kernels.movement.gather import GRAPH_GATHER
from nacre.kernels.movement.graph_pad import GRAPH_PAD
from nacre.kernels.movement.views import VIEWS, moves_outputs
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.reductions.topk import GRAPH_TOPK

_CONCAT = next(view for view in VIEWS if view.name == "concat")


def _broadcast(call: Call) -> Run:
    shape = call.output.shape
    return copy_run(lambda x: np.broadcast_to(x, shape))


def _fit_broadcast(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    shape = tuple(attributes["shape"])
    expect_least(shape, 1, "shape")
    if not broadcasts_to(x, shape):
        raise Misfit(
            f"`input` has the shape {dims_text(x)}, which does not stretch to {dims_text(shape)}"
        )
    return shape


def _fit_concat(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    first = inputs[0]
    axis = fitting_axis(attributes["axis"], len(first))
    for index, dims in enumerate(inputs):
        if sizes_off_axis(dims, axis) != sizes_off_axis(first, axis):
            told = f"input {index} has the shape {dims_text(dims)}, expected that of input 0"
            raise Misfit(f"{told}, {dims_text(first)}, but for axis {axis}")
    return (*first[:axis], sum(dims[axis] for dims in inputs), *first[axis + 1 :])


def _flip(call: Call) -> Run:
    rank = len(call.input(0).shape)
    backwards = {axis % rank for axis in call.attributes["axes"]}
    index = tuple(slice(None, None, -1 if axis in backwards else 1) for axis in range(rank))
    return copy_run(lambda x: x[index])


def _fit_flip(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    fitting_axes(attributes["axes"], len(x))
    return x


def _tile(call: Call) -> Run:
    x_shape = call.input(0).shape
    pairs = zip(call.attributes["repeats"], x_shape, strict=True)
    # An axis of times before each axis; those of size 1 are left out, for arrays have 64 at most.
    places = [(n, m) for times, size in pairs for n, m in ((times, 1), (size, size)) if n > 1]
    paired, single = tuple(n for n, _ in places), tuple(m for _, m in places)

    def fill(x: Array, y: Array) -> None:
        y.reshape(paired)[...] = x.reshape(single)

    return with_dense_output(fill_run(fill))


def _fit_tile(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    repeats = attributes["repeats"]
    expect_length(repeats, len(x), "repeats")
    expect_least(repeats, 1, "repeats")
    return tuple(size * times for size, times in zip(x, repeats, strict=True))


def _iota(call: Call) -> Run:
    shape, elem = call.output.shape, call.output.elem
    axis = call.attributes["axis"] % len(shape)
    along = tuple(-1 if at == axis else 1 for at in range(len(shape)))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        places = np.arange(shape[axis], dtype=np.int64)
        values = low_bits(places, elem) if elem.is_integer else places.astype(call.output.dtype)
        outputs[0][...] = values.reshape(along)

    return quiet(run)


def _fit_iota(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    shape, elem = tuple(attributes["shape"]), GRAPH_TYPES.get(attributes["dtype"])
    if elem is None or elem.kind == "bool":
        raise Misfit(f"`dtype` is `{attributes['dtype']}`, expected a type of numbers")
    expect_least(shape, 1, "shape")
    fitting_axis(attributes["axis"], len(shape))
    return shape


# How [N, block, block, C, H, W] lies in channels: blocks before the channels that are left, as
# TensorFlow and ONNX have them, or behind them, as PyTorch has them.
_BLOCKS: Mapping[str, tuple[int, int, int]] = MappingProxyType({"DCR": (1, 2, 3), "CRD": (2, 3, 1)})


def _block_order(call: Call, channels: int) -> tuple[Dims, Dims]:
    """The axes of channels apart, and where the block's two and the channels stand among them."""
    block, order = call.attributes["block"], _BLOCKS[call.attributes["mode"]]
    apart = [0] * 3
    for axis, size in zip(order, (block, block, channels), strict=True):
        apart[axis - 1] = size
    return tuple(apart), order


def _depth_to_space(call: Call) -> Run:
    n, _, height, width = call.input(0).shape
    block, channels = call.attributes["block"], call.output.shape[1]
    apart, (down, across, rest) = _block_order(call, channels)
    fine = (n, channels, height, block, width, block)

    def fill(x: Array, y: Array) -> None:
        coarse = x.reshape(n, *apart, height, width)
        y.reshape(fine)[...] = coarse.transpose(0, rest, 4, down, 5, across)

    return with_dense_output(fill_run(fill))


def _space_to_depth(call: Call) -> Run:
    n, channels, _, _ = call.input(0).shape
    _, _, height, width = call.output.shape
    block = call.attributes["block"]
    apart, (down, across, rest) = _block_order(call, channels)

    def fill(x: Array, y: Array) -> None:
        fine = x.reshape(n, channels, height, block, width, block)
        coarse = y.reshape(n, *apart, height, width)
        coarse.transpose(0, rest, 4, down, 5, across)[...] = fine

    return with_dense_output(fill_run(fill))


def _block_of(x: Dims, attributes: Attributes) -> int:
    expect_rank(x, 4, 4)
    if attributes["mode"] not in _BLOCKS:
        raise Misfit(f"`mode` is `{attributes['mode']}`, expected `DCR` or `CRD`")
    block: int = attributes["block"]
    expect_least((block,), 1, "block")
    return block


def _fit_depth_to_space(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    block = _block_of(x, attributes)
    n, channels, height, width = x
    if channels % block**2:
        raise Misfit(f"`input` has {channels} channels, expected a multiple of {block}^2")
    return n, channels // block**2, height * block, width * block


def _fit_space_to_depth(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    block = _block_of(x, attributes)
    n, channels, height, width = x
    if height % block or width % block:
        raise Misfit(f"`input` has planes of {height} x {width}, expected multiples of {block}")
    return n, channels * block**2, height // block, width // block


def _trilu(call: Call) -> Run:
    height, width = call.input(0).shape[-2:]
    # Beyond the corners nothing changes.
    k = min(max(call.attributes["k"], -height), width)
    rows, columns = np.arange(height)[:, None], np.arange(width)
    is_kept = columns >= rows + k if call.attributes["upper"] else columns <= rows + k
    zero = call.output.dtype.type(0)

    def fill(x: Array, y: Array) -> None:
        y[...] = np.where(is_kept, x, zero)

    return fill_run(fill)


def _fit_trilu(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    expect_rank(x, 2)
    return x


def _moving_primitive(
    name: str, bind: Callable[[Call], Run], fit: Callable[[Sequence[Dims], Attributes], Dims]
) -> Primitive:
    return Primitive(f"core.{name}", bind, Fitting(fit), moves_outputs)


GRAPH_DATA: tuple[Primitive, ...] = (
    _moving_primitive("Broadcast", _broadcast, _fit_broadcast),
    _moving_primitive("Concat", _CONCAT.bind, _fit_concat),
    *GRAPH_PAD,
    _moving_primitive("Flip", _flip, _fit_flip),
    _moving_primitive("Tile", _tile, _fit_tile),
    *GRAPH_GATHER,
    *GRAPH_TOPK,
    _moving_primitive("Iota", _iota, _fit_iota),
    _moving_primitive("DepthToSpace", _depth_to_space, _fit_depth_to_space),
    _moving_primitive("SpaceToDepth", _space_to_depth, _fit_space_to_depth),
    _moving_primitive("Trilu", bind_at_first_run(_trilu), _fit_trilu),
)

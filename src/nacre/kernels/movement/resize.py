"""Another size, axis by axis, as ONNX has it.

Where an element of the result comes from is worked out in f64 from the scale that is given, or
from both sizes where none is. Floats up to 32 bits are weighted and added in f32, f64 in f64, one
neighbour after the other; integers in f64, rounded half to even and stopped at the ends of their
type. Neighbours outside of the tensor are those at its edge. Axes that shrink come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isclose
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nacre.kernels.interface.call import Array, Attributes, Call, Primitive, Run, TensorType, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_least, expect_length
from nacre.kernels.interface.graph_runs import bind_at_first_run
from nacre.kernels.interface.runs import fill_run, quiet
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import real_to_integer
from nacre.kernels.reductions.reductions import wide_float

Reals = npt.NDArray[np.float64]
_MOST_REPEATS = 8
_SLACK = 1e-5  # of a scale: many are given in f32
_LARGEST_SIZE = (1 << 63) - 1
_LARGEST_A = 1e6  # any larger, and weights are noise


class Sizes(Protocol):
    """What coordinates depend on."""

    @property
    def size(self) -> int:
        """Before."""

    @property
    def count(self) -> int:
        """After."""

    @property
    def scale(self) -> float:
        """The one over the other, as it was given."""


@dataclass(frozen=True)
class _Axis:
    """One axis whose size changes."""

    axis: int
    size: int  # before
    count: int  # after
    scale: float


def _axes(x: Dims, y: Dims, attributes: Attributes) -> list[_Axis]:
    """The axes that change, those that shrink most first, the last one first among equals."""
    scales = attributes["scales"] or [count / size for size, count in zip(x, y, strict=True)]
    found = [
        _Axis(axis, size, count, float(scale))
        for axis, (size, count, scale) in enumerate(zip(x, y, scales, strict=True))
        if size != count or not isclose(scale, 1.0)
    ]
    return sorted(found, key=lambda a: (a.count / a.size, -a.axis))


def _half_pixel(a: Sizes, positions: Array) -> Array:
    at: Array = (positions + 0.5) / a.scale - 0.5
    return at


def _half_pixel_symmetric(a: Sizes, positions: Array) -> Array:
    # The middle of the tensor stays in the middle, also where its size was rounded.
    offset = a.size / 2 * (1 - a.count / (a.scale * a.size))
    return offset + _half_pixel(a, positions)


def _pytorch_half_pixel(a: Sizes, positions: Array) -> Array:
    return _half_pixel(a, positions) if a.count > 1 else positions


def _align_corners(a: Sizes, positions: Array) -> Array:
    at: Array = positions * (a.size - 1) / (a.count - 1) if a.count > 1 else positions
    return at


def _asymmetric(a: Sizes, positions: Array) -> Array:
    at: Array = positions / a.scale
    return at


# From places in the result to coordinates in the tensor.
COORDINATES: Mapping[str, Callable[[Sizes, Array], Array]] = MappingProxyType(
    {
        "half_pixel": _half_pixel,
        "half_pixel_symmetric": _half_pixel_symmetric,
        "pytorch_half_pixel": _pytorch_half_pixel,
        "align_corners": _align_corners,
        "asymmetric": _asymmetric,
    }
)
_ROUNDINGS: Mapping[str, Callable[[Reals], Reals]] = MappingProxyType(
    {
        "round_prefer_floor": lambda at: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda at: np.floor(at + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
)


def _triangle(distance: Reals, a: float) -> Reals:
    return np.maximum(1.0 - distance, 0.0)


def _cubic(distance: Reals, a: float) -> Reals:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


# The weight of a neighbour by its distance, and how far that reaches.
_WEIGHTS: Mapping[str, tuple[Callable[[Reals, float], Reals], int]] = MappingProxyType(
    {"linear": (_triangle, 1), "cubic": (_cubic, 2)}
)


def _coordinates(a: _Axis, attributes: Attributes) -> Reals:
    return COORDINATES[attributes["coordinate"]](a, np.arange(a.count, dtype=np.float64))


def _nearest(a: _Axis, attributes: Attributes) -> Array:
    """The index of the neighbour of each place."""
    rounded = _ROUNDINGS[attributes["rounding"]](_coordinates(a, attributes))
    return np.clip(rounded, 0, a.size - 1).astype(np.intp)


def _first_neighbour(a: _Axis, attributes: Attributes) -> tuple[int, float]:
    """Where neighbours begin, counted from the one below, and how distances are stretched."""
    reach = _WEIGHTS[attributes["mode"]][1]
    stretch = min(a.scale, 1.0) if attributes["antialias"] else 1.0
    return floor(-reach / stretch) + 1, stretch


def _neighbours(a: _Axis, attributes: Attributes) -> tuple[Array, Reals]:
    """The indices of all neighbours of each place, and their weights: [neighbour, place]."""
    at = _coordinates(a, attributes)
    below = np.ceil(at) - 1  # strictly, so that ratios are above 0
    first, stretch = _first_neighbour(a, attributes)
    offsets = np.arange(first, 2 - first, dtype=np.float64)[:, None]
    weight, _ = _WEIGHTS[attributes["mode"]]
    weights = weight(np.abs(offsets - (at - below)) * stretch, attributes["cubic_a"])
    if attributes["antialias"]:
        weights /= weights.sum(axis=0)
    indices = below + offsets
    if attributes["exclude_outside"]:
        weights = np.where((indices < 0) | (indices >= a.size), 0.0, weights)
        total = weights.sum(axis=0)
        weights /= np.where(total == 0, 1.0, total)
    return np.clip(indices, 0, a.size - 1).astype(np.intp), weights


def _bind(call: Call) -> Run:
    axes = _axes(call.input(0).shape, call.output.shape, call.attributes)
    if call.attributes["mode"] == "nearest" or not axes:
        return _bind_nearest(call, axes)
    type_ = call.input(0)
    wide = np.dtype(np.float64) if type_.elem.is_integer else wide_float(type_)
    steps = [(a.axis, *_broadcast_weights(a, call, wide)) for a in axes]
    store = _rounding_store(call.output)

    def fill(x: Array, y: Array) -> None:
        values = x.astype(wide, copy=False)
        for axis, indices, weights in steps:
            values = _weighted_sum(values, axis, indices, weights)
        store(values, y)

    return quiet(fill_run(fill))


def _broadcast_weights(a: _Axis, call: Call, wide: np.dtype[Any]) -> tuple[Array, Array]:
    """Neighbours, and weights that broadcast against the tensor."""
    indices, weights = _neighbours(a, call.attributes)
    behind = (1,) * (len(call.output.shape) - a.axis - 1)
    return indices, weights.astype(wide).reshape(*weights.shape, *behind)


def _weighted_sum(values: Array, axis: int, indices: Array, weights: Array) -> Array:
    total: Array = values.take(indices[0], axis=axis)
    total *= weights[0]
    for index, weight in zip(indices[1:], weights[1:], strict=True):
        term = values.take(index, axis=axis)
        term *= weight
        total += term
    return total


def _rounding_store(type_: TensorType) -> Callable[[Array, Array], None]:
    def round_integers(values: Array, y: Array) -> None:
        y[...] = real_to_integer(np.rint(values), type_.elem)

    def round_wide(values: Array, y: Array) -> None:
        # f64 has 2^63, the next number above the highest value, but not that value.
        rounded = np.maximum(np.rint(values), float(type_.elem.lowest))
        is_beyond = rounded >= float(type_.elem.highest)
        whole = np.where(is_beyond, 0.0, rounded).astype(y.dtype)
        y[...] = np.where(is_beyond, type_.elem.highest, whole)

    def round_floats(values: Array, y: Array) -> None:
        y[...] = values

    if type_.elem.is_integer:
        return round_wide if type_.elem.bits > 32 else round_integers
    return round_floats


def _bind_nearest(call: Call, axes: Sequence[_Axis]) -> Run:
    rank = len(call.output.shape)
    steps = [_axis_picker(a, _nearest(a, call.attributes), rank) for a in axes]

    def fill(x: Array, y: Array) -> None:
        values = x
        for pick in steps[:-1]:
            values = pick(values, None)
        if steps:
            steps[-1](values, y)
        else:
            y[...] = x

    return fill_run(fill)


def _axis_picker(a: _Axis, indices: Array, rank: int) -> Callable[[Array, Array | None], Array]:
    """How the neighbours along an axis are taken, into an array that may be given."""
    times = a.count // a.size
    is_repeated = np.array_equal(indices, np.arange(a.count) // times) if times > 1 else False

    def take(values: Array, out: Array | None) -> Array:
        return values.take(indices, axis=a.axis, out=out, mode="clip")

    def repeat(values: Array, out: Array | None) -> Array:
        wide = np.empty((*values.shape[:-1], a.count), values.dtype) if out is None else out
        for first in range(times):
            wide[..., first::times] = values
        return wide

    # Along the last axis elements are taken one by one: to repeat them is quicker.
    return repeat if is_repeated and a.axis == rank - 1 and times <= _MOST_REPEATS else take


def _fit(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    (x,) = inputs
    sizes, scales = tuple(attributes["sizes"]), attributes["scales"]
    _fit_words(attributes)
    expect_length(sizes, len(x), "sizes")
    expect_least(sizes, 1, "sizes")
    if max((*x, *sizes), default=0) > _LARGEST_SIZE:
        raise Misfit(f"`sizes` has {max(sizes)}, expected at most 2^63 - 1")
    if attributes["mode"] == "nearest" and attributes["antialias"]:
        raise Misfit("`antialias` is true, expected false: `mode` is `nearest`")
    if not -_LARGEST_A <= attributes["cubic_a"] <= _LARGEST_A:
        raise Misfit(f"`cubic_a` is {attributes['cubic_a']}, expected a number near 0")
    if scales:
        expect_length(scales, len(x), "scales")
        for axis, (size, count, scale) in enumerate(zip(x, sizes, scales, strict=True)):
            _fit_scale(axis, size, count, scale)
    return sizes


def _fit_words(attributes: Attributes) -> None:
    known = {"mode": ("nearest", *_WEIGHTS), "coordinate": COORDINATES, "rounding": _ROUNDINGS}
    for name, words in known.items():
        if attributes[name] not in words:
            told = f"`{name}` is `{attributes[name]}`"
            raise Misfit(f"{told}, expected one of `{'`, `'.join(words)}`")


def _fit_scale(axis: int, size: int, count: int, scale: float) -> None:
    """A scale gives the size, however that is rounded; comparisons say no to NaN."""
    least, most = max(count - 1, 0.5) / size, (count + 1) / size
    if not least * (1 - _SLACK) <= scale <= most * (1 + _SLACK):
        told = f"`scales` has {scale} for axis {axis}"
        raise Misfit(f"{told}, expected about {count / size}: from the size {size} to {count}")


def _work(call: Call) -> Work:
    if call.attributes["mode"] == "nearest":
        return Work(elements=call.output.count)
    macs, shape = 0, list(call.input(0).shape)
    for a in _axes(call.input(0).shape, call.output.shape, call.attributes):
        first, _ = _first_neighbour(a, call.attributes)
        shape[a.axis] = a.count
        macs += int(np.prod(shape, dtype=np.int64)) * (2 - 2 * first)
    return Work(macs=macs, elements=call.output.count)


GRAPH_RESIZE: tuple[Primitive, ...] = (
    Primitive("core.Resize", bind_at_first_run(_bind), Fitting(_fit), _work),
)

"""Resize and Upsample of ONNX.

Most become one `Resize`. Coordinates that it lacks are worked out at import: neighbours are
gathered, interpolation is a product with a matrix of weights for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.resize_places import (
    ROUNDINGS,
    Axis,
    coordinates,
    is_plain,
    neighbours,
)
from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.use import OnnxNode
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_NATIVE = frozenset(
    {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}
)
_OWN = frozenset({"tf_half_pixel_for_nn", "tf_crop_and_resize"})
_MODES = frozenset({"nearest", "linear", "cubic"})
_LONGEST = 1 << 24  # of an axis whose places are worked out here
_MOST_WEIGHTS = 1 << 24


@dataclass(frozen=True)
class Manner:
    """How elements are found and combined."""

    mode: str
    coordinate: str
    rounding: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool
    outside: float

    def is_native(self, axes: Sequence[Axis]) -> bool:
        """Whether `Resize` has these coordinates, and the same neighbours, on axes that change."""
        if self.coordinate not in _NATIVE or len({self.rounding_of(a) for a in axes}) > 1:
            return False
        if self.coordinate == "align_corners" and not all(a.is_whole for a in axes):
            return False  # ONNX divides by the size before rounding
        if self.mode != "nearest":
            return True
        short = [a for a in axes if a.count <= _LONGEST]
        return all(is_plain(a, self.coordinate, self.rounding_of(a)) for a in short)

    def rounding_of(self, a: Axis) -> str:
        """How coordinates of an axis become places."""
        if self.rounding != "simple":
            return self.rounding
        return "ceil" if a.scale < 1.0 else "floor"


@handles("Resize")
def resize(use: OnnxNode) -> int:
    """Another size; from opset 11 on with coordinates of choice."""
    if use.opset < 11:
        return _add_resize(use, _first_scales(use), _first_manner(use))
    dims = use.shape(0)
    chosen = normalise_axes(use.ints("axes", None, range(len(dims))) or (), len(dims))
    manner = _manner(use)
    axes = _axes(use, dims, chosen)
    if manner.coordinate == "tf_crop_and_resize":
        axes = _crop_axes(use, axes, chosen)
    return _add_resize(use, axes, manner)


@handles("Upsample")
def upsample(use: OnnxNode) -> int:
    """What Resize was before opset 10."""
    return _add_resize(use, _first_scales(use), _first_manner(use))


def _first_scales(use: OnnxNode) -> list[Axis]:
    dims = use.shape(0)
    if use.has(1):
        given = tuple(float(s) for s in np.ravel(use.require_known(1, "`scales`")))
    else:
        given = tuple(float(s) for s in use.require("scales"))
    return _axes_by_scale(dims, tuple(range(len(dims))), given)


def _first_manner(use: OnnxNode) -> Manner:
    """The definition said nothing of coordinates; this is what runtimes came to do."""
    mode = _word(use, "mode", "nearest", _MODES - {"cubic"})
    return Manner(mode, "asymmetric", "simple", -0.75, False, False, 0.0)


def _manner(use: OnnxNode) -> Manner:
    mode = _word(use, "mode", "nearest", _MODES)
    return Manner(
        mode,
        _word(use, "coordinate_transformation_mode", "half_pixel", _NATIVE | _OWN),
        _word(use, "nearest_mode", "round_prefer_floor", frozenset(ROUNDINGS)),
        float(use.attribute("cubic_coeff_a", -0.75)),
        mode == "cubic" and bool(use.attribute("exclude_outside", 0)),
        mode != "nearest" and bool(use.attribute("antialias", 0)),
        float(use.attribute("extrapolation_value", 0.0)),
    )


def _word(use: OnnxNode, name: str, default: str, words: frozenset[str]) -> str:
    found = str(use.attribute(name, default))
    if found not in words:
        raise Unsound(f"`{name}` is {backquote(found)}, expected one of {', '.join(sorted(words))}")
    return found


def _axes(use: OnnxNode, dims: Sequence[int], chosen: Sequence[int]) -> list[Axis]:
    """Every axis, by `sizes` or by `scales`: the one that is not empty."""
    if use.has(3) and use.shape(3) != (0,):
        wanted = use.ints("sizes", 3) or ()
        return _axes_by_size(use, dims, chosen, wanted)
    if use.has(2) and use.shape(2) != (0,):
        given = tuple(float(s) for s in np.ravel(use.require_known(2, "`scales`")))
        return _axes_by_scale(dims, chosen, given)
    raise Unsound("neither `scales` nor `sizes` is given")


def _axes_by_scale(
    dims: Sequence[int], chosen: Sequence[int], given: Sequence[float]
) -> list[Axis]:
    if len(given) != len(chosen):
        raise Unsound(f"`scales` has {len(given)} entries, expected {len(chosen)}")
    scales = dict(zip(chosen, given, strict=True))
    found = []
    for axis, size in enumerate(dims):
        scale = scales.get(axis, 1.0)
        # In f32, as the sizes of a model are inferred: 10 times 0.7 is 7, not 6.
        count = float(np.floor(np.float32(size) * np.float32(scale)))
        if not 0 < scale < 1e9 or not 0 < count < 1 << 40:
            raise Unsound(f"`scales` has {scale} for axis {axis} of size {size}")
        found.append(Axis(size, int(count), scale))
    return found


def _axes_by_size(
    use: OnnxNode, dims: Sequence[int], chosen: Sequence[int], wanted: Sequence[int]
) -> list[Axis]:
    if len(wanted) != len(chosen) or min(wanted, default=1) < 1:
        raise Unsound(f"`sizes` is {list(wanted)}, expected {len(chosen)} positive sizes")
    counts = dict(zip(chosen, wanted, strict=True))
    policies = frozenset({"stretch", "not_larger", "not_smaller"})
    policy = _word(use, "keep_aspect_ratio_policy", "stretch", policies)
    if policy == "stretch":
        ends = [counts.get(axis, size) for axis, size in enumerate(dims)]
        return [Axis(size, end, end / size) for size, end in zip(dims, ends, strict=True)]
    best = min if policy == "not_larger" else max
    scale = best(counts[axis] / dims[axis] for axis in chosen)
    return [
        Axis(size, max(floor(scale * size + 0.5), 1), scale)
        if axis in counts
        else Axis(size, size, 1.0)
        for axis, size in enumerate(dims)
    ]


def _crop_axes(use: OnnxNode, axes: Sequence[Axis], chosen: Sequence[int]) -> list[Axis]:
    roi = np.ravel(use.require_known(1, "`roi`")).astype(float)
    if roi.size != 2 * len(chosen):
        raise Unsound(f"`roi` has {roi.size} entries, expected {2 * len(chosen)}")
    ends = {axis: (float(roi[i]), float(roi[len(chosen) + i])) for i, axis in enumerate(chosen)}
    return [
        replace(a, start=start, end=end)
        for axis, a in enumerate(axes)
        for start, end in [ends.get(axis, (0.0, 1.0))]
    ]


def _add_resize(use: OnnxNode, axes: Sequence[Axis], manner: Manner) -> int:
    dtype = use.type(0).dtype
    x, is_number = use.value(0), dtype != "bool"
    if manner.mode != "nearest" and GRAPH_TYPES[dtype].is_integer:
        # Integers are cut towards 0, not rounded: so the result is cast from f32.
        return use.cast(_resize_axes(use, use.cast(x, "f32"), axes, manner), dtype)
    if is_number:
        return _resize_axes(use, x, axes, manner)
    return use.cast(_resize_axes(use, use.cast(x, "u8"), axes, manner), dtype)


def _resize_axes(use: OnnxNode, x: int, axes: Sequence[Axis], manner: Manner) -> int:
    changed = [a for a in axes if not a.is_kept]
    if manner.is_native(changed):
        first = changed[0] if changed else Axis(1, 1, 1.0)
        return _native(use, x, axes, manner, manner.rounding_of(first))
    for axis, a in enumerate(axes):
        if not a.is_kept:
            x = _along(use, x, axis, a, manner)
    return x


def _native(use: OnnxNode, x: int, axes: Sequence[Axis], manner: Manner, rounding: str) -> int:
    given = {
        "sizes": tuple(a.count for a in axes),
        "scales": tuple(a.scale for a in axes),
        "mode": manner.mode,
        "coordinate": manner.coordinate,
        "rounding": rounding,
        "cubic_a": manner.cubic_a,
        "exclude_outside": manner.exclude_outside,
        "antialias": manner.antialias,
    }
    return use.add("Resize", x, **given)


def _along(use: OnnxNode, x: int, axis: int, a: Axis, manner: Manner) -> int:
    """One axis, by coordinates that are worked out here."""
    if a.count > _LONGEST:
        reason = f"an axis of {a.count} with `{manner.coordinate}` is too long"
        raise Unsupported(reason, SMALLER)
    is_nearest = manner.mode == "nearest"
    at = coordinates(a, manner.coordinate, np.float32 if is_nearest else np.float64)
    if is_nearest:
        places = neighbours(a, at, manner.rounding_of(a))
        x = use.add("GatherAxis", x, use.constant(places), axis=axis)
    else:
        x = _weigh_axis(use, x, axis, _weights(at, a, manner))
    is_outside = (at < 0) | (at > a.size - 1)
    if manner.coordinate != "tf_crop_and_resize" or not is_outside.any():
        return x
    type_ = use.builder.type_of(x)
    mask = is_outside.reshape(-1, *[1] * (len(type_.shape) - axis - 1))
    return use.add("Where", use.constant(mask), use.scalar(manner.outside, type_.dtype), x)


def _weights(at: Array, a: Axis, manner: Manner) -> Array:
    """[size, count]: how much of each element goes where; those beyond the edge count as it."""
    if a.size * a.count > _MOST_WEIGHTS:
        reason = f"an axis of {a.size} to {a.count} with `{manner.coordinate}` is too long"
        raise Unsupported(reason, SMALLER)
    reach = 1 if manner.mode == "linear" else 2
    stretch = min(a.scale, 1.0) if manner.antialias else 1.0
    first = floor(-reach / stretch) + 1
    indices = (np.ceil(at) - 1)[:, None] + np.arange(first, 2 - first)
    distance = np.abs(indices - at[:, None]) * stretch
    if manner.mode == "linear":
        weights = np.maximum(1.0 - distance, 0.0)
    else:
        weights = _cubic(distance, manner.cubic_a)
    if manner.exclude_outside:
        weights = np.where((indices < 0) | (indices >= a.size), 0.0, weights)
    if manner.exclude_outside or manner.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    found = np.zeros((a.size, a.count))
    columns = np.broadcast_to(np.arange(a.count)[:, None], indices.shape)
    np.add.at(found, (np.clip(indices, 0, a.size - 1).astype(np.int64), columns), weights)
    return found


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    found: Array = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    return found


def _weigh_axis(use: OnnxNode, x: int, axis: int, weights: Array) -> int:
    """A product along one axis."""
    type_ = use.builder.type_of(x)
    wide = "f64" if type_.dtype == "f64" else "f32"
    x = use.cast(x, wide)
    rank = len(type_.shape)
    if rank == 1:
        x, axis, rank = use.reshape(x, (1, *type_.shape)), 1, 2
    order = [i for i in range(rank) if i != axis] + [axis]
    matrix = use.constant(weights.astype(GRAPH_TYPES[wide].dtype))
    made = use.add("MatMul", use.transpose(x, order), matrix)
    made = use.cast(use.transpose(made, [order.index(i) for i in range(rank)]), type_.dtype)
    return made if len(type_.shape) > 1 else use.reshape(made, (weights.shape[1],))

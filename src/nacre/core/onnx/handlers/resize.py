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
from nacre.core.onnx.handlers.resize_coordinates import (
    ROUNDINGS,
    Axis,
    coordinates,
    is_precision_independent,
    neighbours,
)
from nacre.core.onnx.handlers.shapes import normalise_axes
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode
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
class Interpolation:
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
        return all(is_precision_independent(a, self.coordinate, self.rounding_of(a)) for a in short)

    def rounding_of(self, a: Axis) -> str:
        """How coordinates of an axis become places."""
        if self.rounding != "simple":
            return self.rounding
        return "ceil" if a.scale < 1.0 else "floor"


@handles("Resize")
def resize(node: OnnxNode) -> int:
    """Another size; from opset 11 on with coordinates of choice."""
    if node.opset < 11:
        return _add_resize(node, _upsample_axes(node), _upsample_interpolation(node))
    dims = node.shape(0)
    chosen = normalise_axes(node.ints("axes", None, range(len(dims))) or (), len(dims))
    interpolation = _interpolation(node)
    axes = _axes(node, dims, chosen)
    if interpolation.coordinate == "tf_crop_and_resize":
        axes = _crop_axes(node, axes, chosen)
    return _add_resize(node, axes, interpolation)


@handles("Upsample")
def upsample(node: OnnxNode) -> int:
    """What Resize was before opset 10."""
    return _add_resize(node, _upsample_axes(node), _upsample_interpolation(node))


def _upsample_axes(node: OnnxNode) -> list[Axis]:
    dims = node.shape(0)
    if node.has(1):
        given = tuple(float(s) for s in np.ravel(node.require_known(1, "`scales`")))
    else:
        given = tuple(float(s) for s in node.require("scales"))
    return _axes_by_scale(dims, tuple(range(len(dims))), given)


def _upsample_interpolation(node: OnnxNode) -> Interpolation:
    """The definition said nothing of coordinates; this is what runtimes came to do."""
    mode = _word(node, "mode", "nearest", _MODES - {"cubic"})
    return Interpolation(mode, "asymmetric", "simple", -0.75, False, False, 0.0)


def _interpolation(node: OnnxNode) -> Interpolation:
    mode = _word(node, "mode", "nearest", _MODES)
    return Interpolation(
        mode,
        _word(node, "coordinate_transformation_mode", "half_pixel", _NATIVE | _OWN),
        _word(node, "nearest_mode", "round_prefer_floor", frozenset(ROUNDINGS)),
        float(node.attribute("cubic_coeff_a", -0.75)),
        mode == "cubic" and bool(node.attribute("exclude_outside", 0)),
        mode != "nearest" and bool(node.attribute("antialias", 0)),
        float(node.attribute("extrapolation_value", 0.0)),
    )


def _word(node: OnnxNode, name: str, default: str, words: frozenset[str]) -> str:
    found = str(node.attribute(name, default))
    if found not in words:
        raise Unsound(f"`{name}` is {backquote(found)}, expected one of {', '.join(sorted(words))}")
    return found


def _axes(node: OnnxNode, dims: Sequence[int], chosen: Sequence[int]) -> list[Axis]:
    """Every axis, by `sizes` or by `scales`: the one that is not empty."""
    if node.has(3) and node.shape(3) != (0,):
        wanted = node.ints("sizes", 3) or ()
        return _axes_by_size(node, dims, chosen, wanted)
    if node.has(2) and node.shape(2) != (0,):
        given = tuple(float(s) for s in np.ravel(node.require_known(2, "`scales`")))
        return _axes_by_scale(dims, chosen, given)
    raise Unsound("neither `scales` nor `sizes` is given")


def _axes_by_scale(
    dims: Sequence[int], chosen: Sequence[int], given: Sequence[float]
) -> list[Axis]:
    if len(given) != len(chosen):
        raise Unsound(f"`scales` has {len(given)} entries, expected {len(chosen)}")
    scales = dict(zip(chosen, given, strict=True))
    axes = []
    for axis, size in enumerate(dims):
        scale = scales.get(axis, 1.0)
        # In f32, as the sizes of a model are inferred: 10 times 0.7 is 7, not 6.
        count = float(np.floor(np.float32(size) * np.float32(scale)))
        if not 0 < scale < 1e9 or not 0 < count < 1 << 40:
            raise Unsound(f"`scales` has {scale} for axis {axis} of size {size}")
        axes.append(Axis(size, int(count), scale))
    return axes


def _axes_by_size(
    node: OnnxNode, dims: Sequence[int], chosen: Sequence[int], wanted: Sequence[int]
) -> list[Axis]:
    if len(wanted) != len(chosen) or min(wanted, default=1) < 1:
        raise Unsound(f"`sizes` is {list(wanted)}, expected {len(chosen)} positive sizes")
    counts = dict(zip(chosen, wanted, strict=True))
    policies = frozenset({"stretch", "not_larger", "not_smaller"})
    policy = _word(node, "keep_aspect_ratio_policy", "stretch", policies)
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


def _crop_axes(node: OnnxNode, axes: Sequence[Axis], chosen: Sequence[int]) -> list[Axis]:
    roi = np.ravel(node.require_known(1, "`roi`")).astype(float)
    if roi.size != 2 * len(chosen):
        raise Unsound(f"`roi` has {roi.size} entries, expected {2 * len(chosen)}")
    ends = {axis: (float(roi[i]), float(roi[len(chosen) + i])) for i, axis in enumerate(chosen)}
    return [
        replace(a, start=start, end=end)
        for axis, a in enumerate(axes)
        for start, end in [ends.get(axis, (0.0, 1.0))]
    ]


def _add_resize(node: OnnxNode, axes: Sequence[Axis], interpolation: Interpolation) -> int:
    dtype = node.type(0).dtype
    x, is_number = node.value(0), dtype != "bool"
    if interpolation.mode != "nearest" and GRAPH_TYPES[dtype].is_integer:
        # Integers are cut towards 0, not rounded: so the result is cast from f32.
        return node.cast(_resize_axes(node, node.cast(x, "f32"), axes, interpolation), dtype)
    if is_number:
        return _resize_axes(node, x, axes, interpolation)
    return node.cast(_resize_axes(node, node.cast(x, "u8"), axes, interpolation), dtype)


def _resize_axes(node: OnnxNode, x: int, axes: Sequence[Axis], interpolation: Interpolation) -> int:
    changed = [a for a in axes if not a.is_unchanged]
    if interpolation.is_native(changed):
        first = changed[0] if changed else Axis(1, 1, 1.0)
        return _add_core_resize(node, x, axes, interpolation, interpolation.rounding_of(first))
    for axis, a in enumerate(axes):
        if not a.is_unchanged:
            x = _resize_axis(node, x, axis, a, interpolation)
    return x


def _add_core_resize(
    node: OnnxNode, x: int, axes: Sequence[Axis], interpolation: Interpolation, rounding: str
) -> int:
    given = {
        "sizes": tuple(a.count for a in axes),
        "scales": tuple(a.scale for a in axes),
        "mode": interpolation.mode,
        "coordinate": interpolation.coordinate,
        "rounding": rounding,
        "cubic_a": interpolation.cubic_a,
        "exclude_outside": interpolation.exclude_outside,
        "antialias": interpolation.antialias,
    }
    return node.add("Resize", x, **given)


def _resize_axis(node: OnnxNode, x: int, axis: int, a: Axis, interpolation: Interpolation) -> int:
    """One axis, by coordinates that are worked out here."""
    if a.count > _LONGEST:
        reason = f"an axis of {a.count} with `{interpolation.coordinate}` is too long"
        raise Unsupported(reason, SMALLER)
    is_nearest = interpolation.mode == "nearest"
    at = coordinates(a, interpolation.coordinate, np.float32 if is_nearest else np.float64)
    if is_nearest:
        places = neighbours(a, at, interpolation.rounding_of(a))
        x = node.add("GatherAxis", x, node.constant(places), axis=axis)
    else:
        x = _weigh_axis(node, x, axis, _weights(at, a, interpolation))
    is_outside = (at < 0) | (at > a.size - 1)
    if interpolation.coordinate != "tf_crop_and_resize" or not is_outside.any():
        return x
    type_ = node.builder.type_of(x)
    mask = is_outside.reshape(-1, *[1] * (len(type_.shape) - axis - 1))
    return node.add(
        "Where", node.constant(mask), node.scalar(interpolation.outside, type_.dtype), x
    )


def _weights(at: Array, a: Axis, interpolation: Interpolation) -> Array:
    """[size, count]: how much of each element goes where; those beyond the edge count as it."""
    if a.size * a.count > _MOST_WEIGHTS:
        reason = f"an axis of {a.size} to {a.count} with `{interpolation.coordinate}` is too long"
        raise Unsupported(reason, SMALLER)
    reach = 1 if interpolation.mode == "linear" else 2
    stretch = min(a.scale, 1.0) if interpolation.antialias else 1.0
    first = floor(-reach / stretch) + 1
    indices = (np.ceil(at) - 1)[:, None] + np.arange(first, 2 - first)
    distance = np.abs(indices - at[:, None]) * stretch
    if interpolation.mode == "linear":
        weights = np.maximum(1.0 - distance, 0.0)
    else:
        weights = _cubic(distance, interpolation.cubic_a)
    if interpolation.exclude_outside:
        weights = np.where((indices < 0) | (indices >= a.size), 0.0, weights)
    if interpolation.exclude_outside or interpolation.antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    matrix = np.zeros((a.size, a.count))
    columns = np.broadcast_to(np.arange(a.count)[:, None], indices.shape)
    np.add.at(matrix, (np.clip(indices, 0, a.size - 1).astype(np.int64), columns), weights)
    return matrix


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    found: Array = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    return found


def _weigh_axis(node: OnnxNode, x: int, axis: int, weights: Array) -> int:
    """A product along one axis."""
    type_ = node.builder.type_of(x)
    wide = "f64" if type_.dtype == "f64" else "f32"
    x = node.cast(x, wide)
    rank = len(type_.shape)
    if rank == 1:
        x, axis, rank = node.reshape(x, (1, *type_.shape)), 1, 2
    order = [i for i in range(rank) if i != axis] + [axis]
    matrix = node.constant(weights.astype(GRAPH_TYPES[wide].dtype))
    product = node.add("MatMul", node.transpose(x, order), matrix)
    product = node.cast(node.transpose(product, [order.index(i) for i in range(rank)]), type_.dtype)
    return product if len(type_.shape) > 1 else node.reshape(product, (weights.shape[1],))

"""Operations of ONNX that look between elements, at places that are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from types import MappingProxyType

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_CUBIC_A = -0.75
_MOST_ROIS = 256
_MOST_SAMPLES = 1 << 20  # of one region


@dataclass(frozen=True)
class Edge:
    """What lies beyond the ends of an axis."""

    size: int
    padding: str  # zeros, border or reflection
    low: float
    high: float

    def move_inside(self, at: Expr) -> Expr:
        """A coordinate moved inside, as far as the padding moves it."""
        if self.padding == "zeros":
            return at
        if self.padding == "border":
            is_out = at.is_("Lt", self.low) | at.is_("Gt", self.high)
            return is_out.choose(at.at_least(0.0).at_most(self.size - 1.0), at)
        return self._reflect(at)

    def _reflect(self, at: Expr) -> Expr:
        """Back and forth between both ends."""
        wide = self.high - self.low
        if wide == 0:
            return at * 0.0
        is_below, is_above = at.is_("Lt", self.low), at.is_("Gt", self.high)
        beyond = is_below.choose(self.low - at, at - self.high)
        turns = (beyond / wide).map("Floor")
        rest = beyond - turns * wide
        is_odd = (turns % 2.0).is_("Eq", 1.0)
        moved = (is_below ^ is_odd).choose(rest + self.low, self.high - rest)
        return (is_below | is_above).choose(moved, at)

    def index(self, place: Expr) -> tuple[Expr, Expr | None]:
        """The index at a whole place, and whether there is one."""
        is_there = None
        if self.padding == "zeros":
            is_there = place.is_("Ge", 0.0) & place.is_("Le", self.size - 1.0)
        elif self.padding == "reflection":
            place = self._reflect(place)
        return place.at_least(0.0).at_most(self.size - 1.0).to("i64"), is_there


def _nearest_neighbour(at: Expr) -> list[tuple[Expr, Expr | None]]:
    return [(at, None)]


def _linear_neighbours(at: Expr) -> list[tuple[Expr, Expr | None]]:
    below = at.map("Floor")
    part = at - below
    return [(below, 1.0 - part), (below + 1.0, part)]


def _cubic_neighbours(at: Expr) -> list[tuple[Expr, Expr | None]]:
    below, a = at.map("Floor"), _CUBIC_A
    part = at - below

    def near(t: Expr) -> Expr:
        return (t * (a + 2) - (a + 3)) * t * t + 1.0

    def far(t: Expr) -> Expr:
        return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a

    weights = (far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part))
    return [(below + float(i - 1), weight) for i, weight in enumerate(weights)]


# The whole places around a coordinate, and the weight of each.
_NEIGHBOURS: Mapping[str, Callable[[Expr], list[tuple[Expr, Expr | None]]]] = MappingProxyType(
    {"nearest": _nearest_neighbour, "linear": _linear_neighbours, "cubic": _cubic_neighbours}
)
_NAMES = MappingProxyType({"bilinear": "linear", "bicubic": "cubic"})  # before opset 20


def sample(x: Expr, places: Sequence[Expr], edges: Sequence[Edge], mode: str) -> Expr:
    """Elements [B, Q, C] of x [B, C, ..] at coordinates [B, Q], one tensor for each axis."""
    batch, channels, *dims = x.shape
    rank, count = len(dims), prod(dims)
    table = x.reshape(batch, channels, count).transpose(0, 2, 1).reshape(batch * count, channels)
    first = known_expr(x.node, np.arange(batch)[:, None] * count)
    around = [
        [(*edge.index(place), weight) for place, weight in _NEIGHBOURS[mode](at)]
        for at, edge in zip(places, edges, strict=True)
    ]
    strides = [prod(dims[axis + 1 :]) for axis in range(rank)]
    total: Expr | None = None
    for corner in product(*around):
        index, weight, is_there = first, None, None
        for (own, there, part), stride in zip(corner, strides, strict=True):
            index = index + own * stride
            weight = part if weight is None or part is None else weight * part
            is_there = there if is_there is None or there is None else is_there & there
        term = table.rows(index)
        if is_there is not None:
            term = is_there.reshape(*index.shape, 1).choose(term, 0.0)
        if weight is not None:
            term = term * weight.to(x.dtype).reshape(*index.shape, 1)
        total = term if total is None else total + term
    assert total is not None
    return total


@handles("GridSample")
def grid_sample(node: OnnxNode) -> int:
    """Elements at coordinates between -1 and 1, the last axis first."""
    dims, shape = node.shape(0), node.shape(1)
    rank = len(dims) - 2
    if rank < 1 or len(shape) != rank + 2 or shape[-1] != rank or shape[0] != dims[0]:
        raise Unsound(f"a grid of shape {list(shape)} does not go with {list(dims)}")
    given = str(node.attribute("mode", "linear"))
    mode, padding = _NAMES.get(given, given), str(node.attribute("padding_mode", "zeros"))
    if mode not in _NEIGHBOURS or padding not in ("zeros", "border", "reflection"):
        raise Unsound(f"`mode` is {backquote(given)}, `padding_mode` is {backquote(padding)}")
    is_aligned = bool(node.attribute("align_corners", 0))
    grid = operand(node, 1).to("f64" if node.type(1).dtype == "f64" else "f32")
    flat = grid.reshape(dims[0], prod(shape[1:-1]), rank)
    edges = [_edge(size, padding, is_aligned=is_aligned) for size in dims[2:]]
    places = []
    for axis, (size, edge) in enumerate(zip(dims[2:], edges, strict=True)):
        own = known_expr(node, np.array(rank - 1 - axis, np.int64))
        result = node.add("GatherAxis", flat.value, own.value, axis=2)
        at = _denormalise(Expr(node, result), size, is_aligned=is_aligned)
        if mode == "cubic" and padding == "border":
            places.append(at)  # its neighbours are moved inside, not itself: runtimes have it so
        else:
            places.append(edge.move_inside(at.map("Round") if mode == "nearest" else at))
    x, own_type = _floats(node, mode)
    samples = sample(x, places, edges, mode)
    return samples.transpose(0, 2, 1).reshape(*dims[:2], *shape[1:-1]).to(own_type).value


def _floats(node: OnnxNode, mode: str) -> tuple[Expr, str]:
    """The tensor in a type that is wide enough, and the type that it had."""
    own = node.type(0).dtype
    x = operand(node, 0)
    if own in ("f16", "bf16"):
        return x.to("f32"), own
    if mode != "nearest" and own not in ("f32", "f64"):
        raise Unsupported(f"it interpolates {own}, expected floats", "cast to float first")
    return x, own


def _edge(size: int, padding: str, *, is_aligned: bool) -> Edge:
    low, high = (0.0, size - 1.0) if is_aligned else (-0.5, size - 0.5)
    return Edge(size, padding, low, high)


def _denormalise(at: Expr, size: int, *, is_aligned: bool) -> Expr:
    if is_aligned:
        return (at + 1.0) / 2.0 * (size - 1.0)
    return ((at + 1.0) * float(size) - 1.0) / 2.0


@handles("AffineGrid")
def affine_grid(node: OnnxNode) -> int:
    """Coordinates between -1 and 1, turned and moved."""
    sizes = node.ints("size", 1) or ()
    theta = node.shape(0)
    rank = len(sizes) - 2
    if rank not in (2, 3) or theta != (sizes[0], rank, rank + 1) or min(sizes) < 1:
        raise Unsound(f"`theta` of shape {list(theta)} does not go with sizes {list(sizes)}")
    if prod(sizes) > _MOST_SAMPLES << 4:
        raise Unsupported(f"a grid of {list(sizes[2:])} is too large to know", SMALLER)
    lines = [
        _normalised_positions(size, is_aligned=bool(node.attribute("align_corners", 0)))
        for size in sizes[2:]
    ]
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(sizes[2:])]).reshape(rank + 1, -1)
    dtype = node.type(0).dtype
    grid = node.add("MatMul", node.value(0), known_expr(node, base, dtype).value)
    return Expr(node, grid).transpose(0, 2, 1).reshape(sizes[0], *sizes[2:], rank).value


def _normalised_positions(size: int, *, is_aligned: bool) -> Array:
    if is_aligned:
        return np.linspace(-1.0, 1.0, size)
    return (2 * np.arange(size) + 1) / size - 1


@handles("RoiAlign")
def roi_align(node: OnnxNode) -> int:
    """The mean or largest of samples in the bins of regions."""
    ratio = int(node.attribute("sampling_ratio", 0))
    regions = operand(node, 1).to("f32")
    batches = operand(node, 2).to("i64")
    if len(node.shape(0)) != 4 or len(regions.shape) != 2 or regions.shape[1] != 4:
        raise Unsound(f"shapes {list(node.shape(0))} and {list(regions.shape)}")
    if ratio > 0:
        _require_few(node, (ratio, ratio))
        return _align_regions(node, regions, batches, (ratio, ratio))
    boxes = node.known(1)
    if boxes is None:
        reason = "`sampling_ratio` is 0: how many samples there are depends on the regions"
        raise Unsupported(reason, "set `sampling_ratio` above 0, or bind the regions")
    if len(boxes) > _MOST_ROIS:
        reason = f"there are {len(boxes)} regions with samples of their own number"
        raise Unsupported(reason, "set `sampling_ratio` above 0")
    parts = []
    for at, box in enumerate(boxes.astype(np.float32)):
        one = known_expr(node, np.array([at], np.int64))
        counts = _sample_counts(node, box)
        parts.append(_align_regions(node, regions.rows(one), batches.rows(one), counts))
    return parts[0] if len(parts) == 1 else node.add("Concat", *parts, axis=0)


def _roi(node: OnnxNode) -> tuple[int, int, float, bool]:
    """Height and width of the result, the scale, and whether centres are at halves."""
    mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    is_half = node.opset >= 16 and mode == "half_pixel"
    sizes = int(node.attribute("output_height", 1)), int(node.attribute("output_width", 1))
    if min(sizes) < 1 or prod(sizes) > _MOST_SAMPLES:
        raise Unsound(f"the result has the size {list(sizes)}")
    return *sizes, float(node.attribute("spatial_scale", 1.0)), is_half


def _require_few(node: OnnxNode, counts: Sequence[int]) -> None:
    high, wide, *_ = _roi(node)
    if prod(counts) * high * wide > _MOST_SAMPLES:
        reason = f"a region has {list(counts)} samples for each of {high * wide} bins"
        raise Unsupported(f"{reason}, more than {_MOST_SAMPLES:,} in all", SMALLER)


def _sample_counts(node: OnnxNode, box: Array) -> tuple[int, int]:
    *sizes, scale, is_half = _roi(node)
    left, top, right, bottom = (float(v) * scale for v in box)
    spans = (bottom - top, right - left)
    counts = [
        ceil((span if is_half else max(span, 1.0)) / size)
        for span, size in zip(spans, sizes, strict=True)
    ]
    if min(counts) < 1:
        reason = f"the region {box.tolist()} has {counts} samples for each bin"
        raise Unsupported(reason, "set `sampling_ratio` above 0")
    _require_few(node, counts)
    return counts[0], counts[1]


def _align_regions(node: OnnxNode, regions: Expr, batches: Expr, counts: tuple[int, int]) -> int:
    """Regions [R, 4] with the same number of samples."""
    batch, channels, height, width = node.shape(0)
    high, wide, scale, is_half = _roi(node)
    x, own_type = _floats(node, "linear")
    table = x.transpose(0, 2, 3, 1).reshape(batch * height * width, channels)
    columns = (regions * scale - (0.5 if is_half else 0.0)).transpose(1, 0)
    left, top, right, bottom = (
        columns.rows(known_expr(node, np.array(i, np.int64))).reshape(regions.shape[0], 1)
        for i in range(4)
    )
    ys = _samples(top, bottom, high, counts[0], is_half=is_half)
    xs = _samples(left, right, wide, counts[1], is_half=is_half)
    total: Expr | None = None
    is_mean = str(node.attribute("mode", "avg")) == "avg"
    first = batches.reshape(regions.shape[0], 1, 1) * (height * width)
    rows, in_y = _roi_corners(ys, height)
    lines, in_x = _roi_corners(xs, width)
    shape = (regions.shape[0], high, counts[0], wide, counts[1], channels)
    is_in = in_y.reshape(*ys.shape, 1) & in_x.reshape(xs.shape[0], 1, xs.shape[1])
    for (row, by), (line, bx) in product(rows, lines):
        index = first + row.reshape(*ys.shape, 1) * width
        index = index + line.reshape(xs.shape[0], 1, xs.shape[1])
        weight = by.reshape(*ys.shape, 1) * bx.reshape(xs.shape[0], 1, xs.shape[1])
        weight = is_in.choose(weight, 0.0).to(x.dtype)
        term = table.rows(index) * weight.reshape(*weight.shape, 1)
        if total is None:
            total = term
        else:
            # The largest is taken of weighted corners, not of samples: ONNX has it so.
            total = total + term if is_mean else total.at_least(term)
    assert total is not None
    bins = total.reshape(*shape).value
    given = {"axes": (2, 4), "keepdims": False}
    aligned = (
        node.add("Mean", bins, **given) if is_mean else node.add("Reduce", bins, op="Max", **given)
    )
    return Expr(node, aligned).transpose(0, 3, 1, 2).to(own_type).value


def _samples(start: Expr, end: Expr, bins: int, count: int, *, is_half: bool) -> Expr:
    """Coordinates [R, bins * count] along one axis."""
    span = end - start if is_half else (end - start).at_least(1.0)
    places = np.arange(bins)[:, None] + (np.arange(count) + 0.5) / count
    return start + span / float(bins) * known_expr(start.node, places.reshape(1, -1), "f32")


def _roi_corners(at: Expr, size: int) -> tuple[list[tuple[Expr, Expr]], Expr]:
    """Both neighbours of coordinates with their weights, and whether they are near the plane."""
    is_in = at.is_("Ge", -1.0) & at.is_("Le", float(size))
    inside = at.at_least(0.0).at_most(size - 1.0)
    low = inside.map("Floor")
    part = inside - low
    high = (low + 1.0).at_most(size - 1.0)
    return [(low.to("i64"), 1.0 - part), (high.to("i64"), part)], is_in

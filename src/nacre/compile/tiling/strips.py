"""Layers whose tiles are too wide for L1, cut into narrower ones along a further axis.

A tile has some rows and some columns, and is whole along every other axis: the width of an image,
one side of a transposition. Where that does not fit, a layer becomes several, each of which makes a
strip of the result. Strips that differ in their place only are the images of one layer, which runs
over them in a loop; those at the border see padding and stand by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from nacre.compile.geometry import Window
from nacre.compile.options import Options
from nacre.compile.partition.layers import Access, Axes, Layer, Local
from nacre.compile.partition.stage import Partition
from nacre.compile.tiling.candidates import equal_parts
from nacre.compile.tiling.layer_parts import number_parts, split_by_groups, with_accesses
from nacre.compile.tiling.residency import Residency
from nacre.compile.tiling.stage import best_tiling, fits

_MOST_PARTS = 1000  # layers that one becomes: more are no plan that anybody waits for
_MOST_TRIED = 12  # widths that fit, of which the cheapest is taken
_GAIN = 0.9  # what fits as it is, is cut where it then takes less than this part of the time


@dataclass(frozen=True)
class Strip:
    """A part of an axis: of the result, and of what a window that slides along it reads."""

    first: int
    count: int
    x_first: int
    x_count: int
    sides: tuple[int, int] = (0, 0)  # padding


@dataclass(frozen=True)
class StripRun:
    """Strips that follow each other and differ in their place only."""

    strip: Strip  # the first
    count: int = 1
    x_step: int = 0  # from the input of one to that of the next


@dataclass(frozen=True)
class Axis:
    """An axis that tiles do not cut: its size, and its place in every local value that has it."""

    size: int
    axis_of: Mapping[int, int]  # by local, which of its axes it is
    sliding: int | None = None  # the local over which a window slides along this axis
    is_columns: bool = False  # its name is `columns`, which the layer's tiles leave whole

    def runs(self, layer: Layer, count: int) -> list[StripRun] | None:
        """Strips of a width, the last may be narrower; None where one sees padding only.

        There may be millions: those that see no padding are counted, the others looked at.
        """
        window = layer.window if self.sliding is not None else None
        if window is None or self.sliding is None:
            rest = self.size % count
            first = self.size - rest
            last = [StripRun(Strip(first, rest, first, rest))] if rest else []
            return [StripRun(Strip(0, count, 0, count), self.size // count, count), *last]
        width = layer.locals[self.sliding].axes[self.axis_of[self.sliding]]
        assert isinstance(width, int)
        total = -(-self.size // count)
        inside = inner_strips(window, width, self.size, count)
        if total - len(inside) > _MOST_PARTS:
            return None

        def at(number: int) -> StripRun:
            first = number * count
            return StripRun(strip_of(window, width, first, min(count, self.size - first)))

        runs = [at(number) for number in range(inside.start)]
        if inside:
            inner = at(inside.start).strip
            runs.append(StripRun(inner, len(inside), count * window.strides[1]))
        runs += [at(number) for number in range(inside.stop, total)]
        return None if any(run.strip.x_count <= 0 for run in runs) else runs


def inner_strips(window: Window, width: int, size: int, count: int) -> range:
    """Which strips of a width have it in full, and see no padding."""
    step = count * window.strides[1]
    reach = (count - 1) * window.strides[1] + window.dilations[1] * (window.kernel[1] - 1) + 1
    total = -(-size // count)
    first = min(-(-window.sides[0] // step), total)
    stop = min(size // count, (width + window.sides[0] - reach) // step + 1)
    return range(first, max(first, stop))


def strip_of(window: Window, width: int, first: int, count: int) -> Strip:
    """A strip of some positions of a window, and what of the input they see."""
    stride = window.strides[1]
    start = first * stride - window.sides[0]
    end = start + (count - 1) * stride + window.dilations[1] * (window.kernel[1] - 1) + 1
    left, right = max(0, -start), max(0, end - width)
    return Strip(first, count, start + left, end - right - start - left, (left, right))


def cut_to_fit(partition: Partition, options: Options) -> Partition:
    """The same work in layers that fit, as far as cutting them can make them fit."""
    cutter = _LayerCutter(partition, options)
    layers = tuple(part for layer in partition.layers for part in cutter.parts(layer))
    return replace(partition, layers=layers)


class _LayerCutter:
    """Cuts layers for a device."""

    def __init__(self, partition: Partition, options: Options) -> None:
        self._partition, self._options = partition, options

    def parts(self, layer: Layer) -> list[Layer]:
        """A layer as it is, or in strips."""
        if layer.main == "copy" or _transposes_tiles(layer):
            return [layer]
        for narrow_columns in (False, True):  # narrow blocks of columns are the last resort
            if fits(layer, self._options, narrow_columns=narrow_columns):
                return self._cheaper_strips(layer, narrow_columns) or [layer]
            parts = self._cheapest_cut(layer, narrow_columns)
            if parts is not None:
                return parts
        return [layer]

    def _cheaper_strips(self, layer: Layer, narrow_columns: bool) -> list[Layer] | None:
        """A layer in strips where whole tiles fit, but are of a few rows or stand alone."""
        if not (layer.main == "turn" or (layer.window is not None and layer.rows == 1)):
            return None
        own = self._cycles(layer, narrow_columns)
        found = [self._cheapest(make, size, narrow_columns) for make, size in _axes(layer)]
        best = min((way for way in found if way is not None), key=lambda way: way[0], default=None)
        return best[1] if best is not None and best[0] < _GAIN * own else None

    def _cycles(self, layer: Layer, narrow_columns: bool) -> float:
        """About how long a layer takes that fits."""
        found = best_tiling(
            layer, self._partition, self._options, Residency(), narrow_columns=narrow_columns
        )
        return float("inf") if found is None else found[0]

    def _cheapest_cut(self, layer: Layer, narrow_columns: bool) -> list[Layer] | None:
        """The cheapest way to cut a layer along one axis, or along several."""
        axes = [*_axes(layer)]
        candidates = [self._cheapest(make, size, narrow_columns) for make, size in axes]
        ways = [way for way in candidates if way is not None]
        if ways:
            return min(ways, key=lambda way: way[0])[1]
        for make, size in axes:  # as thin as can be along one, then along another
            thin = make(1) if size > 1 else None
            parts = [self._cheapest_cut(part, narrow_columns) for part in thin or ()]
            if thin and all(part is not None for part in parts):
                return [layer for part in parts for layer in part or ()]
        return None

    def _cheapest(
        self, make: Callable[[int], list[Layer] | None], size: int, narrow_columns: bool
    ) -> tuple[float, list[Layer]] | None:
        best: tuple[float, list[Layer]] | None = None
        tried = 0
        for count in equal_parts(size)[1:]:
            layers = make(count)
            if layers is None or not all(
                fits(x, self._options, narrow_columns=narrow_columns) for x in layers
            ):
                continue
            total = sum(self._cycles(layer, narrow_columns) for layer in layers)
            if best is None or total < best[0]:
                best = (total, layers)
            tried += 1
            if tried == _MOST_TRIED:
                break
        return best


def _transposes_tiles(layer: Layer) -> bool:
    """Whether a transposition runs in its tiles: operands then have axes of their own."""
    return layer.main != "turn" and any(step.nem == "transpose" for step in layer.steps)


# Along which axes


def _axes(layer: Layer) -> Iterator[tuple[Callable[[int], list[Layer] | None], int]]:
    """Ways to cut a layer: parts of about a size, and the largest size."""
    window = layer.window
    if window is not None and window.groups > 1:
        yield lambda count: split_by_groups(layer, count), window.groups
    for axis in _AXES.get(layer.main, _no_axes)(layer):
        if axis.size > 1:
            yield _strip_maker(layer, axis), axis.size


def _strip_maker(layer: Layer, axis: Axis) -> Callable[[int], list[Layer] | None]:
    return lambda count: _cut_into_strips(layer, axis, count)


def _no_axes(layer: Layer) -> list[Axis]:
    return []


def _window_axes(layer: Layer) -> list[Axis]:
    """The width of images."""
    x, result = layer.steps[0].inputs[0].local, layer.steps[0].output.local
    axes = layer.locals[result].axes
    width = axes[2]
    assert isinstance(width, int)
    weights = {operand.local for operand in layer.steps[0].inputs[1:]}
    axis_of = {
        local: 2
        for local, value in enumerate(layer.locals)
        if local == x
        or (local not in weights and len(value.axes) == len(axes) and value.axes[2] == width)
    }
    return [Axis(width, axis_of, sliding=x)]


def _map_axes(layer: Layer) -> list[Axis]:
    """Axes between rows and columns."""
    axes = layer.results[0].access.axes
    return [
        Axis(size, {
            local: at
            for local, value in enumerate(layer.locals)
            if len(value.axes) == len(axes) and value.axes[at] == size
        })
        for at, size in enumerate(axes)
        if isinstance(size, int) and size > 1
    ]  # fmt: skip


def _transpose_axes(layer: Layer) -> list[Axis]:
    """Both runs of axes beside the rows: [A, rows, D] becomes [rows, A, D]."""
    a, _, d = (int(n) if isinstance(n, int) else 0 for n in layer.operands[0].axes)
    result = layer.results[0].local
    return [Axis(a, {0: 0, result: 1}), Axis(d, {0: 2, result: 2})]


def _gather_axes(layer: Layer) -> list[Axis]:
    """The elements of a row of the table."""
    table, result = layer.steps[0].inputs[0].local, layer.results[0].local
    return [Axis(layer.columns, {table: 1, result: 1}, is_columns=True)]


_AXES: Mapping[str, Callable[[Layer], list[Axis]]] = {
    "window": _window_axes,
    "pool": _window_axes,
    "map": _map_axes,
    "turn": _transpose_axes,
    "gather": _gather_axes,
}


# Layers of strips


def _cut_into_strips(layer: Layer, axis: Axis, count: int) -> list[Layer] | None:
    runs = axis.runs(layer, count)
    if runs is None:
        return None
    images, total = layer.images, sum(run.count for run in runs)
    if min(total, images * len(runs)) > _MOST_PARTS:
        return None
    if images > 1 and total > images * len(runs):
        alone = (_single_image(layer, number) for number in range(images))
        parts = [_strip_layer(one, axis, run) for one in alone for run in runs]
    elif images > 1:
        parts = [_strip_layer(layer, axis, one) for run in runs for one in _single_strips(run)]
    else:
        parts = [_strip_layer(layer, axis, run) for run in runs]
    return number_parts(layer, parts)


def _single_strips(run: StripRun) -> Iterator[StripRun]:
    """The strips of a run one by one."""
    strip = run.strip
    for number in range(run.count):
        first, x_first = number * strip.count, number * run.x_step
        moved = replace(strip, first=strip.first + first, x_first=strip.x_first + x_first)
        yield StripRun(moved)


def _single_image(layer: Layer, number: int) -> Layer:
    """A layer of one image of several."""

    def move(access: Access) -> Access:
        return replace(access, offset=access.offset + number * access.image, image=0)

    return replace(with_accesses(layer, lambda _, access: move(access)),
                   images=1, macs=layer.macs // layer.images)  # fmt: skip


def _strip_layer(layer: Layer, axis: Axis, run: StripRun) -> Layer:
    """Strips of one width; several are images, one after the other."""
    strip, images, x_step = run.strip, run.count, run.x_step

    def move(local: int, access: Access) -> Access:
        at = axis.axis_of.get(local)
        if at is None:
            return access
        slides = local == axis.sliding
        first, step = (strip.x_first, x_step) if slides else (strip.first, strip.count)
        axes = access.axes
        if isinstance(axes[at], int):
            axes = (*axes[:at], strip.x_count if slides else strip.count, *axes[at + 1 :])
        offset = access.offset + first * access.strides[at]
        image = access.image if images == 1 else step * access.strides[at]
        return replace(access, axes=axes, offset=offset, image=image)

    part = with_accesses(layer, move)
    locals_ = tuple(
        _narrow_local(value, local, axis, strip) for local, value in enumerate(layer.locals)
    )
    window = layer.window
    if window is not None and axis.sliding is not None:
        window = replace(window, sides=strip.sides)
    macs = layer.macs * strip.count * images // axis.size
    columns = strip.count if axis.is_columns else layer.columns
    return replace(
        part,
        locals=locals_,
        window=window,
        macs=macs,
        columns=columns,
        images=images if images > 1 else layer.images,
    )


def _narrow_local(value: Local, local: int, axis: Axis, strip: Strip) -> Local:
    at = axis.axis_of.get(local)
    if at is None or not isinstance(value.axes[at], int):
        return value
    count = strip.x_count if local == axis.sliding else strip.count
    axes: Axes = (*value.axes[:at], count, *value.axes[at + 1 :])
    return replace(value, axes=axes)

"""Transpositions in the tiles of the layer beside them, so that they overlap with its work.

A network whose channels come first is turned at its border: its input before the first window, its
output behind the last product. Both are done tile by tile: a tile's part of the input is loaded as
it lies, channel by channel, and turned in L1; a tile of the result is turned before it leaves. Rows
that two tiles of a window see are turned twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from nacre.compile.partition.layers import Access, Axes, Axis, Layer, Local, Operand, Result, Step

_LAYOUTS = {2: "MN", 3: "ABC"}  # by the number of axes
_PRODUCTS = frozenset({"window", "linear", "pool"})


def fuses_transpose(first: Layer, second: Layer) -> bool:
    """Whether one of two layers is a transposition that may run in the tiles of the other."""
    return (first.main == "turn" and second.main in _PRODUCTS) or (
        first.main in _PRODUCTS and second.main == "turn"
    )


def fuse_transpose(first: Layer, second: Layer) -> Layer | None:
    """Two layers of which one is a transposition as one; None where that has no form."""
    if first.main == "turn":
        return _fuse_transpose_before(first, second)
    return _fuse_transpose_behind(first, second)


@dataclass(frozen=True)
class _Pixels:
    """How a layer sees a tensor: rows of pixels, and channels of each."""

    axes: Axes  # of the pixels in a tile: ("rows",), or ("rows", width)
    count: int  # in a picture
    channels: Axis
    pixel: int  # strides
    channel: int

    @staticmethod
    def of(access: Access, height: int, columns: int) -> _Pixels | None:
        """Of a tensor whose last axis are channels; None where pixels are not evenly apart."""
        lead = access.axes[:-1]
        kept = [(axis, s) for axis, s in zip(lead, access.strides, strict=False) if axis != 1]
        if not kept or kept[0][0] not in ("rows", "x_rows") or len(kept) > 2:
            return None
        width = prod(axis for axis, _ in kept if isinstance(axis, int))
        if not all(isinstance(axis, int) for axis, _ in kept[1:]):
            return None
        pixel, row = kept[-1][1], kept[0][1]
        if width > 1 and row != width * pixel:
            return None
        last = access.axes[-1]
        channels = columns if last == "columns" else last
        axes = tuple(axis for axis, _ in kept)
        if not isinstance(channels, int) or height < 1:
            return None
        return _Pixels(axes, height * width, last, pixel, access.strides[-1])

    @property
    def width(self) -> int:
        """Pixels of a row."""
        return prod(axis for axis in self.axes if isinstance(axis, int))

    def strides(self, pixel: int) -> tuple[int, ...]:
        """Strides of the pixels of a tile in a tensor in which they are so far apart."""
        return (self.width * pixel, pixel) if len(self.axes) == 2 else (pixel,)


def _fuse_transpose_behind(first: Layer, turn: Layer) -> Layer | None:
    """A layer whose result leaves its tiles channel by channel."""
    result, given = first.results[0], turn.operands[0]
    seen = _Pixels.of(result.access, first.rows, first.columns)
    if seen is None or not _is_plain(turn) or len(turn.operands) != 1 or seen.axes[0] != "rows":
        return None
    # [pixels, channels, 1] as the transposition reads it
    if given.axes != (seen.count, "rows", 1) or turn.rows != first.columns:
        return None
    if given.strides[:2] != (seen.pixel, seen.channel) or not _is_same_place(first, turn):
        return None
    target = turn.results[0].access
    channel, pixel, _ = target.strides
    axes: Axes = (seen.channels, *seen.axes)
    access = replace(target, axes=axes, strides=(channel, *seen.strides(pixel)))
    local = len(first.locals)
    last, rank = turn.steps[0], len(axes)
    step = replace(
        last,
        inputs=(_as_matrix(last.inputs[0], result.local, (*axes[1:], axes[0])),),
        output=replace(last.output, local=local),
        attributes={"perm": (rank - 1, *range(rank - 1))},
    )
    return replace(
        _with_names_of_both(first, turn, first),
        locals=(*first.locals, Local(axes, turn.locals[last.output.local].elem)),
        steps=(*first.steps, step),
        results=(Result(local, turn.results[0].value, access),),
        makes=(*first.makes, *turn.makes),
    )


def _fuse_transpose_before(turn: Layer, second: Layer) -> Layer | None:
    """A layer that loads its operand channel by channel and turns it in its tiles."""
    made = turn.results[0].access
    x = second.steps[second.sliding].inputs[0].local
    if x >= len(second.operands) or second.operands[x].tensor != made.tensor:
        return None
    wanted = second.operands[x]
    window = second.window
    height = window.in_rows if window is not None and "x_rows" in wanted.axes else second.rows
    seen = _Pixels.of(wanted, height, second.columns)
    if seen is None or not _is_plain(turn) or not isinstance(seen.channels, int):
        return None
    if made.axes != ("rows", seen.channels, 1) or turn.rows != seen.count:
        return None
    if made.strides[:2] != (seen.pixel, seen.channel) or not _is_same_place(turn, second, x):
        return None
    given = turn.operands[0]
    channel, pixel, _ = given.strides
    axes: Axes = (seen.channels, *seen.axes)
    access = replace(given, axes=axes, strides=(channel, *seen.strides(pixel)))
    local, first, rank = len(second.locals), turn.steps[0], len(axes)
    old = second.locals[x]
    step = replace(
        first,
        inputs=(replace(first.inputs[0], local=x),),
        output=_as_matrix(first.output, local, (*axes[1:], axes[0])),
        attributes={"perm": (*range(1, rank), 0)},
    )
    steps = tuple(_redirect_reads(one, x, local) for one in second.steps)
    operands = tuple(access if at == x else a for at, a in enumerate(second.operands))
    locals_ = [*second.locals, old]
    locals_[x] = Local(axes, old.elem)
    return replace(
        _with_names_of_both(turn, second, second),
        operands=operands,
        locals=tuple(locals_),
        steps=(step, *steps),
        sliding=second.sliding + 1,
        makes=(*turn.makes, *second.makes),
    )


def _as_matrix(operand: Operand, local: int, axes: Axes) -> Operand:
    """A local value of pixels and channels as a transposition sees it, without an axis of images.

    The layout tells its name apart from that of the value as its own layer sees it.
    """
    return replace(operand, local=local, axes=axes, layout=_LAYOUTS[len(axes)])


def _is_plain(turn: Layer) -> bool:
    """Whether a layer does nothing but turn one tensor."""
    return len(turn.steps) == 1 and len(turn.results) == 1 and turn.columns == 1


def _is_same_place(first: Layer, second: Layer, x: int = 0) -> bool:
    """Whether two layers see the same pictures of the tensor between them."""
    written, read = first.results[0].access, second.operands[x]
    if written.tensor != read.tensor or written.offset != read.offset:
        return False
    return first.images == second.images and (first.images == 1 or written.image == read.image)


def _redirect_reads(step: Step, old: int, new: int) -> Step:
    """A step that reads another local value, as it read the old one."""

    def replace_local(operand: Operand) -> Operand:
        return replace(operand, local=new) if operand.local == old else operand

    return replace(
        step, inputs=tuple(map(replace_local, step.inputs)), output=replace_local(step.output)
    )


def _with_names_of_both(first: Layer, second: Layer, host: Layer) -> Layer:
    """The host under the names of both."""
    return replace(
        host,
        name=second.name,
        operations=(*first.operations, *second.operations),
        nodes=tuple(dict.fromkeys((*first.nodes, *second.nodes))),
        members=(*(first.members or (first.name,)), second.name),
    )

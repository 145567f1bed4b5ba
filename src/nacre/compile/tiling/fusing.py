"""Layers that run together, tile by tile: what one makes is used before it ever leaves L1.

A product of single pixels needs nothing but the pixels of its tile. So it can run in the tiles of
the layer before it, or in those of a window behind it, whose tiles then compute the rows that two
of them see twice. Both layers give up blocks of columns for that, and their weights lie in L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nacre.compile.partition.layers import (
    Access,
    Axes,
    Axis,
    Layer,
    Local,
    PackedWeights,
    Result,
    Step,
)
from nacre.compile.partition.tensors import Tensor
from nacre.compile.partition.views import dense
from nacre.compile.tiling.fusing_transposes import fuse_transpose, fuses_transpose

_ONE_PLACE = {"pads": (0, 0, 0, 0), "strides": (1, 1), "dilations": (1, 1), "groups": 1}

Move = Callable[[Access], Access | None]


@dataclass(frozen=True, eq=False)
class JoinedLayer:
    """Two layers as one, and the tensors of the weights that are now operands."""

    layer: Layer
    tensors: dict[int, Tensor]


def join_layers(first: Layer, second: Layer, number: int) -> JoinedLayer | None:
    """Two layers as one, new tensors numbered down from a number; None where that has no form."""
    if len(first.results) != 1 or not first.steps or not second.steps or second.members:
        return None
    tensor = first.results[0].access.tensor
    if sum(access.tensor == tensor for access in second.operands) != 1:
        return None
    if fuses_transpose(first, second):
        layer = fuse_transpose(first, second)
        return None if layer is None else JoinedLayer(layer, {})
    if second.main == "linear" and first.main in ("window", "linear"):
        return _join_behind(first, second, number)
    if first.main == "linear" and second.main == "window" and not first.members:
        return _join_before(first, second, number)
    return None


def _join_behind(first: Layer, second: Layer, number: int) -> JoinedLayer | None:
    """A product in the tiles of the layer that makes its operand."""
    result, x = first.results[0], second.main_step.inputs[0].local
    frame = _Frame.of(first, result.access)
    if frame is None or second.window is not None:
        return None
    move = frame.moves(second)
    if not _is_same(move(second.operands[x]), result.access, first.columns):
        return None
    joiner = _LayerJoiner(first, number, frame, move)
    return joiner.layer(second, {x: result.local}, is_behind=True)


def _join_before(first: Layer, second: Layer, number: int) -> JoinedLayer | None:
    """A product in the tiles of the window that reads it."""
    result, x = first.results[0], second.steps[second.sliding].inputs[0].local
    if x >= len(second.operands) or _count_uses(second, x) > 1 or not _reads_every_row(second):
        return None
    frame = _Frame.of(second, second.operands[x])
    if frame is None or len(frame.lead) != 3:
        return None
    move = frame.moves(first)
    access = second.operands[x]
    if not _is_same(move(result.access), access, first.columns):
        return None
    joiner = _LayerJoiner(_without_operand(second, x), number, frame, move)
    return joiner.layer(first, {}, is_behind=False, gives=result.local)


@dataclass(frozen=True)
class _Frame:
    """The axes of pixels in a layer's tiles, and how many of them a picture has."""

    lead: Axes  # before the columns: ("rows",), or (1, "rows", width)
    images: int
    height: int  # of a picture: rows that tiles cut

    @staticmethod
    def of(layer: Layer, access: Access) -> _Frame | None:
        """The frame in which a layer reads or writes a tensor."""
        lead = access.axes[:-1]
        names = [axis for axis in lead if not isinstance(axis, int)]
        if len(names) != 1 or len(lead) not in (1, 3) or lead[0] not in (1, *names):
            return None
        height = layer.rows if names == ["rows"] else layer.window.in_rows if layer.window else 0
        return _Frame(lead, layer.images, height)

    @property
    def width(self) -> int:
        """Pixels of a row."""
        return prod(axis for axis in self.lead if isinstance(axis, int))

    def axes(self, axes: Axes, columns: int) -> Axes | None:
        """The axes of a matrix of pixels and columns; columns are not cut any more."""
        if len(axes) == 1:
            return (columns,) if axes[0] == "columns" else axes
        if len(axes) != 2 or axes[0] not in ("rows", 1):
            return None
        last: Axis = columns if axes[1] == "columns" else axes[1]
        return (*(self.lead if axes[0] == "rows" else (1,) * len(self.lead)), last)

    def moves(self, layer: Layer) -> Move:
        """How the tensors of a layer of pixels lie along the frame."""

        def move(access: Access) -> Access | None:
            axes = self.axes(access.axes, layer.columns)
            if axes is None or len(axes) == 1:
                return None if axes is None else replace(access, axes=axes)
            image = self._image_stride(access, layer)
            if image is None:
                return None
            row, column = access.strides
            lead = (row,) if len(self.lead) == 1 else (0, row * self.width, row)
            return replace(access, axes=axes, strides=(*lead, column), image=image)

        return move

    def _image_stride(self, access: Access, layer: Layer) -> int | None:
        """From one picture to the next; None where the pictures are not those of the frame."""
        pixels = self.height * self.width
        if layer.images == self.images and layer.rows == pixels:
            return access.image
        if layer.images == 1 and layer.rows == self.images * pixels:
            return pixels * access.strides[0]
        return None


class _LayerJoiner:
    """Puts the steps of a layer of pixels into the tiles of another."""

    def __init__(self, host: Layer, number: int, frame: _Frame, move: Move) -> None:
        self._host, self._number, self._frame, self._move = host, number, frame, move
        self._operands = list(host.operands)
        self._new: list[Local] = []
        self._tensors: dict[int, Tensor] = {}
        self._of: dict[int, int] = {}  # locals of the guest; those below 0 are numbered at the end

    def layer(
        self, guest: Layer, known: dict[int, int], *, is_behind: bool, gives: int | None = None
    ) -> JoinedLayer | None:
        """The host with the guest's steps behind its own, or before them."""
        host = self._host
        first = len(host.operands)
        reshapes = any(o.axes for step in guest.steps for o in (*step.inputs, step.output))
        packed = guest.packed
        if packed is None or packed.groups or reshapes or not self._load(guest, known):
            return None
        extra = len(self._operands) - first
        count = len(host.locals) + extra

        def in_host(local: int) -> int:
            if local < 0:  # what `_without_operand` left open: the guest's result
                return in_guest(gives if gives is not None else local)
            return local if local < first else local + extra

        def in_guest(local: int) -> int:
            if local in known:
                return in_host(known[local])
            at = self._of[local]
            return at if at >= 0 else count - 1 - at

        fresh = [Local(a.axes, a.elem) for a in self._operands[first:]]
        locals_ = (*host.locals[:first], *fresh, *host.locals[first:], *self._new)
        own = tuple(_renumber(step, in_host) for step in host.steps)
        theirs = tuple(
            _renumber(self._step(step, at == 0), in_guest) for at, step in enumerate(guest.steps)
        )
        leaving = (
            self._results(guest, in_guest)
            if is_behind
            else _renumber_results(host.results, in_host)
        )
        if leaving is None:
            return None
        steps = (*own, *theirs) if is_behind else (*theirs, *own)
        pair = (host, guest) if is_behind else (guest, host)
        return JoinedLayer(
            replace(
                host,
                name=pair[1].name,
                operations=(*pair[0].operations, *pair[1].operations),
                cuts_columns=False,
                operands=tuple(self._operands),
                locals=tuple(locals_),
                steps=steps,
                results=leaving,
                sliding=host.sliding + (0 if is_behind else len(theirs)),
                macs=host.macs + guest.macs,
                makes=(*pair[0].makes, *pair[1].makes),
                nodes=tuple(dict.fromkeys((*pair[0].nodes, *pair[1].nodes))),
                members=(*(pair[0].members or (pair[0].name,)), pair[1].name),
            ),
            self._tensors,
        )

    def _load(self, guest: Layer, known: dict[int, int]) -> bool:
        """Operands, weights and all other values of the guest; whether they have a form."""
        packed = guest.packed
        assert packed is not None
        count = len(guest.operands)
        for local, access in enumerate(guest.operands):
            if local in known:
                continue
            own = self._move(access)
            if own is None or access.stays:
                return False
            self._of[local] = self._operand(own)
        self._of[count] = self._weights(packed)
        if packed.bias is not None:
            self._of[count + 1] = self._constant(packed.bias, (packed.bias.size,), packed.bias_elem)
        begins = count + 1 + (packed.bias is not None)
        for local, value in enumerate(guest.locals[begins:], begins):
            axes = self._frame.axes(value.axes, guest.columns)
            if axes is None:
                return False
            self._new.append(replace(value, axes=axes))
            self._of[local] = -len(self._new)
        return True

    def _operand(self, access: Access) -> int:
        if access not in self._operands:
            self._operands.append(access)
        return self._operands.index(access)

    def _weights(self, packed: PackedWeights) -> int:
        depth, columns = packed.array.shape
        shape = (depth, columns) if len(self._frame.lead) == 1 else (1, 1, depth, columns)
        return self._constant(packed.array, shape, packed.elem)

    def _constant(self, array: np.ndarray, shape: tuple[int, ...], elem: str) -> int:
        tensor = self._number - len(self._tensors)
        data = np.ascontiguousarray(array).reshape(shape)
        self._tensors[tensor] = Tensor(elem, data.size, data)
        return self._operand(Access(tensor, shape, dense(shape), elem))

    def _step(self, step: Step, is_product: bool) -> Step:
        """A step of the guest; products of pixels in a plane are windows of one place."""
        is_plane = len(self._frame.lead) == 3
        given = dict(step.attributes)
        if "axis" in given:
            given["axis"] = len(self._frame.lead)
        if not is_product:
            return replace(step, attributes=given)
        x, weights, *rest = step.inputs
        layout = "HWIO" if is_plane else "KN"
        inputs = (x, replace(weights, layout=layout), *rest)
        if not is_plane:
            return replace(step, inputs=inputs)
        return replace(step, nem="conv2d", inputs=inputs, attributes={**_ONE_PLACE, **given})

    def _results(self, guest: Layer, number: Callable[[int], int]) -> tuple[Result, ...] | None:
        found = []
        for result in guest.results:
            access = self._move(result.access)
            if access is None:
                return None
            found.append(replace(result, local=number(result.local), access=access))
        return tuple(found)


def _is_same(found: Access | None, wanted: Access, columns: int) -> bool:
    """Whether two layers see a tensor alike, whole columns of it."""
    if found is None or found.tensor != wanted.tensor or found.offset != wanted.offset:
        return False
    axes = tuple(columns if axis == "columns" else axis for axis in wanted.axes)
    if found.axes != axes or found.image != wanted.image:
        return False
    pairs = zip(axes, found.strides, wanted.strides, strict=True)
    return all(n == 1 or a == b for n, a, b in pairs)


def _reads_every_row(layer: Layer) -> bool:
    """Whether a window reads every row: bounds count what is computed for rows that it skips."""
    window = layer.window
    if window is None:
        return False
    whole = window.tile(0, layer.rows)
    is_whole = (whole.x_first, whole.x_rows) == (0, window.in_rows)
    return is_whole and window.stride <= window.height


def _count_uses(layer: Layer, local: int) -> int:
    return sum(o.local == local for step in layer.steps for o in step.inputs)


def _without_operand(layer: Layer, local: int) -> Layer:
    """A layer whose operand somebody else makes: all behind it move up, it is -1."""

    def number(old: int) -> int:
        return -1 if old == local else old - (old > local)

    return replace(
        layer,
        operands=tuple(a for at, a in enumerate(layer.operands) if at != local),
        locals=tuple(v for at, v in enumerate(layer.locals) if at != local),
        steps=tuple(_renumber(step, number) for step in layer.steps),
        results=_renumber_results(layer.results, number),
    )


def _renumber(step: Step, number: Callable[[int], int]) -> Step:
    inputs = tuple(replace(o, local=number(o.local)) for o in step.inputs)
    return replace(
        step, inputs=inputs, output=replace(step.output, local=number(step.output.local))
    )


def _renumber_results(
    results: Sequence[Result], number: Callable[[int], int]
) -> tuple[Result, ...]:
    return tuple(replace(result, local=number(result.local)) for result in results)

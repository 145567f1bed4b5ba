"""A layer: one product, pooling or function of elements and what is done to its tiles in L1.

A layer's result is images of rows of columns. A tile is some rows and some columns of one image.
Every tensor that takes part says how it lies along these: its axes in a tile, and a stride for
each. Steps are the tasks of one tile; they work on local values, of which the first are operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

from nacre.base.elements import GRAPH_TYPES
from nacre.base.term_columns import IntOrColumn
from nacre.compile.geometry import Window
from nacre.compile.partition.items import Quant
from nacre.core.module import CoreOperation
from nacre.core.values import Array

Dims = tuple[int, ...]
# A size, or that of the tile along rows, input rows or columns.
Axis = int | Literal["rows", "x_rows", "columns"]
Axes = tuple[Axis, ...]
Main = Literal["linear", "matmul", "window", "pool", "map", "turn", "gather", "escape", "copy"]


def element_bytes(elem: str) -> int:
    """Bytes of an element; truth values take one."""
    return max(1, GRAPH_TYPES[elem].bits // 8)


@dataclass(frozen=True)
class Size:
    """How large a tile is."""

    rows: int
    x_rows: int
    columns: int


def tile_shape(axes: Axes, size: Size) -> Dims:
    """A tile's shape."""
    return tuple(axis if isinstance(axis, int) else getattr(size, axis) for axis in axes)


class TileCut(NamedTuple):
    """Which axes of a layer its tiles cut; several images count as rows."""

    rows: bool
    columns: bool


@dataclass(frozen=True)
class Local:
    """A value of a tile."""

    axes: Axes
    elem: str

    def bytes(self, size: Size) -> int:
        """What it takes in L1."""
        return prod(tile_shape(self.axes, size)) * element_bytes(self.elem)


@dataclass(frozen=True)
class Access:
    """How a tensor lies along the layer's images, rows and columns; all in elements."""

    tensor: int
    axes: Axes
    strides: Dims
    elem: str
    offset: int = 0
    image: int = 0  # from one image to the next
    stays: bool = False  # read where it lies, never loaded: the table of a gather

    def is_fixed(self, cut: TileCut) -> bool:
        """Whether every tile reads the same elements."""
        if self.image or self.stays:
            return False
        if cut.columns and any(self.strides) and "columns" in self.axes:
            return False  # a narrower tile would lie otherwise
        is_one = cut.columns and not cut.rows  # all blocks of columns read the same rows
        return is_one or not self.stride_of("rows", "x_rows")

    def stride_of(self, *names: str) -> int:
        """The stride along an axis by its name; 0 where it has none."""
        found = [s for axis, s in zip(self.axes, self.strides, strict=True) if axis in names]
        return next((stride for stride in found if stride), 0)


@dataclass(frozen=True)
class Operand:
    """A local value as a step reads or writes it."""

    local: int
    quant: Quant | None = None
    axes: Axes = ()  # another shape of the same bytes
    layout: str = ""
    elem: str = ""  # another type of the same bytes


@dataclass(frozen=True)
class Step:
    """One compute task of a tile."""

    nem: str
    inputs: tuple[Operand, ...]
    output: Operand
    attributes: Mapping[str, object] = field(default_factory=dict)
    in_place: bool = False  # the result may take the place of an operand
    work: Literal["macs", "elements", "pool", "rows", "scalar"] = "elements"
    depth: int = 0  # MACs of an element of the result
    repeats: bool = False  # the operand's axes of size 1 are stretched to those of the result


@dataclass(frozen=True, eq=False)
class PackedPart:
    """An array [*inner, columns] of weights, or of what belongs to them."""

    array: Array
    elem: str
    name: str = ""  # of what weights in groups have: scales, zeros, minimums

    @property
    def inner(self) -> Dims:
        """All axes but the columns."""
        return tuple(self.array.shape[:-1])

    def bytes(self, columns: IntOrColumn) -> IntOrColumn:
        """Bytes of some columns; integers of 4 bits lie two to a byte."""
        return -(-prod(self.inner) * columns * max(1, GRAPH_TYPES[self.elem].bits) // 8)


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """Constant weights [*inner, columns] and a bias a column, block after block in memory.

    Weights in groups are integers [groups, depth, columns] with scales [groups, 1, columns], and
    perhaps with zero points or minimums.
    """

    array: Array
    bias: Array | None
    elem: str
    bias_elem: str
    quant: Quant | None = None
    key: tuple[int, ...] = ()  # the constants that it is made of
    stays: bool = False  # in L1, from the first layer that uses it to the last
    groups: tuple[PackedPart, ...] = ()

    @cached_property
    def parts(self) -> tuple[PackedPart, ...]:
        """The arrays of a block, one behind the other."""
        bias = () if self.bias is None else (PackedPart(self.bias, self.bias_elem),)
        return PackedPart(self.array, self.elem), *self.groups, *bias

    @property
    def inner(self) -> Dims:
        """All axes but the columns."""
        return tuple(self.array.shape[:-1])

    def block_bytes(self, columns: IntOrColumn) -> IntOrColumn:
        """Bytes of the weights of some columns, with all that belongs to them."""
        return self.part_offset(len(self.parts), columns)

    def part_offset(self, number: int, columns: IntOrColumn) -> IntOrColumn:
        """Where a part of a block begins: behind the one before it, on a boundary of its type."""
        end = 0 * columns
        for at, part in enumerate(self.parts[:number]):
            is_last = at + 1 == len(self.parts)
            end = end + (part.bytes(columns) if is_last else -(-part.bytes(columns) // 4) * 4)
        return end


@dataclass(frozen=True)
class Result:
    """A local value that leaves the tile."""

    local: int
    value: int
    access: Access


@dataclass(frozen=True)
class Move:
    """Elements copied from one place to another, without a stop in L1."""

    source: Access
    target: Access


@dataclass(frozen=True, eq=False)
class Layer:
    """What runs tile by tile."""

    name: str
    main: Main
    operations: tuple[CoreOperation, ...]
    images: int = 1
    rows: int = 1
    columns: int = 1
    cuts_columns: bool = False
    operands: tuple[Access, ...] = ()
    packed: PackedWeights | None = None  # its two values follow the operands
    locals: tuple[Local, ...] = ()
    steps: tuple[Step, ...] = ()
    results: tuple[Result, ...] = ()
    window: Window | None = None
    moves: tuple[Move, ...] = ()
    macs: int = 0
    makes: tuple[int, ...] = ()  # the value that each step makes, or prepares
    nodes: tuple[str, ...] = ()  # of the model, that it comes from
    part_of: str = ""  # the layer that was cut into this one and others
    members: tuple[str, ...] = ()  # the layers that it was made of, where they were several
    sliding: int = 0  # the step that the window belongs to

    @property
    def main_step(self) -> Step:
        """The product or pooling; weights may be dequantised before it."""
        return next((step for step in self.steps if step.work in ("macs", "pool")), self.steps[0])

    @property
    def title(self) -> str:
        """The name under which people know it: that of the whole layer."""
        return self.part_of or self.name

    @property
    def reads(self) -> tuple[int, ...]:
        """Tensors that are read."""
        found = [a.tensor for a in self.operands] + [m.source.tensor for m in self.moves]
        return tuple(dict.fromkeys(found))

    @property
    def writes(self) -> tuple[int, ...]:
        """Tensors that are written."""
        found = [r.access.tensor for r in self.results] + [m.target.tensor for m in self.moves]
        return tuple(dict.fromkeys(found))

    def cut(self, rows: int, columns: int) -> TileCut:
        """What tiles of a size cut."""
        return TileCut(rows < self.rows or self.images > 1, columns < self.columns)

    def fixed_locals(self, cut: TileCut) -> frozenset[int]:
        """Values that are the same for all tiles: shared operands, and those stretched."""
        fixed = {i for i, access in enumerate(self.operands) if access.is_fixed(cut)}
        for step in self.steps:
            if step.repeats and all(operand.local in fixed for operand in step.inputs):
                fixed.add(step.output.local)
        return frozenset(fixed)

    def size(self, rows: int, columns: int) -> Size:
        """A tile of so many rows."""
        if self.window is None:
            return Size(rows, rows, columns)
        return Size(rows, self.window.reach(rows), columns)

    def __str__(self) -> str:
        done = ", ".join(f"{op.opcode} %{op.value_id}" for op in self.operations)
        read = ", ".join(f"%{tensor}" for tensor in self.reads)
        return f"{self.name}: {done} of {read}"

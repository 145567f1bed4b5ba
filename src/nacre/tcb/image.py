"""An image: blocks in streams, one stream an engine and one for the device, on flat memories.

Addresses, tags and values are terms over the counters of the repeats around a block: counter 0 is
that of the outermost repeat and counts from `Repeat.start`. They are made by `counter`, and
operations on them by `operation` of base/terms.py, so that equal terms are equal values.

What orders blocks is tags alone. A tag is a counter: a wait holds when the counter has reached
its value, a block that is complete adds one to the tag that it signals, and a join may raise tags.
Tags never go down, so that a wait which has held once holds for good.
Which queue a block goes through may hold it back longer, and never lets it run earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal

from msgspec import Struct

from nacre.base.compression_forms import CompressionForm
from nacre.base.terms import LoopVariable, Term

DEVICE = -1  # in the place of an engine's number
STREAM = "stream"  # the memory of a value that passes from block to block and is never written

Attribute = int | float | bool | str | tuple[int, ...]
BlockKind = Literal["task", "wait", "join"]
PortKind = Literal["input", "output", "inout", "constant"]


@cache
def counter(depth: int) -> LoopVariable:
    """The counter of a repeat around a block; `depth` 0 is the outermost."""
    return LoopVariable(f"c{depth}", depth)


class Tag(Struct, frozen=True, gc=False):
    """A counter of an engine, or of the device.

    Those of the device are seen by every stream, and the device's stream sees all of them.
    """

    engine: int
    index: Term


class Wait(Struct, frozen=True, gc=False):
    """Holds when the counter is at least `value`."""

    tag: Tag
    value: Term


class TagSet(Struct, frozen=True, gc=False):
    """Tags side by side that are raised to a value when a join completes; none goes down by it."""

    tag: Tag
    count: int
    value: Term


class Quant(Struct, frozen=True, gc=False):
    """real = scale * (stored - zero_point); one pair, or one for each part of an axis."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None
    group_size: int = 1


class Operand(Struct, frozen=True, gc=False):
    """Elements in a memory: where they begin, and how they lie."""

    memory: str  # `DDR`, `L2`, `L1[0]`, or STREAM
    address: Term  # of the first byte
    elem: str
    dims: tuple[int, ...]
    strides: tuple[int, ...] | None = None  # in elements; None: dense
    quant: Quant | None = None
    compression: CompressionForm | None = None  # of the elements, as they lie there
    compressed_bytes: int | None = None  # that compressed elements take


class UnitUse(Struct, frozen=True, gc=False):
    """A unit that a task occupies, and for how long: before its first result, and at work."""

    unit: str
    latency: int
    work: int
    instance: Term | None = None  # None: any
    part: str | None = None  # CSTLA or CSTLB, where a CSTL has parts


class Block(Struct, frozen=True, gc=False):
    """One task, one `wait` of the program, or a join, which takes no unit and no time."""

    kind: BlockKind
    position: int  # of its statement in the program
    op: str = ""  # a primitive of kernels, `transfer` or `store`
    attributes: tuple[tuple[str, Attribute], ...] = ()
    is_ordered: bool = False  # floats are added up in a fixed order
    inputs: tuple[Operand | None, ...] = ()  # None: left out
    outputs: tuple[Operand, ...] = ()
    units: tuple[UnitUse, ...] = ()  # occupied together
    shared: int = 0  # cycles of the bandwidth that all share; 0: none
    engine: Term | None = None  # of a task in the device's stream; None there: engines in turn
    format: str = "raw"  # what the store path makes of the elements
    burst: int = 0  # bytes of one request; 0: the memory's own
    priority: int = 0
    waits: tuple[Wait, ...] = ()
    signal: Tag | None = None
    sets: tuple[TagSet, ...] = ()
    is_chained: bool = False  # the first output streams into the next block of the stream
    has_token: bool = False  # it occupies a token of its engine until all have named it
    names: tuple[int, ...] = ()  # positions of the tasks whose tokens it names

    @property
    def cycles(self) -> int:
        """How long it holds its units on ideal hardware."""
        return max([self.shared, *(use.latency + use.work for use in self.units)])


class Repeat(Struct, frozen=True, gc=False):
    """Items that are repeated. Repeats of one position continue each other's count."""

    position: int  # of the loop in the program
    count: Term
    items: tuple[Item, ...]
    start: int = 0  # of the counter


Item = Block | Repeat


class Stream(Struct, frozen=True, gc=False):
    """What one sequencer hands out, in its order."""

    engine: int  # DEVICE: that of the device
    items: tuple[Item, ...]

    def blocks(self) -> Iterator[tuple[Block, tuple[Repeat, ...]]]:
        """Every block with the repeats around it, in the order of the stream."""
        yield from _walk(self.items, ())


def _walk(
    items: tuple[Item, ...], around: tuple[Repeat, ...]
) -> Iterator[tuple[Block, tuple[Repeat, ...]]]:
    for item in items:
        if isinstance(item, Repeat):
            yield from _walk(item.items, (*around, item))
        else:
            yield item, around


class Machine(Struct, frozen=True):
    """What an image was bound to: a device's counts, and the figures of its microarchitecture."""

    device: str
    device_hash: str
    uarch: str
    uarch_hash: str
    engines: int
    units: tuple[tuple[str, int], ...]  # instances of a unit type, an engine
    device_units: tuple[tuple[str, int], ...]
    memories: tuple[tuple[str, int], ...]  # bytes: `DDR`, `L2`, `L1` of an engine
    token_limit: int | None = None  # of an engine; None: unlimited
    tags: int | None = None  # of an engine; None: unlimited
    device_tags: int | None = None  # of the device; None: unlimited
    figures: tuple[tuple[str, int | str], ...] = ()  # by key, those that differ from the default


class Placement(Struct, frozen=True, gc=False):
    """Where a buffer of the program lies."""

    buffer: str
    memory: str
    address: int
    size: int


class Port(Struct, frozen=True, gc=False):
    """What the host fills before a run, or reads after it."""

    name: str
    kind: PortKind
    memory: str
    address: int
    size: int  # bytes
    elem: str | None = None  # with `dims`, where they are known
    dims: tuple[int, ...] | None = None
    host_elem: str | None = None  # of the host's values, where it has others
    scales: tuple[float, ...] = ()  # one, where those are quantised: scale * (stored - zero)
    zero_points: tuple[int, ...] = ()  # as many


class Constant(Struct, frozen=True):
    """Bytes that lie in a memory before a run."""

    memory: str
    address: int
    data: bytes


class Origin(Struct, frozen=True, gc=False):
    """Where a block comes from: the statement's name and line, and the layer that it is part of."""

    position: int
    name: str
    line: int
    layer: str | None = None


class Image(Struct, frozen=True):
    """A bound program."""

    entry: str  # the program's name
    machine: Machine
    placements: tuple[Placement, ...]
    ports: tuple[Port, ...]
    streams: tuple[Stream, ...]
    constants: tuple[Constant, ...] = ()
    origins: tuple[Origin, ...] = ()  # by position
    source: str = ""  # the name of the program's file

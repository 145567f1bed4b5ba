"""Weights: which transfers of constants go through the WDM, in which mode, and why others do not.

Compressed bytes lie where the plain ones did, from the same address on, so that nothing else of an
image moves; what they leave over is not there any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nacre.base.compression_forms import CompressionForm
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.weight_compression import Bytes, best_common_form, compress
from nacre.bind.memory.constant_reads import ConstantRead, PlainTransfer, constant_reads
from nacre.bind.units import UnitBinder
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.decompression import WDM, decompression_figure
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.run.timing.costs import moving_cycles
from nacre.nem.run.timing.profile import TimingProfile
from nacre.tcb.figures import Figures
from nacre.tcb.image import Block, Constant, Item, Placement, Repeat, Stream, UnitUse

_BYTES = {8: "u8", 16: "u16"}  # what bytes without a type are tried as


class CompressedTransfer(Struct, frozen=True, eq=False):
    """A transfer of constants that the WDM decompresses, and what it takes before and after."""

    task: Task
    elem: str
    form: CompressionForm
    is_typed: bool
    times: int
    plain_bytes: int  # of one transfer
    compressed_bytes: int
    plain_cycles: int  # for which units are held
    units: tuple[UnitUse, ...]
    shared: int  # cycles of DDR's bandwidth
    plain_shared: int

    @property
    def cycles(self) -> int:
        """For how long units are held."""
        return max([self.shared, *(use.latency + use.work for use in self.units)])

    @property
    def saved_cycles(self) -> int:
        """For how much less, of all iterations."""
        return self.times * (self.plain_cycles - self.cycles)


class CompressedPart(Struct, frozen=True):
    """Constants that lie compressed: where they began in their buffer, and how many they were."""

    buffer: str
    offset: int
    plain_bytes: int
    data: bytes


class CompressedGroup(Struct, frozen=True, eq=False):
    """Transfers that read the same parts, which go through the WDM together or not at all."""

    transfers: tuple[CompressedTransfer, ...]
    parts: tuple[CompressedPart, ...]

    @property
    def saved_cycles(self) -> int:
        """For how much less units are held."""
        return sum(one.saved_cycles for one in self.transfers)

    @property
    def saved_bytes(self) -> int:
        """How many fewer are moved."""
        return sum(o.times * (o.plain_bytes - o.compressed_bytes) for o in self.transfers)

    @property
    def slower(self) -> CompressedTransfer | None:
        """A transfer that would hold its units longer than it does without the WDM."""
        return next((one for one in self.transfers if one.cycles > one.plain_cycles), None)


class WeightChoices(Struct, frozen=True, eq=False):
    """What goes through the WDM and what does not; `absent` says why nothing could."""

    groups: tuple[CompressedGroup, ...] = ()
    plain: tuple[PlainTransfer, ...] = ()
    absent: str = ""
    timed: tuple[int, int] | None = None  # cycles of the image without the WDM and with it

    @property
    def compressed(self) -> tuple[CompressedTransfer, ...]:
        """The transfers that go through the WDM, as they come in the program."""
        found = (one for group in self.groups for one in group.transfers)
        return tuple(sorted(found, key=_position))

    @property
    def parts(self) -> tuple[CompressedPart, ...]:
        """What lies compressed."""
        found = (part for group in self.groups for part in group.parts)
        return tuple(sorted(found, key=_place))

    def without(self, groups: Sequence[CompressedGroup], reason: str) -> WeightChoices:
        """The same, but that some groups stay as they are."""
        left = {id(group) for group in groups}
        more = (PlainTransfer(one.task, reason) for group in groups for one in group.transfers)
        plain = tuple(sorted((*self.plain, *more), key=_position))
        kept = tuple(group for group in self.groups if id(group) not in left)
        return replace(self, groups=kept, plain=plain)


PLAIN_WEIGHTS = WeightChoices()


class WdmModes(Struct, frozen=True):
    """What the WDM of a device can do: what the device and its microarchitecture both allow."""

    entries: int
    tables: int
    has_sparse: bool
    rate: int
    ways: tuple[tuple[str, str], ...]


def wdm_modes(device: Device, figures: Figures) -> WdmModes | str:
    """What can be chosen, or why nothing can."""
    if device.count(WDM) < 1:
        return "the device has no WDM"
    words = figures.words("wdm.modes")
    if not words:
        return "the microarchitecture names no mode of the WDM"

    def both(key: str) -> int:
        most = min(figures.count(f"wdm.{key}"), decompression_figure(device, key))
        return most if "palette" in words else 0

    ways = (way.partition("_") for way in figures.words("wdm.ways"))
    return WdmModes(
        both("palette_entries"),
        both("palette_tables"),
        "sparse" in words and decompression_figure(device, "sparse") > 0,
        figures.count("wdm.rate"),
        tuple((source, target) for source, _, target in ways),
    )


def choose_weights(
    plan: Plan,
    constants: Sequence[tuple[str, bytes]],
    of_host: Collection[str],
    modes: WdmModes,
    costs: TransferCosts,
) -> WeightChoices:
    """The mode with the fewest bytes for every transfer of constants; `of_host` are buffers.

    A transfer that would hold its units longer stays as it is.
    """
    buffers = {buffer.name: buffer.index for buffer in plan.program.buffers}
    groups: list[CompressedGroup] = []
    plain: list[PlainTransfer] = []
    for name, data in constants:
        is_of_host = name in of_host
        reads = constant_reads(plan, buffers[name], data, modes.ways, is_of_host=is_of_host)
        plain += reads.plain
        stored = np.frombuffer(data, np.uint8)
        for group in reads.groups:
            choice = _choose(group, stored, modes)
            if isinstance(choice, str):
                plain += (PlainTransfer(read.task, choice) for read in group)
                continue
            made = tuple(costs.compressed(read, choice) for read in group)
            parts = tuple(CompressedPart(name, *part) for part in choice.parts)
            compressed = CompressedGroup(made, parts)
            if (slower := compressed.slower) is None:
                groups.append(compressed)
            else:
                detail = f"{slower.cycles:,} cycles, not {slower.plain_cycles:,}"
                plain += (PlainTransfer(read.task, "slower", detail) for read in group)
    plain.sort(key=_position)
    return WeightChoices(tuple(groups), tuple(plain))


def _position(one: CompressedTransfer | PlainTransfer) -> int:
    return one.task.position


def _place(part: CompressedPart) -> tuple[str, int]:
    return part.buffer, part.offset


class _Choice(Struct, frozen=True, eq=False):
    elem_bits: int
    form: CompressionForm
    size: int  # of the longest part
    parts: tuple[tuple[int, int, bytes], ...]  # offset, plain bytes, compressed ones


def _choose(group: Sequence[ConstantRead], stored: Bytes, modes: WdmModes) -> _Choice | str:
    """The element size and mode in which the parts of some reads take the fewest bytes.

    Or why they stay as they are.
    """
    size = group[0].size
    starts = np.unique(np.concatenate([read.starts for read in group])).tolist()
    parts = np.stack([stored[start : start + size] for start in starts])
    limits = (modes.entries, modes.tables, modes.has_sparse)
    best: tuple[int, int, CompressionForm] | None = None
    sizes = _element_sizes(group)
    for bits in sizes:
        found = best_common_form(parts, size * 8 // bits, bits, *limits)
        if found is not None and (best is None or found[1] < best[0]):
            best = (found[1], bits, found[0])
    if best is None:
        return "larger" if sizes else "cuts"
    most, bits, form = best
    data = (_compress(part, size * 8 // bits, bits, form) for part in parts)
    pieces = tuple((start, size, made) for start, made in zip(starts, data, strict=True))
    return _Choice(bits, form, most, pieces)


def _element_sizes(group: Sequence[ConstantRead]) -> list[int]:
    """The bits of elements that all of some reads could have."""
    typed = {_element_bits(read) for read in group if read.is_typed}
    if len(typed) > 1 or not all(read.is_whole for read in group):
        return []
    return [bits for bits in typed or _BYTES if group[0].size * 8 % bits == 0]


def _element_bits(read: ConstantRead) -> int:
    return ELEMENT_TYPES[read.source.elem or "u8"].bits


def _compress(part: Bytes, count: int, bits: int, form: CompressionForm) -> bytes:
    made = compress(part, count, bits, form)
    if made is None:
        raise ValueError("a form that was found to hold all elements")
    return made.tobytes()


class TransferCosts(Struct, frozen=True, eq=False):
    """What a transfer costs with the WDM and without."""

    plan: Plan
    modes: WdmModes
    units: UnitBinder
    profile: TimingProfile

    def compressed(self, read: ConstantRead, choice: _Choice) -> CompressedTransfer:
        """A transfer as it becomes; the memory's side moves the compressed bytes."""
        grid = self.plan.grid_of(read.task.loops) or Grid(1)
        before, shared = self.units.uses(read.task, grid), self.units.shared(read.task, grid)
        first = before[0]
        moved = moving_cycles(choice.size, first.unit, self.profile)
        work = -(-read.size // self.modes.rate)
        wdm = UnitUse(WDM, self.profile.at(WDM, "latency"), work)
        rate = self.profile.get("DDR", "bandwidth")
        is_in_ddr = read.source.buffer is not None and read.source.buffer.level == "DDR"
        return CompressedTransfer(
            read.task,
            (read.source.elem or "u8") if read.is_typed else _BYTES[choice.elem_bits],
            choice.form,
            read.is_typed,
            read.times,
            read.size,
            choice.size,
            max([shared, *(use.latency + use.work for use in before)]),
            (replace(first, work=moved), *before[1:], wdm),
            -(-choice.size // rate) if rate is not None and is_in_ddr else 0,
            shared,
        )


def compress_streams(
    streams: tuple[Stream, ...], compressed: Sequence[CompressedTransfer]
) -> tuple[Stream, ...]:
    """Streams in which the blocks of these transfers decompress their source."""
    by_position = {one.task.position: one for one in compressed}
    if not by_position:
        return streams
    return tuple(Stream(s.engine, _compress_items(s.items, by_position)) for s in streams)


def _compress_items(
    items: tuple[Item, ...], by_position: Mapping[int, CompressedTransfer]
) -> tuple[Item, ...]:
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=_compress_items(item.items, by_position)))
        elif item.kind == "task" and item.position in by_position:
            made.append(_compressed_block(item, by_position[item.position]))
        else:
            made.append(item)
    return tuple(made)


def _compressed_block(block: Block, choice: CompressedTransfer) -> Block:
    (source,), (target,) = block.inputs, block.outputs
    if source is None:
        raise ValueError("a transfer without source")
    bits = ELEMENT_TYPES[choice.elem].bits
    dims = source.dims if choice.is_typed else (choice.plain_bytes * 8 // bits,)
    source = replace(
        source, elem=choice.elem, dims=dims, strides=None,
        compression=choice.form, compressed_bytes=choice.compressed_bytes,
    )  # fmt: skip
    if not choice.is_typed:
        target = replace(target, elem=choice.elem, dims=dims)
    if prod(dims) * bits != choice.plain_bytes * 8:
        raise ValueError("elements that are not the bytes of their part")
    instances = {use.unit: use.instance for use in block.units}
    units = tuple(replace(use, instance=instances.get(use.unit)) for use in choice.units)
    return replace(block, inputs=(source,), outputs=(target,), units=units, shared=choice.shared)


def stored_constants(
    placements: Mapping[str, Placement],
    constants: Sequence[tuple[str, bytes]],
    parts: Sequence[CompressedPart],
) -> Iterator[Constant]:
    """What lies in memories before a run: compressed parts, and what is between them."""
    for buffer, data in constants:
        place, at = placements[buffer], 0
        for part in (part for part in parts if part.buffer == buffer):
            if part.offset > at:
                yield Constant(place.memory, place.address + at, data[at : part.offset])
            yield Constant(place.memory, place.address + part.offset, part.data)
            at = part.offset + part.plain_bytes
        if at < len(data) or not data:
            yield Constant(place.memory, place.address + at, data[at:])

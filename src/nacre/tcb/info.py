"""What is in an image: counts, and the bytes that its parts take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from nacre.base.term_columns import TermProblem
from nacre.tcb.binary.container import SECTIONS
from nacre.tcb.binary.encoding import encode, features_of, sections_of
from nacre.tcb.image import DEVICE, Block, Image, Repeat, Tag
from nacre.tcb.judging.memories import capacities
from nacre.tcb.judging.ranges import Scope, Undecided, bounds, extremes
from nacre.tcb.text.written import engine_text


class MemoryUse(Struct, frozen=True):
    """Bytes of a memory that buffers take."""

    memory: str
    used_bytes: int
    capacity_bytes: int


class StreamCounts(Struct, frozen=True):
    """What a stream has."""

    stream: str  # `e0`, or `d`
    blocks: int
    repeats: int


class TagUse(Struct, frozen=True):
    """Counters of an engine or of the device up to the highest that is named."""

    owner: str
    used: int | None  # None: not known
    available: int | None  # None: any number


class ImageInfo(Struct, frozen=True):
    """An image in numbers."""

    entry: str
    source: str
    device: str
    uarch: str
    features: tuple[str, ...]
    kinds: dict[str, int]  # blocks
    operations: dict[str, int]  # tasks
    units: dict[str, int]  # tasks that occupy one
    repeats: int
    depth: int  # of repeats in each other
    chained: int  # blocks that stream into the next
    streams: tuple[StreamCounts, ...]
    tags: tuple[TagUse, ...]
    ports: dict[str, int]
    memories: tuple[MemoryUse, ...]
    constant_bytes: int
    file_bytes: int
    sections: dict[str, int]  # bytes


def image_info(image: Image) -> ImageInfo:
    """The numbers of an image that was judged."""
    found = [pair for stream in image.streams for pair in stream.blocks()]
    blocks = [block for block, _ in found]
    features = features_of(image)
    sections = sections_of(image, features)
    streams = tuple(_stream_counts(image))
    return ImageInfo(
        image.entry,
        image.source,
        image.machine.device,
        image.machine.uarch,
        tuple(sorted(features)),
        _counts(block.kind for block in blocks),
        _counts(block.op for block in blocks if block.op),
        _counts(use.unit for block in blocks for use in block.units),
        sum(stream.repeats for stream in streams),
        max((len(around) for _, around in found), default=0),
        sum(block.is_chained for block in blocks),
        streams,
        tuple(_tag_uses(image)),
        _counts(port.kind for port in image.ports),
        tuple(_memory_uses(image)),
        sum(len(constant.data) for constant in image.constants),
        len(encode(image)),
        {SECTIONS[tag]: len(content) for tag, content in sorted(sections.items())},
    )


def _counts(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0])))


def _stream_counts(image: Image) -> Iterator[StreamCounts]:
    for stream in image.streams:
        repeats, waiting = 0, list(stream.items)
        blocks = 0
        while waiting:
            item = waiting.pop()
            if isinstance(item, Repeat):
                repeats += 1
                waiting += item.items
            else:
                blocks += 1
        yield StreamCounts(engine_text(stream.engine), blocks, repeats)


def _tag_uses(image: Image) -> Iterator[TagUse]:
    ends: dict[int, list[int | None]] = {}
    for stream in image.streams:
        for block, around in stream.blocks():
            for tag, count in _tags_of(block):
                ends.setdefault(tag.engine, []).append(_end(tag, count, Scope(around)))
    for engine in sorted(ends):
        is_known = None not in ends[engine]
        used = max(end for end in ends[engine] if end is not None) if is_known else None
        limit = image.machine.device_tags if engine == DEVICE else image.machine.tags
        yield TagUse(engine_text(engine), used, limit)


def _tags_of(block: Block) -> Iterator[tuple[Tag, int]]:
    yield from ((wait.tag, 1) for wait in block.waits)
    if block.signal is not None:
        yield block.signal, 1
    yield from ((each.tag, each.count) for each in block.sets)


def _end(tag: Tag, count: int, scope: Scope) -> int | None:
    """Behind the last counter that is named in any iteration; None where that is not known."""
    try:
        found = bounds(tag.index, scope) or extremes(tag.index, scope)
    except (TermProblem, Undecided):
        return None
    return 0 if found is None else found[1] + count


def _memory_uses(image: Image) -> Iterator[MemoryUse]:
    sizes: Counter[str] = Counter()
    for placement in image.placements:
        sizes[placement.memory] += placement.size
    for memory, capacity in capacities(image.machine).items():
        if sizes[memory]:
            yield MemoryUse(memory, sizes[memory], capacity)


def describe(info: ImageInfo) -> str:
    """The same for people."""
    source = f" from {info.source}" if info.source else ""
    lines = [f"{info.entry}{source}, for {info.device} ({info.uarch})"]
    lines += _described("blocks", info.kinds)
    lines += _described("operations", info.operations)
    lines += _described("units", info.units)
    lines.append(f"repeats: {info.repeats:,}, {info.depth} deep; chained blocks: {info.chained:,}")
    for stream in info.streams:
        lines.append(
            f"stream {stream.stream}: {stream.blocks:,} blocks, {stream.repeats:,} repeats"
        )
    for tag in info.tags:
        used = "?" if tag.used is None else f"{tag.used:,}"
        limit = "" if tag.available is None else f" of {tag.available:,}"
        lines.append(f"tags of {tag.owner}: {used}{limit}")
    lines += _described("ports", info.ports)
    for use in info.memories:
        lines.append(f"{use.memory}: {use.used_bytes:,} of {use.capacity_bytes:,} bytes")
    lines.append(f"constants: {info.constant_bytes:,} bytes")
    parts = ", ".join(f"{name} {size:,}" for name, size in info.sections.items())
    lines.append(f"file: {info.file_bytes:,} bytes ({parts})")
    return "".join(f"{line}\n" for line in lines)


def _described(title: str, counts: dict[str, int]) -> list[str]:
    if not counts:
        return []
    return [f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}"]

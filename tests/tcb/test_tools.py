"""Counts of an image, and what differs between two."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings

from nacre.tcb.diff import describe_differences, differences
from nacre.tcb.image import Image, Origin
from nacre.tcb.info import describe, image_info
from tests.effort import scaled
from tests.tcb.broken import COPY, changed, with_items
from tests.tcb.samples import TEXT, sample
from tests.tcb.strategies import images


def test_an_image_is_counted() -> None:
    info = image_info(sample())
    assert info.kinds == {"task": 6, "join": 3, "wait": 1}
    assert info.operations == {"transfer": 3, "relu": 2, "store": 1}
    assert info.units == {"DMA": 3, "CSTL": 2}
    assert (info.repeats, info.depth, info.chained) == (1, 1, 1)
    assert [(s.stream, s.blocks, s.repeats) for s in info.streams] == [("e0", 7, 1), ("d", 3, 0)]
    assert [(t.owner, t.used, t.available) for t in info.tags] == [("d", 2, 64), ("e0", 4, 32)]
    assert info.ports == {"input": 1, "output": 1}
    assert [(m.memory, m.used_bytes) for m in info.memories] == [("DDR", 4096), ("L1[0]", 8192)]
    assert info.constant_bytes == 8
    assert sum(info.sections.values()) < info.file_bytes
    assert info.features == ("chains", "compression")


def test_counts_are_told() -> None:
    told = describe(image_info(sample()))
    assert told.startswith("conv from conv.nem, for npm4k (lab)\nblocks: task 6, join 3, wait 1\n")
    assert "tags of e0: 4 of 32\n" in told


@settings(max_examples=scaled(30))
@given(images())
def test_every_image_can_be_counted_and_is_equal_to_itself(image: Image) -> None:
    info = image_info(image)
    assert sum(info.kinds.values()) == sum(stream.blocks for stream in info.streams)
    assert msgspec.json.encode(info)
    assert describe(info)
    assert differences(image, image) == []


@settings(max_examples=scaled(30))
@given(images(), images())
def test_images_differ_where_their_texts_do(before: Image, after: Image) -> None:
    assert bool(differences(before, after)) == (before != after)


def test_differences_are_told_block_by_block() -> None:
    image = sample()
    stream = image.streams[0]
    _, join, repeat, last = stream.items
    task = changed(repeat.items[1], priority=2, waits=())  # type: ignore[union-attr]
    inner = (repeat.items[0], task, *repeat.items[2:])  # type: ignore[union-attr]
    other = changed(
        image,
        streams=(changed(stream, items=(join, changed(repeat, items=inner), last)),),
        origins=(*image.origins, Origin(7, "store", 14)),
    )
    told = describe_differences(differences(image, other))
    (line,) = [line.strip() for line in TEXT.splitlines() if "task @3" in line]
    assert told.splitlines()[:4] == [
        f"- stream e0 @3 task: {line}",
        "~ stream e0 @4 @6 task",
        "    priority: 0 -> 2",
        "    wait: e0.t(c0 mod 2 + 2)>=(c0/2)*2 + 1 -> -",
    ]
    assert told.splitlines()[-1] == "+ origin @7: origin @7 store line 14"
    assert "- stream d\n" in told.replace(": stream d", "")


def test_blocks_of_one_position_are_told_apart() -> None:
    twice = with_items(COPY, COPY)
    (difference,) = differences(with_items(COPY), twice)
    assert (difference.change, difference.statement) == ("added", "stream e0 @1 task #2")

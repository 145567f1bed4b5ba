"""Blocks of weights that are compressed in parts: what each part holds, and where blocks wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nacre.base.weight_compression import decompress
from nacre.compile.options import Options
from nacre.compile.placement.compression import BlockCompressor, CompressedBlock
from nacre.compile.target import target_of
from nacre.core.values import Array

ALIGNMENT = 64


def compressor(l2_left: int, device: str = "npm16k") -> BlockCompressor:
    return BlockCompressor(Options(target_of(device).device, "f16"), l2_left)


def compressed(
    made: BlockCompressor, array: Array, elem: str = "f16", engines: int = 1
) -> tuple[CompressedBlock, list[Array]] | None:
    layer: Any = SimpleNamespace(packed=SimpleNamespace(elem=elem))
    tiling: Any = SimpleNamespace(engines=engines)
    return made.compressed_block(layer, tiling, array)


def few_values(count: int, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return rng.choice(rng.normal(size=11).astype(np.float16), count)


@pytest.mark.parametrize(("count", "parts"), [(1_000, 1), (4_101, 2), (40_001, 4), (80_000, 4)])
def test_parts_lie_behind_each_other_and_hold_the_block(count: int, parts: int) -> None:
    """Of npm16k's four paths each brings a part, if it has 4 KiB of weights at least."""
    array = few_values(count)
    found = compressed(compressor(1 << 20), array)
    assert found is not None
    block, stored = found
    assert len(block.parts) == len(stored) == parts
    plain, bytes_done, begins = array.view(np.uint8), 0, 0
    for part, data in zip(block.parts, stored, strict=True):
        assert (part.first, part.begins) == (bytes_done, begins)
        assert part.size <= data.size < part.size + ALIGNMENT
        assert data.size % ALIGNMENT == 0
        assert not data[part.size :].any()
        assert part.count % ALIGNMENT == 0 or part is block.parts[-1]
        held, used = decompress(data[: part.size], part.count, 16, part.form)
        assert used == part.size
        bytes_done += 2 * part.count
        assert np.array_equal(held.view(np.uint8).reshape(-1), plain[part.first : bytes_done])
        begins += data.size
    assert bytes_done == plain.size
    assert (block.rest, block.saved) == (begins, plain.size - begins)


def test_engines_share_the_paths() -> None:
    array = few_values(40_000)
    for engines, parts in ((1, 4), (2, 2)):
        found = compressed(compressor(1 << 20), array, engines=engines)
        assert found is not None
        assert len(found[0].parts) == parts


def test_what_gets_no_smaller_or_has_no_place_is_none() -> None:
    noise = np.random.default_rng(3).integers(0, 1 << 16, 5_000).astype(np.uint16)
    assert compressed(compressor(1 << 20), noise) is None
    array = few_values(4_000)
    found = compressed(compressor(1 << 20), array)
    assert found is not None
    needed = found[0].rest
    assert compressed(compressor(needed), array) is not None
    assert compressed(compressor(needed - 1), array) is None


def test_blocks_wait_behind_each_other_until_there_is_no_room() -> None:
    made = compressor(1 << 20)
    first = compressed(made, few_values(4_000))
    assert first is not None
    size = first[0].rest
    again = compressor(2 * size + size // 2)
    places = []
    for seed in (1, 1, 1, 1):
        found = compressed(again, few_values(4_000, seed))
        assert found is not None
        places.append(found[0].waits_at)
    assert places == [0, size, 0, size]
    assert again.l2_bytes == 2 * size

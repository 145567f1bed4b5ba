"""Weights that several layers use, as steps of a recurrence do: kept in L2 between them.

L1 is rarely large enough to hold them beside the tiles. Blocks of them that find a gap in L2 are
brought there once; every layer then has a shorter way to them, and DDR is free for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import RECURRING
from nacre.compile.tiling.occupied import OccupiedSpans
from nacre.compile.tiling.residency import Key, weights_lifetime
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.stage import Tilings


@dataclass(frozen=True)
class StagedBlock:
    """Where a block of weights begins in L2, and whether this layer has to bring it there."""

    offset: int
    is_first: bool


def staged_blocks(
    layers: tuple[Layer, ...], tiled: Tilings, occupied: OccupiedSpans, options: Options
) -> dict[tuple[str, int], StagedBlock]:
    """Blocks by layer and number, as far as gaps between what is taken hold them."""
    if "residency" in options.disabled:
        return {}
    staged: dict[tuple[str, int], StagedBlock] = {}
    for users in _users(layers, tiled).values():
        if len(users) < RECURRING:
            continue
        tiling, layer = tiled.layers[users[0]], layers[users[0]]
        assert layer.packed is not None
        first, last = weights_lifetime(layers, users)
        for number, (_, count) in enumerate(tiling.column_blocks(layer.columns)):
            size = align_up(layer.packed.block_bytes(count))
            offset = occupied.lowest_gap(size, first, last)
            if offset + size > options.l2_bytes:
                break
            occupied.add(offset, size, first, last)
            for user in users:
                staged[layers[user].name, number] = StagedBlock(offset, user == users[0])
    return staged


def _users(layers: tuple[Layer, ...], tiled: Tilings) -> Mapping[tuple[Key, int], list[int]]:
    """The layers of each set of weights that they cut alike, but for those that lie in L1."""
    users: dict[tuple[Key, int], list[int]] = {}
    for index, (layer, tiling) in enumerate(zip(layers, tiled.layers, strict=True)):
        if layer.packed is not None and not tiled.resident.holds_weights(layer):
            users.setdefault((layer.packed.key, tiling.columns), []).append(index)
    return users

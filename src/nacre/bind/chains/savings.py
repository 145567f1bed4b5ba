"""What chains save: bytes that are never written, and cycles for which units are held."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES, bytes_needed
from nacre.tcb.image import STREAM, Block, Image
from nacre.tcb.machine.instances import MAX_INSTANCES
from nacre.tcb.machine.tree import PlacedBlock, merge_streams


class ChainSavings(Struct, frozen=True):
    """A chain in all its iterations: what it does not write, and its cycles without and with."""

    bytes: int = 0
    alone: int = 0  # its tasks one after the other
    chained: int = 0

    def plus(self, other: ChainSavings) -> ChainSavings:
        """Both together."""
        return ChainSavings(
            self.bytes + other.bytes, self.alone + other.alone, self.chained + other.chained
        )


def chain_savings(image: Image) -> dict[int, ChainSavings]:
    """What every chain of an image saves, by the position of its last task."""
    found: dict[int, ChainSavings] = {}
    if not any(block.is_chained for stream in image.streams for block, _ in stream.blocks()):
        return found
    blocks = merge_streams(image.streams, MAX_INSTANCES).blocks
    for last in blocks:
        if last.producer is not None and not last.block.is_chained:
            members = [*_producers(last, blocks), last.block]
            position = last.block.position
            before = found.get(position, ChainSavings())  # of other iterations of the loop
            found[position] = before.plus(_savings(members, last.grid.rows))
    return found


def _producers(last: PlacedBlock, blocks: tuple[PlacedBlock, ...]) -> Iterator[Block]:
    while last.producer is not None:
        last = blocks[last.producer]
        yield last.block


def _savings(members: list[Block], times: int) -> ChainSavings:
    """Of one chain: all latencies and the longest work, instead of one task after the other."""
    outputs = (output for block in members for output in block.outputs if output.memory == STREAM)
    size = sum(bytes_needed(prod(o.dims), GRAPH_TYPES[o.elem]) for o in outputs)
    uses = [use for block in members for use in block.units]
    work = max((use.work for use in uses), default=0)
    chained = max([sum(use.latency for use in uses) + work, *(block.shared for block in members)])
    return ChainSavings(
        times * size, times * sum(block.cycles for block in members), times * chained
    )

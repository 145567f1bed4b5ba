"""Times one program in several ways: blocks that are the same are looked at once.

Whoever chooses between images times them by the dozen, and most of that time goes into what blocks
wait for, occupy and touch, which is the same in all of them but for a few blocks.
"""

from __future__ import annotations

from dataclasses import replace

from nacre.tcb.figures import Figures
from nacre.tcb.image import Block, Image
from nacre.tcb.machine.instances import Instances, unroll
from nacre.tcb.machine.prepare import bank_columns, replace_banks
from nacre.tcb.machine.timing import ImageTiming, time_placed
from nacre.tcb.machine.units import place_instances, replace_units


class ImageTimer:
    """Times images that differ from one in operands, costs, requests and priorities of blocks."""

    def __init__(self, image: Image) -> None:
        self._instances = unroll(image)
        self._figures = Figures(dict(image.machine.figures))
        self._units = place_instances(self._instances, self._figures)
        self._banks = bank_columns(self._instances, self._figures)
        self._blocks = _blocks(image)

    def time(self, image: Image) -> ImageTiming:
        """Time an image: that of the beginning, or one whose blocks stand where its blocks do."""
        pairs = zip(self._blocks, _blocks(image), strict=True)
        others = {id(before): after for before, after in pairs if after is not before}
        blocks = list(self._instances.blocks)
        changed: list[int] = []
        for at, placed in enumerate(blocks):
            after = others.get(id(placed.block))
            if after is not None:
                blocks[at] = replace(placed, block=after)
                if _takes_other(placed.block, after):
                    changed.append(at)
        found: Instances = replace(self._instances, image=image, blocks=tuple(blocks))
        return time_placed(
            found,
            replace_units(found, changed, self._figures, self._units),
            replace_banks(found, changed, self._figures, self._banks),
        )


def _blocks(image: Image) -> list[Block]:
    return [block for stream in image.streams for block, _ in stream.blocks()]


def _takes_other(before: Block, after: Block) -> bool:
    """Whether a block occupies or touches something else than one in its place."""
    if _order(before) != _order(after):
        raise ValueError("blocks that wait for something else are another program")
    return (
        after.units is not before.units
        or after.inputs is not before.inputs
        or after.outputs is not before.outputs
        or (after.shared, after.burst) != (before.shared, before.burst)
    )


def _order(block: Block) -> tuple[object, ...]:
    """What decides who waits for whom."""
    return (block.kind, block.position, block.waits, block.signal, block.sets, block.names)

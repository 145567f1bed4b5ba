"""Which chains pay.

A chain starts when every member could, and holds the units of all of them until its end. Where a
later member waits for something of its own, the product before it waits with it, and a program may
take longer than with tasks one by one. Images that are not too large are timed; of others, chains
are cut before such members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.base.diagnostics import InputError
from nacre.bind.fusion import FusedChains
from nacre.nem.plan.fusion.chains import Chain
from nacre.nem.plan.fusion.value_reads import ValueRead
from nacre.tcb.image import Image
from nacre.tcb.machine.timing import time_image

MOST_TIMED = 5_000  # instances of tasks: half a second for all three images

ImageOf = Callable[[FusedChains], Image]


def keep_faster_chains(fused: FusedChains, image_of: ImageOf, instances: int) -> FusedChains:
    """The chains without those that make the image slower; `instances` are its tasks'.

    Three images are compared: with all chains, without members that the first would wait for, and
    with none. One that lacks tags is left out.
    """
    if not fused.chains:
        return fused
    prompt = fused.without(link for chain in fused.chains for link in _late_links(chain))
    if instances > MOST_TIMED:
        return prompt
    none = fused.without((link for chain in fused.chains for link in chain.links), "slower")
    ways = (fused, none) if prompt is fused else (fused, prompt, none)
    return min(ways, key=lambda way: (*_cycles(way, image_of), -way.link_count))


def _cycles(fused: FusedChains, image_of: ImageOf) -> tuple[bool, int]:
    """Whether an image cannot end, or not be made, and its cycles."""
    try:
        timing = time_image(image_of(fused))
    except InputError:
        return True, 0
    return timing.is_stuck, timing.cycles


def _late_links(chain: Chain) -> Iterator[ValueRead]:
    """Links into a task that waits for something for which no member before it waits."""
    before = {chain.head.position, *chain.head.deps}
    for link, task in zip(chain.links, chain.tasks[1:], strict=True):
        if not before.issuperset(task.deps):
            yield link
        before |= {task.position, *task.deps}

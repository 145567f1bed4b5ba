"""Who goes first: what computes on the unit that has most to do.

Whoever comes later to a bank waits for those that use it. So of blocks that could start in the same
cycle those of the busiest unit start first, and transfers wait for banks rather than it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from nacre.tcb.figures import Figures
from nacre.tcb.image import Block, Item, Machine, Repeat, Stream
from nacre.tcb.machine.hardware import REQUESTING

PRIORITY_REASONS = {
    "busiest": "of the units that compute it has most to do: others wait for banks rather than it",
    "one class": "there is one class of priority",
    "no unit": "nothing computes",
}


class PriorityChoice(Struct, frozen=True):
    """The kind of unit whose blocks go before all others; None: all blocks are alike."""

    unit: str | None = None
    priority: int = 0
    reason: str = "one class"


ALIKE = PriorityChoice()


def choose_priority(
    streams: Iterable[Stream], machine: Machine, figures: Figures
) -> PriorityChoice:
    """Whose blocks go first on a machine with several classes."""
    classes = figures.count("arbitration.classes")
    if classes < 2:
        return ALIKE
    cycles = _busy_cycles(streams)
    if not cycles:
        return PriorityChoice(reason="no unit")
    counts = dict((*machine.units, *machine.device_units))
    busiest = max(cycles, key=lambda unit: cycles[unit] / max(1, counts.get(unit, 1)))
    return PriorityChoice(busiest, classes - 1, "busiest")


def _busy_cycles(streams: Iterable[Stream]) -> Counter[str]:
    """Cycles for which blocks hold the units that compute, all iterations together."""
    found: Counter[str] = Counter()
    for block, repeats in (pair for stream in streams for pair in stream.blocks()):
        times = 1
        for repeat in repeats:  # a count that varies is taken for one
            times *= repeat.count if isinstance(repeat.count, int) else 1
        for use in () if _is_moving(block) else block.units:
            found[use.unit] += times * (use.latency + use.work)
    return found


def _is_moving(block: Block) -> bool:
    return any(use.unit in REQUESTING for use in block.units)


def set_priority(streams: tuple[Stream, ...], choice: PriorityChoice) -> tuple[Stream, ...]:
    """Streams in which the blocks of a unit go first."""
    if choice.unit is None:
        return streams
    return tuple(Stream(s.engine, _set_items(s.items, choice)) for s in streams)


def _set_items(items: tuple[Item, ...], choice: PriorityChoice) -> tuple[Item, ...]:
    made: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            made.append(replace(item, items=_set_items(item.items, choice)))
        elif not _is_moving(item) and any(use.unit == choice.unit for use in item.units):
            made.append(replace(item, priority=choice.priority))
        else:
            made.append(item)
    return tuple(made)

"""Which of the transfers that the WDM could decompress pay, all together.

Each of them alone is no slower with it. But a device has fewer WDMs than DMAs, so that transfers
which went side by side may come one after the other. Images that are not too large are timed; of
others it is reckoned how long the WDMs and the units without them would be held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from nacre.bind.memory.weights import CompressedGroup, CompressedTransfer, WeightChoices
from nacre.nem.model.devices import Device
from nacre.nem.plan.decompression import WDM
from nacre.nem.spec.units import DEVICE_UNITS
from nacre.tcb.image import Image
from nacre.tcb.machine.retiming import ImageTimer

MOST_TIMED = 50_000  # instances of tasks: half a second
_MOST_IN_ALL = 100_000  # instances of all trials but the first two

ImageOf = Callable[[WeightChoices], Image]


def keep_what_pays(
    choices: WeightChoices, image_of: ImageOf, device: Device, instances: int
) -> WeightChoices:
    """The choices without those that would make the image slower; `instances` are its tasks'."""
    if not choices.groups:
        return choices
    if instances > MOST_TIMED:
        return _keep_within_load(choices, device)
    timer = ImageTimer(image_of(_keep(choices, ())))
    plain = _cycles(choices, (), image_of, timer)
    cycles = _cycles(choices, choices.groups, image_of, timer)
    if cycles <= plain:
        return replace(choices, timed=(plain, cycles))
    kept: list[CompressedGroup] = []
    best = plain
    for more in _shares(_best_first(choices), max(2, _MOST_IN_ALL // max(1, instances))):
        cycles = _cycles(choices, [*kept, *more], image_of, timer)
        if cycles <= best:
            best = cycles
            kept += more
    return replace(_keep(choices, kept), timed=(plain, best))


def _cycles(
    choices: WeightChoices,
    kept: Sequence[CompressedGroup],
    image_of: ImageOf,
    timer: ImageTimer,
) -> int:
    return timer.time(image_of(_keep(choices, kept))).cycles


def _keep(choices: WeightChoices, kept: Sequence[CompressedGroup]) -> WeightChoices:
    ids = {id(group) for group in kept}
    return choices.without([g for g in choices.groups if id(g) not in ids], "contended")


def _best_first(choices: WeightChoices) -> list[CompressedGroup]:
    return sorted(choices.groups, key=lambda g: (-g.saved_cycles, -g.saved_bytes))


def _shares(groups: Sequence[CompressedGroup], most: int) -> Iterator[Sequence[CompressedGroup]]:
    """The groups in at most so many shares."""
    step = -(-len(groups) // most)
    return (groups[at : at + step] for at in range(0, len(groups), step))


def _keep_within_load(choices: WeightChoices, device: Device) -> WeightChoices:
    """Keep what the WDMs do in the time that all of the transfers take without them."""
    transfers = choices.compressed
    held = sum(_unit_cycles(one, device) for one in transfers)
    room = max(held, float(sum(one.times * one.plain_shared for one in transfers)))
    kept: list[CompressedGroup] = []
    for group in _best_first(choices):
        load = sum(one.times * one.cycles for one in group.transfers) / device.count(WDM)
        if load <= room:
            room -= load
            kept.append(group)
    return _keep(choices, kept)


def _unit_cycles(one: CompressedTransfer, device: Device) -> float:
    """A transfer's part of the time of all units at the memory's side."""
    unit = one.units[0].unit
    count = device.count(unit) * (1 if unit in DEVICE_UNITS else device.num_engines)
    return one.times * one.plain_cycles / max(1, count)

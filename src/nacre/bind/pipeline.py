"""The stages of binding, one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from nacre.bind.addresses import place_in_order
from nacre.bind.emission import Emitter
from nacre.bind.fusion import NO_CHAINS, FusedChains
from nacre.bind.operands import OperandBinder
from nacre.bind.order import order_program
from nacre.bind.placed_tags import PlacedTags
from nacre.bind.tag_pressure import TagCounts, fit_tags
from nacre.bind.uarch.reader import IDEAL, Uarch
from nacre.bind.units import UnitBinder
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Program, Task, Wait
from nacre.nem.run.memory.memory import memory_sizes
from nacre.nem.run.sessions.naming import statement_name
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS
from nacre.tcb.image import Image, Machine, Origin, Placement, Port

_DDR = "DDR"


def bind_program(
    program: Program,
    name: str,
    device: Device,
    ddr_bytes: int,
    uarch: Uarch = IDEAL,
    fused: FusedChains = NO_CHAINS,
    *,
    may_serialise: bool = False,
) -> Image:
    """Bind a program without errors; InputError where it cannot be bound."""
    profile = timing_profile(device)
    units = UnitBinder(device, profile)
    placements = place_in_order(program.buffers)
    order = order_program(program.body, fused.members)
    streams = {task.position: units.stream(task) for task in program.tasks}
    counts = _tag_counts(uarch)
    fitted = fit_tags(program, order, streams, counts, may_serialise=may_serialise)
    operands = OperandBinder({index: p.address for index, p in placements.items()}, fused.streamed)
    limit = profile.get("SEQ", "max_active_tokens")
    emitter = Emitter(units, operands, fused.members, has_token_limit=limit is not None)
    return Image(
        name,
        _machine(device, profile, uarch, ddr_bytes),
        tuple(placements.values()),
        tuple(_ports(placements.values())),
        emitter.streams(order, PlacedTags(fitted.tags, {}, {}, {})),
        origins=tuple(_origins(program)),
        source=program.source.name,
    )


def _machine(device: Device, profile: TimingProfile, uarch: Uarch, ddr_bytes: int) -> Machine:
    sizes, tags = memory_sizes(device, ddr_bytes), _tag_counts(uarch)
    memories = (("DDR", sizes.ddr), ("L2", sizes.l2), ("L1", sizes.l1))
    counts = tuple((unit, device.count(unit)) for unit in ENGINE_UNITS if unit != "SEQ")
    shared = tuple((unit, device.count(unit)) for unit in DEVICE_UNITS)
    return Machine(
        device.name,
        _hash(device),
        uarch.name,
        uarch.digest,
        device.num_engines,
        tuple(pair for pair in counts if pair[1]),
        tuple(pair for pair in shared if pair[1]),
        memories,
        profile.get("SEQ", "max_active_tokens"),
        tags.engine,
        tags.device,
        uarch.figures.differing,
    )


def _tag_counts(uarch: Uarch) -> TagCounts:
    figures = uarch.figures
    return TagCounts(figures.count("tags.engine") or None, figures.count("tags.device") or None)


def _hash(device: Device) -> str:
    """What tells whether a device is still the one that an image was bound to."""
    facts = (device.name, device.topology, sorted((u, sorted(c.items())) for u, c in
             device.characteristics.items()))  # fmt: skip
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _ports(placements: Iterable[Placement]) -> Iterator[Port]:
    """What the host can fill and read: the buffers in DDR."""
    for placement in placements:
        if placement.memory == _DDR:
            yield Port(placement.buffer, "inout", _DDR, placement.address, placement.size)


def _origins(program: Program) -> Iterator[Origin]:
    for statement in program.statements:
        if isinstance(statement, Task | Wait):
            line = program.span(statement.node).location.line
            layer = statement.debug_name if isinstance(statement, Task) else None
            yield Origin(statement.position, statement_name(program, statement), line, layer)

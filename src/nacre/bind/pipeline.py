"""The stages of binding, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.collection import no_collection
from nacre.base.diagnostics import InputError
from nacre.base.stages import stage
from nacre.bind.chains.trials import keep_faster_chains
from nacre.bind.emission import Emitter
from nacre.bind.forms import FormBinder
from nacre.bind.fusion import NO_CHAINS, FusedChains, fuse
from nacre.bind.memory.addresses import place_buffers
from nacre.bind.memory.banks import place_in_banks
from nacre.bind.memory.priorities import PriorityChoice, choose_priority, set_priority
from nacre.bind.memory.requests import RequestChoice, choose_requests, set_requests
from nacre.bind.memory.weight_trials import keep_what_pays
from nacre.bind.memory.weights import (
    PLAIN_WEIGHTS,
    TransferCosts,
    WeightChoices,
    choose_weights,
    compress_streams,
    stored_constants,
    wdm_modes,
)
from nacre.bind.operands import OperandBinder
from nacre.bind.order import order_program
from nacre.bind.placed_tags import PlacedTags
from nacre.bind.request import BindOptions, Bound, Host
from nacre.bind.rules import BND02
from nacre.bind.store_formats import merge_conversions
from nacre.bind.tag_pressure import NO_WINDOWS, FittedTags, TagCounts, fit_tags
from nacre.bind.task_places import origins_of
from nacre.bind.token_pressure import fit_tokens, require_end
from nacre.bind.uarch.reader import Uarch
from nacre.bind.units import UnitBinder, UnitDecisions
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Program
from nacre.nem.plan.plan import Plan
from nacre.nem.run.memory.memory import memory_sizes
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.run.timing.resources import NoUnitError
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS
from nacre.tcb.figures import Figures
from nacre.tcb.image import Image, Machine, Placement, Port

_DDR = "DDR"


def bind_plan(
    plan: Plan,
    name: str,
    device: Device,
    options: BindOptions = BindOptions(),  # noqa: B008 - a frozen value
    host: Host = Host(),  # noqa: B008
    fused: FusedChains | None = None,
) -> Bound:
    """Bind a program without errors; InputError where it cannot be bound.

    `fused` are chains of another binding of this plan, which are not chosen again.
    """
    with stage("binding: fused tasks"):
        figures = options.uarch.figures
        possible = NO_CHAINS
        if options.fuse and fused is None:
            possible = fuse(plan, device, figures, host.observed, host.imported)
    with stage("binding: blocks"), no_collection():
        # What is made on the way is gone before garbage is looked for again.
        return _bind_blocks(_Binding(plan, name, device, options, host), possible, fused)


def _bind_blocks(binding: _Binding, possible: FusedChains, fused: FusedChains | None) -> Bound:
    if fused is None:
        fused = keep_faster_chains(possible, binding.plain_image, binding.instances)
    return binding.bind(fused)


class _Draft(Struct, frozen=True, eq=False):
    """Streams of a program with some chains, before it is known how constants are stored."""

    fused: FusedChains
    fitted: FittedTags
    finisher: _Finisher


class _Binding:
    """A program on its way to a device: what does not depend on chains is decided once."""

    def __init__(
        self, plan: Plan, name: str, device: Device, options: BindOptions, host: Host
    ) -> None:
        program, profile, uarch = plan.program, timing_profile(device), options.uarch
        self._plan, self._name, self._device, self._host = plan, name, device, host
        self._options = options
        self._units = UnitBinder(device, profile, uarch.figures.count("cstl.parts"))
        _require_units(program, self._units)
        self._streams = self._units.streams(program.tasks)
        self._origins = tuple(origins_of(program, dict(host.layers)))
        self._forms = FormBinder(self._units)
        self._machine = _machine(device, profile, uarch, options.ddr_bytes)
        placed = place_buffers(program, self._machine)
        self._banks = place_in_banks(plan, self._machine, uarch.figures, placed)
        self._windows = NO_WINDOWS
        limit = self._machine.token_limit
        if limit is not None and not self._is_ideal:
            serialise = options.may_serialise
            self._windows = fit_tokens(plan, device, limit, may_serialise=serialise)
        self._drafts: dict[int, _Draft] = {}  # by the id of their chains, which they keep

    @property
    def instances(self) -> int:
        """Of the program's tasks."""
        return self._plan.instances

    @property
    def _is_ideal(self) -> bool:
        return not self._machine.figures

    def _draft(self, fused: FusedChains) -> _Draft:
        if id(fused) not in self._drafts:
            self._drafts[id(fused)] = self._make_draft(fused)
        return self._drafts[id(fused)]

    def _make_draft(self, fused: FusedChains) -> _Draft:
        program, machine = self._plan.program, self._machine
        order = order_program(program.body, fused.members)
        counts, serialise = _tag_counts(self._options.uarch), self._options.may_serialise
        limits = (counts, self._windows)
        fitted = fit_tags(program, order, self._streams, *limits, may_serialise=serialise)
        placements = self._banks.placements
        operands = OperandBinder(placements, self._forms.quants, fused.streamed)
        has_limit = machine.token_limit is not None
        given = (self._units, self._forms, operands, fused.members, self._streams)
        emitter = Emitter(*given, program.task_at, has_token_limit=has_limit)
        blocks = emitter.streams(order, PlacedTags(fitted.tags, {}, {}, {}, {}))
        plain = Image(
            self._name,
            machine,
            tuple(placements.values()),
            tuple(_ports(placements.values(), self._host)),
            merge_conversions(blocks, fused.conversions),
            (),
            self._origins,
            program.source.name,
        )
        return _Draft(fused, fitted, _Finisher(plain, self._options.uarch.figures, self._host))

    def plain_image(self, fused: FusedChains) -> Image:
        """The image with some chains, its constants as they are."""
        return self._draft(fused).finisher.image(PLAIN_WEIGHTS)

    def bind(self, fused: FusedChains) -> Bound:
        """The image with some chains, and all that was decided."""
        draft, device, instances = self._draft(fused), self._device, self._plan.instances
        weights = _weights(self._plan, device, self._options, self._host, self._units)
        weights = keep_what_pays(weights, draft.finisher.image, device, instances)
        finished = draft.finisher.finish(weights)
        limit = self._machine.token_limit
        if limit is not None and self._is_ideal:
            require_end(self._plan, device, finished.image, limit)
        area = draft.fitted.tags.area
        spaces = sorted(draft.fitted.tags.spaces)
        return Bound(
            finished.image,
            UnitDecisions(self._units, self._plan.program.tasks),
            fused,
            draft.fitted.serialised,
            weights,
            self._banks.memories,
            finished.requests,
            tuple((space, area(space).size) for space in spaces),
            finished.priority,
        )


class _Finished(Struct, frozen=True, eq=False):
    """An image, and what was decided last."""

    image: Image
    requests: tuple[RequestChoice, ...]
    priority: PriorityChoice


class _Finisher(Struct, frozen=True, eq=False):
    """An image without constants, and what is decided when it is known how these are stored."""

    plain: Image
    figures: Figures
    host: Host

    def finish(self, weights: WeightChoices) -> _Finished:
        """The image with its constants, the requests of its transfers and its priorities."""
        blocks = compress_streams(self.plain.streams, weights.compressed)
        requests = choose_requests(blocks, self.figures)
        priority = choose_priority(blocks, self.plain.machine, self.figures)
        by_name = {placement.buffer: placement for placement in self.plain.placements}
        constants = tuple(stored_constants(by_name, self.host.constants, weights.parts))
        streams = set_priority(set_requests(blocks, requests), priority)
        image = replace(self.plain, streams=streams, constants=constants)
        return _Finished(image, requests, priority)

    def image(self, weights: WeightChoices) -> Image:
        """The image alone."""
        return self.finish(weights).image


def _weights(
    plan: Plan, device: Device, options: BindOptions, host: Host, units: UnitBinder
) -> WeightChoices:
    """What of the constants goes through the WDM."""
    if not host.constants:
        return PLAIN_WEIGHTS
    if not options.wdm:
        return WeightChoices(absent="compressing was turned off")
    modes = wdm_modes(device, options.uarch.figures)
    if isinstance(modes, str):
        return WeightChoices(absent=modes)
    of_host = set(host.visible)
    if not host.ports:  # every buffer in DDR is one
        of_host |= {buffer.name for buffer in plan.program.buffers if buffer.level == _DDR}
    costs = TransferCosts(plan, modes, units, timing_profile(device))
    with stage("binding: weights"):
        return choose_weights(plan, host.constants, of_host, modes, costs)


def _require_units(program: Program, units: UnitBinder) -> None:
    """InputError with all tasks that can run nowhere."""
    homeless = units.look_at(program.tasks)
    if homeless:
        raise InputError([
            BND02.at(program.span(task.node), str(NoUnitError(task))) for task in homeless
        ])  # fmt: skip


def _machine(device: Device, profile: TimingProfile, uarch: Uarch, ddr_bytes: int) -> Machine:
    sizes, tags = memory_sizes(device, ddr_bytes), _tag_counts(uarch)
    memories = (("DDR", sizes.ddr), ("L2", sizes.l2), ("L1", sizes.l1))
    counts = tuple((unit, device.count(unit)) for unit in ENGINE_UNITS if unit != "SEQ")
    shared = tuple((unit, device.count(unit)) for unit in DEVICE_UNITS)
    return Machine(
        device.name,
        device.digest,
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


def _ports(placements: Iterable[Placement], host: Host) -> Iterator[Port]:
    """What the host fills and reads: what it says, or else the buffers in DDR."""
    by_name = {placement.buffer: placement for placement in placements}
    for port in host.ports:
        found = by_name[port.buffer]
        place = (found.memory, found.address, found.size)
        scales = () if port.scale is None else (port.scale,)
        zeros = () if port.scale is None else (port.zero or 0,)
        types = (port.elem, port.dims, port.host_elem)
        yield Port(port.name, port.kind, *place, *types, scales, zeros)
    if not host.ports:
        for found in by_name.values():
            if found.memory == _DDR:
                yield Port(found.buffer, "inout", _DDR, found.address, found.size)

"""Chains: which tasks of a program stream into each other on a device, and why others do not.

What may be fused by the meaning of the program is the language's to say; here the hardware decides:
which unit streams into which, how many blocks make a chain, and what a queue can take. A chain
stands in its queue where its last task does, so nothing in between may wait for one of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from nacre.bind.store_formats import Conversion, Conversions, find_conversions
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.fusion.chains import Chain, find_chains
from nacre.nem.plan.fusion.conditions import REASONS
from nacre.nem.plan.fusion.stages import Stage, place_stage
from nacre.nem.plan.fusion.value_reads import ValueRead
from nacre.nem.plan.plan import Plan
from nacre.tcb.figures import Figures

_LINK_NAMES: dict[tuple[Stage, Stage], str] = {
    ("product", "elementwise"): "NMU_CSTLA",
    ("product", "store"): "NMU_CSTLB",
    ("elementwise", "store"): "CSTLA_CSTLB",
    # The store behind a conversion does both.
    ("product", "conversion"): "NMU_CSTLB",
    ("elementwise", "conversion"): "CSTLA_CSTLB",
}
# Reasons of the hardware, beside those of the language.
HARDWARE_REASONS = {
    "link": "the device does not chain these units",
    "depth": "the chain would be longer than the device allows",
    "queue": "a task between them waits for one of them",
    "format": "the store path does not do the conversion",
    "late": "the reader waits for something else as well, and the writer would wait with it",
    "slower": "with it the image would take longer or not end",
}


class NotFused(Struct, frozen=True, eq=False):
    """A pair of tasks that is not fused, and why."""

    writer: Task
    reader: Task
    reason: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return HARDWARE_REASONS.get(self.reason) or REASONS[self.reason]


class FusedChains(Struct, frozen=True, eq=False):
    """What is fused, and what is not."""

    chains: tuple[Chain, ...] = ()
    refusals: tuple[NotFused, ...] = ()
    conversions: tuple[Conversion, ...] = ()  # of these chains, done by the stores behind them

    @property
    def streaming(self) -> tuple[Chain, ...]:
        """The chains of several blocks: a conversion and its store are one."""
        merged = {conversion.task.position for conversion in self.conversions}
        return tuple(
            chain for chain in self.chains
            if sum(task.position not in merged for task in chain.tasks) > 1
        )  # fmt: skip

    @property
    def last_of(self) -> dict[int, int]:
        """The position of the last task of its chain, by that of every task in one."""
        return {t.position: chain.tasks[-1].position for chain in self.chains for t in chain.tasks}

    @property
    def members(self) -> dict[int, tuple[Task, ...]]:
        """The tasks of a chain, by the position of its last."""
        return {chain.tasks[-1].position: chain.tasks for chain in self.chains}

    @property
    def streamed(self) -> set[int]:
        """The operands of tasks whose values are never written, by id."""
        links = (link for chain in self.chains for link in chain.links)
        operands: Iterable[Operand] = (o for k in links for o in (k.write.operand, k.read.operand))
        return {id(operand) for operand in operands}

    @property
    def link_count(self) -> int:
        """How many values are never written."""
        return sum(len(chain.links) for chain in self.chains)

    def without(self, links: Iterable[ValueRead], reason: str = "late") -> FusedChains:
        """What is left where chains are cut, since they would make the program slower."""
        cut = {id(link) for link in links}
        if not cut:
            return self
        chains = tuple(part for chain in self.chains for part in _cut_chain(chain, cut))
        left = {id(link) for chain in chains for link in chain.links}
        dropped = (link for chain in self.chains for link in chain.links if id(link) not in left)
        pairs = (NotFused(link.write.task, link.read.task, reason) for link in dropped)
        return FusedChains(chains, (*self.refusals, *pairs), _merged(chains, self.conversions))


def _cut_chain(chain: Chain, links: Container[int]) -> tuple[Chain, ...]:
    """The parts of a chain without some links, by their ids."""
    at = next((at for at, link in enumerate(chain.links) if id(link) in links), None)
    if at is None:
        return (chain,)
    parts, _ = chain.split(at)
    return tuple(left for part in parts for left in _cut_chain(part, links))


def _merged(chains: Iterable[Chain], found: Iterable[Conversion]) -> tuple[Conversion, ...]:
    """The conversions that stand in a chain before their stores."""
    by_task = {one.task.position: one for one in found}
    pairs = (pair for chain in chains for pair in pairwise(chain.tasks))
    merged = ((by_task.get(task.position), after) for task, after in pairs)
    return tuple(one for one, after in merged if one is not None and one.store is after)


NO_CHAINS = FusedChains()


def fuse(
    plan: Plan,
    device: Device,
    figures: Figures,
    observed: Iterable[str] = (),
    imported: Iterable[str] = (),
) -> FusedChains:
    """The chains of a plan without errors; `observed` are buffers that are looked at afterwards."""
    formats = frozenset(figures.words("store.formats"))
    if not figures.words("chain.links") and formats <= {"raw", "saturated"}:
        return NO_CHAINS
    conversions = find_conversions(plan, figures)
    found = find_chains(plan, device, observed, imported, conversions.place)
    refusals = [_with_format_reason(NotFused(r.writer, r.reader, r.reason, r.detail), conversions)
                for r in found.refusals]  # fmt: skip
    search = _HardwareSearch(plan, device, figures, conversions, refusals)
    chains = tuple(part for chain in found.chains for part in search.allowed_parts(chain))
    return FusedChains(chains, tuple(refusals), _merged(chains, conversions.found.values()))


def _with_format_reason(refused: NotFused, conversions: Conversions) -> NotFused:
    """A refusal; of a conversion that the store path does not do, with that as its reason."""
    one = conversions.refused.get((refused.writer.position, refused.reader.position))
    if one is None or refused.reason not in ("units", "link"):
        return refused
    return NotFused(refused.writer, refused.reader, "format", one.detail)


class _HardwareSearch:
    """What is left of chains where links that the hardware does not have are cut."""

    def __init__(
        self,
        plan: Plan,
        device: Device,
        figures: Figures,
        conversions: Conversions,
        refusals: list[NotFused],
    ) -> None:
        self._plan, self._device, self._figures = plan, device, figures
        self._conversions, self._refusals = conversions, refusals
        self._waiting = _Waiters(plan.program.tasks)

    def allowed_parts(self, chain: Chain) -> list[Chain]:
        """The parts of a chain that the hardware has, in their order."""
        at = self._first_wrong_link(chain)
        if at is None:
            return [chain]
        index, reason = at
        parts, link = chain.split(index)
        refused = NotFused(link.write.task, link.read.task, reason)
        self._refusals.append(_with_format_reason(refused, self._conversions))
        return [left for part in parts for left in self.allowed_parts(part)]

    def _stages(self, chain: Chain) -> list[Stage | None]:
        """What the tasks of a chain are; a conversion without its store is what it was."""
        tasks = (*chain.tasks, None)
        stages: list[Stage | None] = []
        for task, after in pairwise(tasks):
            assert task is not None
            placed = self._conversions.place(task, self._plan, self._device)
            found = self._conversions.found.get(task.position)
            if found is not None and found.store is not after:
                placed = place_stage(task, self._plan, self._device)
            stages.append(placed.stage)
        return stages

    def _first_wrong_link(self, chain: Chain) -> tuple[int, str] | None:
        allowed, stages = self._figures.words("chain.links"), self._stages(chain)
        for index, pair in enumerate(pairwise(stages)):
            first, second = pair
            if first == "conversion":
                continue
            if first is None or second is None or _LINK_NAMES.get((first, second)) not in allowed:
                return index, "link"
        most = self._figures.count("chain.depth")
        if sum(stage != "conversion" for stage in stages) > most:
            return most - 1, "depth"
        return (len(chain.links) - 1, "queue") if self._waiting.stands_between(chain) else None


class _Waiters:
    """Who waits for whom, asked for what stands between two tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._waiters: dict[int, list[int]] = {}  # positions of those that name a task
        for task in tasks:
            for dep in task.deps:
                self._waiters.setdefault(dep, []).append(task.position)

    def stands_between(self, chain: Chain) -> bool:
        """Whether a task before the last of a chain, and not in it, waits for one of it."""
        inside = {task.position for task in chain.tasks}
        last = chain.tasks[-1].position
        return any(
            waiter < last and waiter not in inside
            for position in inside
            for waiter in self._waiters.get(position, ())
        )

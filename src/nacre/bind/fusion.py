"""Chains: which tasks of a program stream into each other on a device, and why others do not.

What may be fused by the meaning of the program is the language's to say; here the hardware decides:
which unit streams into which, how many blocks make a chain, and what a queue can take. A chain
stands in its queue where its last task does, so nothing in between may wait for one of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from nacre.nem.model.devices import Device
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.fusion.chains import Chain, find_chains
from nacre.nem.plan.fusion.conditions import REASONS
from nacre.nem.plan.fusion.stages import Stage, place_stage
from nacre.nem.plan.plan import Plan
from nacre.tcb.figures import Figures

_LINK_NAMES: dict[tuple[Stage, Stage], str] = {
    ("product", "elementwise"): "NMU_CSTLA",
    ("product", "store"): "NMU_CSTLB",
    ("elementwise", "store"): "CSTLA_CSTLB",
}
# Reasons of the hardware, beside those of the language.
HARDWARE_REASONS = {
    "link": "the device does not chain these units",
    "depth": "the chain would be longer than the device allows",
    "queue": "a task between them waits for one of them",
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


NO_CHAINS = FusedChains()


def fuse(
    plan: Plan,
    device: Device,
    figures: Figures,
    observed: Iterable[str] = (),
    imported: Iterable[str] = (),
) -> FusedChains:
    """The chains of a plan without errors; `observed` are buffers that are looked at afterwards."""
    if not figures.words("chain.links"):
        return NO_CHAINS
    found = find_chains(plan, device, observed, imported)
    refusals = [NotFused(r.writer, r.reader, r.reason, r.detail) for r in found.refusals]
    waiting = _Waiters(plan.program.tasks)
    chains: list[Chain] = []
    for chain in found.chains:
        chains += _allowed_parts(chain, plan, device, figures, waiting, refusals)
    return FusedChains(tuple(chains), tuple(refusals))


def _allowed_parts(
    chain: Chain,
    plan: Plan,
    device: Device,
    figures: Figures,
    waiting: _Waiters,
    refusals: list[NotFused],
) -> list[Chain]:
    """What is left of a chain where its links that the hardware does not have are cut."""
    at = _first_wrong_link(chain, plan, device, figures, waiting)
    if at is None:
        return [chain]
    index, reason = at
    parts, link = chain.split(index)
    refusals.append(NotFused(link.write.task, link.read.task, reason))
    return [
        left
        for part in parts
        for left in _allowed_parts(part, plan, device, figures, waiting, refusals)
    ]


def _first_wrong_link(
    chain: Chain, plan: Plan, device: Device, figures: Figures, waiting: _Waiters
) -> tuple[int, str] | None:
    allowed = figures.words("chain.links")
    stages = [place_stage(task, plan, device).stage for task in chain.tasks]
    for index, pair in enumerate(pairwise(stages)):
        first, second = pair
        if first is None or second is None or _LINK_NAMES[first, second] not in allowed:
            return index, "link"
    if len(chain.tasks) > figures.count("chain.depth"):
        return figures.count("chain.depth") - 1, "depth"
    return (len(chain.links) - 1, "queue") if waiting.stands_between(chain) else None


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

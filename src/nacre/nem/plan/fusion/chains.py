"""The chains of a plan that a binder may fuse, and why other pairs are not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from operator import attrgetter

from msgspec import Struct

from nacre.nem.model.devices import Device
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.fusion.conditions import (
    Circumstances,
    Refusal,
    refusal_of_member,
    refusal_of_pair,
)
from nacre.nem.plan.fusion.stages import PlaceStage, place_stage
from nacre.nem.plan.fusion.value_reads import ValueRead, ValueReads, value_reads
from nacre.nem.plan.plan import Plan


class Chain(Struct, frozen=True, eq=False):
    """Tasks that stream into each other in every iteration, and the values that they do not write.

    The first has all of a chain's waits: it starts when every member could.
    """

    tasks: tuple[Task, ...]
    links: tuple[ValueRead, ...]  # one fewer

    @property
    def head(self) -> Task:
        """The task that begins it."""
        return self.tasks[0]

    @property
    def times(self) -> int:
        """How often it runs."""
        return self.links[0].write.grid.rows

    def split(self, at: int) -> tuple[tuple[Chain, ...], ValueRead]:
        """The chains that are left without a link, and that link."""
        parts = (
            (self.tasks[: at + 1], self.links[:at]),
            (self.tasks[at + 1 :], self.links[at + 1 :]),
        )
        return tuple(Chain(*part) for part in parts if part[1]), self.links[at]


class Fusion(Struct, frozen=True, eq=False):
    """What may be fused, and what not."""

    chains: tuple[Chain, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def streamed(self) -> Iterator[Operand]:
        """The operands that hold values which are never written."""
        for link in (link for chain in self.chains for link in chain.links):
            yield link.write.operand
            yield link.read.operand


def find_chains(
    plan: Plan,
    device: Device,
    observed: Iterable[str] = (),
    imported: Iterable[str] = (),
    place: PlaceStage = place_stage,
) -> Fusion:
    """The chains of a plan without errors on a device.

    `observed` are buffers that somebody looks at after the run, `imported` those of the host;
    `place` says what a task can be in a chain.
    """
    about = Circumstances(plan, device, frozenset(observed), frozenset(imported), place, {})
    reads = value_reads(plan)
    refusals = list(_refusals_of_unknown(plan, reads))
    links: list[ValueRead] = []
    for pair in reads.reads:
        refusal = refusal_of_pair(pair, about)
        if refusal is None:
            links.append(pair)
        else:
            refusals.append(refusal)
    chains = _ChainBuilder(about, refusals).build(links)
    chains = _uncross(chains, plan.program.tasks, refusals)
    refusals.sort(key=lambda one: (one.reader.position, one.writer.position))
    return Fusion(tuple(chains), tuple(refusals))


def _refusals_of_unknown(plan: Plan, reads: ValueReads) -> Iterator[Refusal]:
    """Pairs that meet in a buffer which could not be followed, by their tokens."""
    for task in plan.program.tasks if reads.unknown else ():
        mine = _buffers(task, "read") & reads.unknown
        for dep in task.deps if mine else ():
            writer = plan.program.task_at[dep]
            if writer.op not in ("transfer", "store") and _buffers(writer, "write") & mine:
                yield Refusal(writer, task, "unknown")


def _buffers(task: Task, access: str) -> set[int]:
    regions = (o.region for o in task.operands if o.access == access)
    return {region.buffer.index for region in regions if region and region.buffer}


class _ChainBuilder:
    """Puts links together, in the order of the text."""

    def __init__(self, about: Circumstances, refusals: list[Refusal]) -> None:
        self._about = about
        self._refusals = refusals
        self._ending: dict[int, Chain] = {}  # by the position of the last task
        self._read: set[int] = set()  # tasks that stream a value already

    def build(self, links: list[ValueRead]) -> list[Chain]:
        """Chains as long as can be; of several values that a task could stream, the latest."""
        for link in sorted(links, key=lambda one: (one.read.position, -one.write.position)):
            self._add(link)
        return sorted(self._ending.values(), key=lambda chain: chain.head.position)

    def _add(self, link: ValueRead) -> None:
        writer, reader = link.write.task, link.read.task
        if reader.position in self._read:
            self._refusals.append(Refusal(writer, reader, "taken"))
            return
        before = self._ending.get(writer.position, Chain((writer,), ()))
        refusal = refusal_of_member(before.tasks, before.links, link, self._about)
        if refusal is not None:
            self._refusals.append(refusal)
            return
        self._ending.pop(writer.position, None)
        self._ending[reader.position] = Chain((*before.tasks, reader), (*before.links, link))
        self._read.add(reader.position)


def _uncross(chains: list[Chain], tasks: Sequence[Task], refusals: list[Refusal]) -> list[Chain]:
    """Leave out chains until none waits for one that waits for it.

    Where everything that a chain waits for stands before its head, order is that of the text: only
    chains that wait for something further down can cross.
    """
    while (crossing := _crossing_chain(chains, tasks)) is not None:
        chains = [chain for chain in chains if chain is not crossing]
        refusals += (Refusal(k.write.task, k.read.task, "crossing") for k in crossing.links)
    return chains


def _crossing_chain(chains: list[Chain], tasks: Sequence[Task]) -> Chain | None:
    """The last of some chains that wait for each other; None where order is left."""
    chain_of = {task.position: chain for chain in chains for task in chain.tasks}
    head_of = {position: chain.head.position for position, chain in chain_of.items()}
    late = {chain.head.position: chain for chain in chains if _waits_for_later(chain, head_of)}
    graph: TopologicalSorter[int] = TopologicalSorter()
    for task in _tasks_between(late.values(), tasks):
        own = head_of.get(task.position, task.position)
        members = chain_of[own].tasks if own in chain_of else (task,)
        deps = {head_of.get(dep, dep) for member in members for dep in member.deps}
        graph.add(own, *(deps - {own}))
    try:
        graph.prepare()
    except CycleError as error:
        return late[max(late.keys() & set(error.args[1]))]
    return None


def _waits_for_later(chain: Chain, head_of: dict[int, int]) -> bool:
    head = chain.head.position
    return any(dep > head and head_of.get(dep) != head for t in chain.tasks for dep in t.deps)


def _tasks_between(chains: Iterable[Chain], tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks from each chain's first to its last, each once: a circle has no other heads."""
    following = 0
    for chain in chains:  # in the order of the text
        first = bisect_left(tasks, chain.head.position, following, key=attrgetter("position"))
        following = bisect_right(tasks, chain.tasks[-1].position, first, key=attrgetter("position"))
        yield from tasks[first:following]

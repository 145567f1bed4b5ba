"""How long a plan takes when chains of tasks stream into each other.

A chain is one event: it starts when every member could, holds the units of all of them, and takes
the latencies one after the other and the longest work. The head stands for it; the other members
start and end as it ends, so that what waits for any of them waits for the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from nacre.base.stages import stage
from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.plan.edges import EventGraph
from nacre.nem.plan.fusion.chains import Chain, Fusion
from nacre.nem.plan.fusion.conditions import Refusal
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.timing.costs import latency_of
from nacre.nem.run.timing.resources import NONE, Placement
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import Timeline, time_placed


class ChainCycles(Struct, frozen=True):
    """Cycles of a chain, all its iterations together."""

    alone: int  # its tasks one after the other
    chained: int


@dataclass(frozen=True, eq=False, repr=False)
class FusedResult:
    """A plan timed without and with the chains that make it faster."""

    before: TimedResult
    after: TimedResult
    fusion: Fusion  # what is fused in `after`; the rest of the chains are among its refusals

    @property
    def saved(self) -> int:
        """Cycles that the chains save."""
        return self.before.cycles - self.after.cycles

    @property
    def chains(self) -> tuple[Chain, ...]:
        """What is fused."""
        return self.fusion.chains

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What is not, and why."""
        return self.fusion.refusals

    def cycles_of(self, chain: Chain) -> ChainCycles:
        """What a chain takes, task by task and as one."""
        timeline = self.before.timeline
        durations = [timeline.placement.duration[rows] for rows in _rows(timeline.steps, chain)]
        alone = sum(int(column.sum()) for column in durations)
        return ChainCycles(alone, int(_chain_durations(timeline, chain).sum()))

    def __repr__(self) -> str:
        cycles = f"{self.before.cycles} to {self.after.cycles} cycles"
        return f"<FusedResult {len(self.chains)} chains: {cycles}>"


def time_fused(before: TimedResult, fusion: Fusion) -> FusedResult:
    """Time a plan with its chains, without those by which it would take longer.

    Four plans are compared: all chains, those that no member but the head slows down, those that
    hold no NMU, and none.
    """
    ways = (_leave_out_slow_readers, _leave_out_products)
    plans = [fusion, *(leave_out(before.timeline, fusion) for leave_out in ways)]
    different = {_links(plan): plan for plan in plans if plan.chains}
    with stage("timing: fused tasks"):
        timed = [(time_chains(before, plan.chains), plan) for plan in different.values()]
    timed.append((before, _leave_out_all(fusion)))
    after, plan = min(timed, key=_rank_key)
    return FusedResult(before, after, plan)


def _rank_key(timed: tuple[TimedResult, Fusion]) -> tuple[bool, int, int]:
    """The quickest comes first; of equals, the one that fuses most."""
    result, plan = timed
    return result.timeline.is_stuck, result.cycles, -len(_links(plan))


def _links(fusion: Fusion) -> frozenset[int]:
    return frozenset(id(link) for chain in fusion.chains for link in chain.links)


def _leave_out_slow_readers(timeline: Timeline, fusion: Fusion) -> Fusion:
    """The chains in which an NMU does not wait for what follows it: they are cut before that."""
    cuts = {}
    for chain in fusion.chains:
        if _unit(timeline, chain.head) == "NMU":
            head, *others = (int(work.sum()) for work in _work_of_members(timeline, chain))
            slow = next((at for at, work in enumerate(others) if work > head), None)
            if slow is not None:
                cuts[id(chain)] = slow
    return _leave_out(fusion, cuts)


def _leave_out_products(timeline: Timeline, fusion: Fusion) -> Fusion:
    """The chains of a CSTL alone, which is free earlier by them than without."""
    heads = (chain for chain in fusion.chains if _unit(timeline, chain.head) == "NMU")
    return _leave_out(fusion, {id(chain): 0 for chain in heads})


def _leave_out(fusion: Fusion, cuts: dict[int, int]) -> Fusion:
    """A fusion without one link of some chains, by their ids; what is left of them stays."""
    chains: list[Chain] = []
    refusals = list(fusion.refusals)
    for chain in fusion.chains:
        if id(chain) not in cuts:
            chains.append(chain)
            continue
        parts, link = chain.split(cuts[id(chain)])
        chains += parts
        refusals.append(Refusal(link.write.task, link.read.task, "slower"))
    refusals.sort(key=lambda one: (one.reader.position, one.writer.position))
    return Fusion(tuple(chains), tuple(refusals))


def _leave_out_all(fusion: Fusion) -> Fusion:
    while fusion.chains:
        fusion = _leave_out(fusion, {id(chain): 0 for chain in fusion.chains})
    return fusion


def time_chains(before: TimedResult, chains: Sequence[Chain]) -> TimedResult:
    """Time a plan with all of some chains, whatever that costs."""
    timeline = before.timeline
    steps = replace(timeline.steps, other_graph=_chained_graph(timeline.steps, chains))
    placement = _chained_placement(timeline, chains)
    after = time_placed(steps, timeline.device, timeline.profile, placement)
    return TimedResult(after, before.clock_mhz)


def _rows(steps: Steps, chain: Chain) -> list[Column]:
    """The steps of each member, one for every iteration."""
    return [steps.numbers[task.position] for task in chain.tasks]


def _unit(timeline: Timeline, task: Task) -> str:
    step = timeline.steps.numbers[task.position][0]
    return timeline.placement.pools[int(timeline.placement.pool[step, 0])].unit


def _work_of_members(timeline: Timeline, chain: Chain) -> Iterator[Column]:
    """The cycles of each member beyond its latency."""
    for task, rows in zip(chain.tasks, _rows(timeline.steps, chain), strict=True):
        latency = latency_of(task, _unit(timeline, task), timeline.profile)
        yield timeline.placement.duration[rows] - latency


def _chain_durations(timeline: Timeline, chain: Chain) -> Column:
    """Cycles of a chain in every iteration: all latencies, and the longest work."""
    units = ((task, _unit(timeline, task)) for task in chain.tasks)
    latency = sum(latency_of(task, unit, timeline.profile) for task, unit in units)
    works: Column = np.max(list(_work_of_members(timeline, chain)), axis=0)
    return works + latency


def _chained_placement(timeline: Timeline, chains: Sequence[Chain]) -> Placement:
    """Heads take the units of their chains; the other members take none, and no time."""
    placement = timeline.placement
    duration, shared = placement.duration.copy(), placement.shared.copy()
    pool, bound = placement.pool.copy(), placement.bound.copy()
    for chain in chains:
        head, *others = _rows(timeline.steps, chain)
        duration[head] = _chain_durations(timeline, chain)
        shared[head] = np.max([placement.shared[rows] for rows in (head, *others)], axis=0)
        slot = 1 if _unit(timeline, chain.head) == "NMU" else 0
        pool[head, slot] = placement.pool[others[-1], 0]
        members = [*others, *(() if slot else (head,))]
        bound[head, slot] = np.max([placement.bound[rows, 0] for rows in members], axis=0)
        for rows in others:
            duration[rows] = shared[rows] = 0
            pool[rows], bound[rows] = NONE, NONE
    return replace(
        placement,
        duration=np.maximum(duration, shared),
        shared=shared,
        pool=pool,
        bound=bound,
    )


def _chained_graph(steps: Steps, chains: Sequence[Chain]) -> EventGraph:
    """The graph in which a chain's head also waits for what its other members wait for.

    What waits for a member waits for the head itself: a member ends with it, and a task that is
    ready in the same cycle must not be chosen before those that come first.
    """
    graph = steps.graph
    head_of = np.arange(graph.size)
    for chain in chains:
        first = graph.first_node[chain.head.position]
        for task in chain.tasks[1:]:
            node = graph.first_node[task.position]
            head_of[node : node + chain.times] = np.arange(first, first + chain.times)
    source_heads, target_heads = head_of[graph.sources], head_of[graph.targets]
    outside = source_heads != target_heads
    sources = np.where(outside, source_heads, graph.sources)
    further = outside & (target_heads != graph.targets)
    return replace(
        graph,
        sources=np.concatenate([sources, source_heads[further]]),
        targets=np.concatenate([graph.targets, target_heads[further]]),
    )

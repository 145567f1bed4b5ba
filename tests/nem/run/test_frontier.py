"""The frontier against the closed graph of events, forwards and backwards."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.run.sessions.frontier import Frontier
from nacre.nem.run.sessions.steps import Steps, number_steps
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.run.programs import Items, loaded, runnable

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])


def steps_before(steps: Steps) -> list[set[int]]:
    """By step, the steps that must come before it."""
    graph = steps.graph
    sources: list[set[int]] = [set() for _ in range(graph.size)]
    for source, target in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        sources[target].add(source)
    step_of = {int(node): step for step, node in enumerate(steps.node.tolist())}
    found = []
    for node in steps.node.tolist():
        seen: set[int] = set()
        stack = [node]
        while stack:
            fresh = sources[stack.pop()] - seen
            seen |= fresh
            stack += fresh
        found.append({step_of[n] for n in seen if n in step_of})
    return found


def able(before: list[set[int]], done: set[int]) -> list[int]:
    return [s for s in range(len(before)) if s not in done and before[s] <= done]


def steps_in(items: Items) -> Steps:
    return number_steps(loaded(items, NemInterpreter()).plan)


@few
@given(st.one_of(runnable(), runnable(racy=True)), seeds)
def test_ready_are_the_steps_with_nothing_open_before_them(items: Items, seed: int) -> None:
    steps, rng = steps_in(items), random.Random(seed)
    frontier, before, done = Frontier(steps), steps_before(steps), set[int]()
    while frontier.ready:
        assert frontier.ready == able(before, done)
        assert all(frontier.is_ready(s) == (s in frontier.ready) for s in range(steps.count))
        step = rng.choice(frontier.ready)
        frontier.complete(step)
        done.add(step)
        assert all(frontier.is_done(int(steps.node[s])) == (s in done) for s in range(steps.count))
    assert len(done) == steps.count
    assert all(frontier.is_done(node) for node in range(steps.graph.size))


@few
@given(runnable(), seeds)
def test_undoing_is_the_reverse_of_completing(items: Items, seed: int) -> None:
    steps, rng = steps_in(items), random.Random(seed)
    frontier, before = Frontier(steps), steps_before(steps)
    taken: list[tuple[int, list[int]]] = []
    for _ in range(4 * steps.count):
        if taken and (not frontier.ready or rng.random() < 0.4):
            frontier.undo(*taken.pop())
        else:
            step = rng.choice(frontier.ready)
            taken.append((step, frontier.complete(step)))
        done = {step for step, _ in taken}
        assert frontier.ready == able(before, done)
        assert all(frontier.is_done(int(steps.node[s])) == (s in done) for s in range(steps.count))
    while taken:
        frontier.undo(*taken.pop())
    fresh = Frontier(steps)
    assert frontier.ready == fresh.ready
    nodes = range(steps.graph.size)
    assert [frontier.is_done(n) for n in nodes] == [fresh.is_done(n) for n in nodes]


def test_a_program_without_tasks_has_nothing_ready() -> None:
    program = NemInterpreter().load_string("buffer A : L1 (size=8)\n")
    assert Frontier(number_steps(program.plan)).ready == []

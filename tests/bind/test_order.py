"""What NEM orders, tags order, and nothing else."""

from __future__ import annotations

import pytest

from nacre.bind.pipeline import bind_plan
from nacre.nem.plan.edges import event_graph
from nacre.nem.plan.plan import Plan
from tests.bind.interleavings import Key, run_by_tags, run_without
from tests.bind.programs import PROGRAMS, checked

pytestmark = pytest.mark.sampled(2)  # together they take long


def pairs(plan: Plan) -> set[tuple[Key, Key]]:
    """Every pair of task instances that the plan orders, by a walk over its graph."""
    graph = event_graph(plan)
    owner: dict[int, Key] = {}
    for task in plan.program.tasks:
        grid = plan.grid_of(task.loops)
        assert grid is not None
        for row in range(grid.rows):
            counters = tuple(int(column[row]) for column in grid.ordinals)
            owner[graph.node(task, row)] = (task.position, counters)
    reach: dict[int, set[int]] = {}

    def after(node: int) -> set[int]:
        if node not in reach:
            reach[node] = set()
            for target in graph.after.of(node):
                reach[node] |= {target} | after(target)
        return reach[node]

    return {(owner[u], owner[v]) for u in owner for v in after(u) if v in owner}


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_order_by_tags_is_an_order_of_the_plan(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    image = bind_plan(plan, "p", device).image
    ordered = pairs(plan)
    assert ordered
    for seed in range(20):
        place = {key: at for at, key in enumerate(run_by_tags(image, seed))}
        assert len(place) == plan.instances
        wrong = [(u, v) for u, v in ordered if place[u] > place[v]]
        assert not wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_tags_order_exactly_what_the_plan_orders(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    image = bind_plan(plan, "p", device).image
    ordered = pairs(plan)
    keys = set(run_by_tags(image, 0))
    for key in keys:
        after = keys - run_without(image, key) - {key}
        assert after == {v for u, v in ordered if u == key}, key

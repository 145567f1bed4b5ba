"""What NEM orders, tags order, and nothing else."""

from __future__ import annotations

import re

import pytest

from nacre.base.source import Source
from nacre.bind.pipeline import bind_program
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.devices import Device
from nacre.nem.plan.edges import event_graph
from nacre.nem.plan.plan import Plan
from tests.bind.interleavings import Key, run_by_tags, run_without

HEAD = """include "npm_mid.nem"
device npm_mid
program p:
buffer D : DDR (size=65536)
buffer A : L1[0] (size=65536)
buffer B : L1[1] (size=65536)
"""


PROGRAMS = {
    "flat": """
a = copy A 0
b = copy A 64 deps a
c = copy A 128
wait(b, c)
d = copy A 192
""",
    "loop": """
w = copy A 4096
loop i in [0..6] @max_in_flight(3):
x = copy A (i mod 3) * 64
y = copy A 1024 + (i mod 3) * 64 deps x, w
endloop
z = copy A 8192
""",
    "nest": """
loop i in [0..4] @max_in_flight(2):
x = copy A (i mod 2) * 64
loop j in [0..i + 1] @max_in_flight(2):
y = copy A 1024 + (i mod 2) * 256 + (j mod 2) * 64 deps x
endloop
u = copy A 2048 + (i mod 2) * 64
wait(u)
loop k in [0..2]:
v = copy A 3072 + (i mod 2) * 64
endloop
endloop
loop m in [0..3] @max_in_flight(4):
q = copy A 4096 + m * 64
endloop
""",
    "engines": """
loop i in [0..3] @max_in_flight(2):
x = copy A (i mod 2) * 64
y = copy B (i mod 2) * 64 deps x
loop j in [0..2] @max_in_flight(2):
z = copy B 1024 + (i mod 2) * 128 + (j mod 2) * 64
endloop
loop k in [0..2] @max_in_flight(3):
r = copy A 1024 + (i mod 2) * 256 + (k mod 3) * 64
endloop
endloop
e = copy B 9000
f = copy A 9000
""",
}
_COPY = re.compile(r"(?m)^(\w+) = copy (\w) (.*?)(?: deps (.*))?$")


def program(text: str) -> str:
    """A text whose lines `x = copy A 0 deps y` are transfers of 64 bytes into a buffer."""

    def transfer(found: re.Match[str]) -> str:
        name, buffer, offset, deps = found.groups()
        waits = f", deps=[{deps}]" if deps else ""
        source = "src=region(D, 0, 64)"
        return f"{name} = transfer.async(dst=region({buffer}, {offset}, 64), {source}{waits})"

    return HEAD + _COPY.sub(transfer, text)


def checked(text: str) -> tuple[Plan, Device]:
    found = check_source(Source("p.nem", program(text)), CheckOptions())
    errors = [d for d in found.diagnostics if d.severity == "error"]
    assert not errors, errors
    assert found.facts is not None
    return found.facts.plan, found.device


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
    image = bind_program(plan.program, "p", device, 1 << 20)
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
    image = bind_program(plan.program, "p", device, 1 << 20)
    ordered = pairs(plan)
    keys = set(run_by_tags(image, 0))
    for key in keys:
        after = keys - run_without(image, key) - {key}
        assert after == {v for u, v in ordered if u == key}, key

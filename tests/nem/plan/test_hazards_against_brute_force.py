"""The checker's hazards and order against the naive reading of random programs."""

from __future__ import annotations

from hypothesis import given

from nacre.base.source import Source
from nacre.nem.checks.rules.ordering.hazards import code_of
from nacre.nem.model.program import Program, Task
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.conflicts import find_conflicts
from nacre.nem.plan.edges import event_graph
from nacre.nem.plan.order import Order
from nacre.nem.plan.plan import build_plan
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, hazards, program_text, read, sketches


def resolved(items: tuple[Item, ...]) -> Program:
    source = Source("sketch.nem", program_text(items))
    parsed = parse(source)
    assert not parsed.diagnostics, parsed.diagnostics
    made = resolve(source, parsed.document)
    assert not [d for d in made.diagnostics if d.severity == "error"], made.diagnostics
    return made.program


@given(sketches())
def test_hazards_are_exactly_those_of_the_brute_force_reading(items: tuple[Item, ...]) -> None:
    plan = build_plan(resolved(items), 100_000)
    found = {
        (frozenset({c.first.position, c.second.position}), code_of(c)) for c in find_conflicts(plan)
    }
    assert found == hazards(items), program_text(items)


@given(sketches())
def test_order_agrees_with_the_closed_relation(items: tuple[Item, ...]) -> None:
    program = resolved(items)
    order = Order(program)
    tasks = {s.position: s for s in program.statements if isinstance(s, Task)}
    reading = read(items)
    for u in reading.instances:
        for v in reading.instances:
            expected = reading.is_before(u, v)
            said = order.before(tasks[u.position], u.ordinals, tasks[v.position], v.ordinals)
            assert said == expected, (u, v, program_text(items))


@given(sketches())
def test_edges_close_to_the_same_relation(items: tuple[Item, ...]) -> None:
    program = resolved(items)
    plan = build_plan(program, 100_000)
    graph = event_graph(plan)
    after = [0] * graph.size
    successors: list[list[int]] = [[] for _ in range(graph.size)]
    for source, target in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        successors[source].append(target)
    for node in _reverse_topological(successors):
        for target in successors[node]:
            after[node] |= (1 << target) | after[target]
    tasks = {s.position: s for s in program.statements if isinstance(s, Task)}
    rows: dict[int, int] = {}
    nodes = []
    reading = read(items)
    for instance in reading.instances:  # enumerated in the order of each task's grid
        row = rows.get(instance.position, 0)
        rows[instance.position] = row + 1
        nodes.append(graph.node(tasks[instance.position], row))
    for u, node_u in zip(reading.instances, nodes, strict=True):
        for v, node_v in zip(reading.instances, nodes, strict=True):
            assert bool(after[node_u] >> node_v & 1) == reading.is_before(u, v)


def _reverse_topological(successors: list[list[int]]) -> list[int]:
    remaining = [0] * len(successors)
    for targets in successors:
        for target in targets:
            remaining[target] += 1
    ready = [node for node, count in enumerate(remaining) if count == 0]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for target in successors[node]:
            remaining[target] -= 1
            if not remaining[target]:
                ready.append(target)
    assert len(order) == len(successors), "the edges contain a cycle"
    return order[::-1]

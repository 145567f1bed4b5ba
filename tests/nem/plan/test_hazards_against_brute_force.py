"""The checker's hazards and order against the naive reading of random programs."""

from __future__ import annotations

from hypothesis import given

from nacre.base.source import Source
from nacre.nem.checks.rules.hazards import code_of
from nacre.nem.model.program import Program, Task
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.conflicts import find_conflicts
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
    tasks = {s.position: s for s in program.statements() if isinstance(s, Task)}
    reading = read(items)
    for u in reading.instances:
        for v in reading.instances:
            expected = reading.is_before(u, v)
            said = order.before(tasks[u.position], u.ordinals, tasks[v.position], v.ordinals)
            assert said == expected, (u, v, program_text(items))

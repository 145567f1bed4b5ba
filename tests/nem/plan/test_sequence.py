"""Program order as numbers, against a plain walk through loops and iterations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given

from nacre.base.source import Source
from nacre.nem.model.program import Loop as ProgramLoop
from nacre.nem.model.program import Statement, Task
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.plan.sequence import sequence
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, Loop, program_text, sketches

Counted = Callable[[Statement], bool]


def planned(text: str) -> Plan:
    source = Source("sketch.nem", text)
    return build_plan(resolve(source, parse(source).document).program, 100_000)


def is_task(statement: Statement) -> bool:
    return isinstance(statement, Task)


def is_step(statement: Statement) -> bool:
    return not isinstance(statement, ProgramLoop)


def walk(items: tuple[Item, ...], first: int = 0) -> Iterator[tuple[int, Item]]:
    """Positions of statements as a sequential run comes to them, again in every iteration."""
    for item in items:
        if isinstance(item, Loop):
            for _ in range(item.first, item.last + 1):
                yield from walk(item.body, first + 1)
        else:
            yield first, item
        first += statements(item)


def statements(item: Item) -> int:
    return 2 + sum(map(statements, item.body)) if isinstance(item, Loop) else 1


@pytest.mark.parametrize("counted", [is_task, is_step])
@given(items=sketches())
def test_numbers_follow_a_sequential_run(counted: Counted, items: tuple[Item, ...]) -> None:
    plan = planned(program_text(items))
    numbers = sequence(plan, counted)
    of = {s.position: s for s in plan.program.statements}
    expected: dict[int, list[int]] = {}
    visited = [position for position, _ in walk(items) if counted(of[position])]
    for number, position in enumerate(visited):
        expected.setdefault(position, []).append(number)
    assert {position: column.tolist() for position, column in numbers.items()} == expected


@given(sketches())
def test_steps_name_statement_and_iteration_of_a_sequential_run(items: tuple[Item, ...]) -> None:
    steps = number_steps(planned(program_text(items)))
    names = list(instance_names(items, ()))
    assert steps.count == len(names)
    for step, (name, iteration) in enumerate(names):
        assert steps.iteration(step) == iteration
        if name is not None:
            text = f"{name}[{','.join(map(str, iteration))}]" if iteration else name
            assert steps.name(step) == text
            assert steps.find_instance(text) == step
        assert steps.find_instance(steps.name(step)) == step


def instance_names(
    items: tuple[Item, ...], values: tuple[int, ...]
) -> Iterator[tuple[str | None, tuple[int, ...]]]:
    for item in items:
        if isinstance(item, Loop):
            for value in range(item.first, item.last + 1):
                yield from instance_names(item.body, (*values, value))
        else:
            yield getattr(item, "token", None), values


def test_a_program_without_statements_has_no_numbers() -> None:
    assert sequence(planned("buffer A : L1 (size=8)\n"), is_step) == {}


def test_loops_whose_trips_depend_on_outer_ones_are_counted_trip_by_trip() -> None:
    plan = planned(
        "buffer A : L1 (size=64)\nbuffer B : L1 (size=64)\n"
        "loop i in [0..2]:\n"
        "    loop j in [0..i]:\n"
        "        t0 = transfer.async(dst=region(B, j, 1), src=region(A, j, 1))\n"
        "    endloop\n"
        "    t1 = transfer.async(dst=region(B, i + 8, 1), src=region(A, i, 1))\n"
        "endloop\n"
    )
    numbers = {
        plan.program.task_at[p].token: c.tolist() for p, c in sequence(plan, is_task).items()
    }
    assert numbers == {"t0": [0, 2, 3, 5, 6, 7], "t1": [1, 4, 8]}

"""Choices of a module become branches of a file, of which a run computes one."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre import core
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.format.file import to_bytes
from nacre.nac.program.choices import find_choices
from nacre.nac.program.lift import lift
from nacre.nac.program.lower import lower
from nacre.nac.run.arrays import ArrayDomain
from nacre.nac.run.calls import Budget
from nacre.nac.run.interpreter import Interpreter
from nacre.nac.run.limits import Limits
from nacre.nac.run.memory import owner
from nacre.nac.run.model import load
from nacre.nac.spec.instructions import CONTROL_FLOW
from nacre.nac.verify import verify
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

SHAPE = (2, 3)


def condition(made: Builder, x: int, limit: float = 0.0) -> int:
    total = made.add("Sum", x, axes=(0, 1), keepdims=False)
    return made.add("Compare", total, made.constant(np.float32(limit)), op="Gt")


def two_layers() -> Module:
    """Two products, of which the sum of the input chooses one."""
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    yes = condition(made, x)
    rng = np.random.default_rng(0)
    weights = [made.constant(rng.normal(size=(4, 3)).astype(np.float32)) for _ in range(2)]
    one, other = (made.add("Linear", x, w) for w in weights)
    one = made.add("Unary", one, op="Tanh")
    return made.module(made.add("Where", yes, one, other))


def require_same(module: Module, *arrays: np.ndarray[Any, Any]) -> None:
    raw = to_bytes(lower(module))
    assert verify(raw) == []
    model = load(raw)
    lifted = lift(model)
    assert Counter(op.opcode for op in lifted) == Counter(op.opcode for op in module)
    for array in arrays:
        expected = core.evaluate(module, {"x": array})
        for results in (model.run({"x": array}), core.evaluate(lifted, {"x": array})):
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def require_freed(module: Module, array: np.ndarray[Any, Any]) -> None:
    """That a run by the schedule of the file ends with nothing but what it returns."""
    model = load(to_bytes(lower(module)))
    assert model.file.schedule
    given = {one.instruction: array for one in model.inputs}
    budget = Budget(Limits(1 << 30, 1 << 40))
    domain = ArrayDomain(model, given, {}, budget)
    interpreter = Interpreter(model, domain, budget.memory, model.schedule)
    outputs = interpreter.outputs()
    owners = {id(owner(one)): owner(one).nbytes for one in outputs}
    assert budget.memory.live == sum(owners.values())
    returned = {model.program[-1].refs[at] for at in range(len(outputs))}
    left = {at for at, result in enumerate(interpreter.results) if result is not None}
    assert left == returned


def branches_of(module: Module) -> int:
    return sum(i.op == CONTROL_FLOW for i in lower(module).instructions)


X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def test_a_choice_becomes_a_branch() -> None:
    module = two_layers()
    assert branches_of(module) == 1
    require_same(module, X, -X)


def test_only_the_branch_that_is_taken_is_run() -> None:
    model = load(to_bytes(lower(two_layers())))
    names = []
    for array in (X, -X):
        session = model.session(timed=True)
        session.run({"x": array})
        names.append([timing.name for timing in session.timings])
    assert sum("tanh" in name for name in names[0]) == 1
    assert sum("tanh" in name for name in names[1]) == 0
    assert all(sum("linear" in name for name in each) == 1 for each in names)


def test_what_both_sides_use_stands_before_them() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    shared = made.add("Unary", x, op="Sin")
    sides = [made.add("Unary", shared, op=op) for op in ("Cos", "Tanh")]
    module = made.module(made.add("Where", condition(made, x), *sides))
    (choice,) = find_choices(module).by_first.values()
    inside = [op.attributes["op"] for side in (choice.true, choice.false) for op in side.operations]
    assert inside == ["Cos", "Tanh"]
    require_same(module, X, -X)


def test_what_is_returned_is_in_no_branch() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    one, other = (made.add("Unary", x, op=op) for op in ("Cos", "Tanh"))
    module = made.module(made.add("Where", condition(made, x), one, other), one, other)
    assert branches_of(module) == 0
    require_same(module, X, -X)


def test_sides_of_other_shapes_are_no_branches() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    yes = condition(made, x)
    row = made.add("Reduce", x, op="Max", axes=(0,), keepdims=True)
    module = made.module(made.add("Where", yes, row, made.add("Neg", x)))
    assert branches_of(module) == 0
    require_same(module, X, -X)


def test_a_choice_by_elements_is_no_branch() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    yes = made.add("Compare", x, made.constant(np.float32(0)), op="Gt")
    module = made.module(made.add("Where", yes, made.add("Neg", x), made.add("Exp", x)))
    assert branches_of(module) == 0


def test_several_results_of_one_condition_are_one_branch() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    yes = condition(made, x)
    ops = ("Cos", "Tanh", "Sin", "Sqrt")
    a, b, c, d = (made.add("Unary", x, op=op) for op in ops)
    first = made.add("Where", yes, a, b)
    second = made.add("Where", yes, c, d)
    module = made.module(first, second)
    assert branches_of(module) == 1
    require_same(module, X)


def test_a_choice_of_what_the_choice_before_gave() -> None:
    made = Builder()
    x = made.input("x", "f32", SHAPE)
    yes = condition(made, x)
    first = made.add("Where", yes, made.add("Neg", x), made.add("Exp", x))
    second = made.add("Where", yes, first, x)
    module = made.module(second)
    require_same(module, X, -X)


def draw_module(rng: random.Random) -> Module:
    """Operations one after the other, with choices among what there is."""
    made = Builder()
    values = [made.input("x", "f32", SHAPE)]
    conditions = [condition(made, values[0])]
    for _ in range(rng.randrange(3, 24)):
        kind = rng.random()
        if kind < 0.5:
            values.append(made.add("Unary", rng.choice(values), op=rng.choice(("Sin", "Tanh"))))
        elif kind < 0.6:
            weights = np.array([[1, 0, 2], [0, 1, 0], [1, 1, rng.randrange(3)]], np.float32)
            values.append(made.add("Linear", rng.choice(values), made.constant(weights)))
        elif kind < 0.7:
            conditions.append(condition(made, rng.choice(values), rng.uniform(-2, 2)))
        else:
            sides = rng.choice(values[-4:]), rng.choice(values[-4:])
            values.append(made.add("Where", rng.choice(conditions[-2:]), *sides))
    kept = rng.sample(values, min(len(values), rng.randrange(1, 3)))
    return made.module(values[-1], *(value for value in kept if value != values[-1]))


@settings(max_examples=scaled(100))
@example(693)  # two by one condition, of which one stands in a branch
@given(st.integers(0, 1 << 32))
def test_random_choices_compute_the_same(seed: int) -> None:
    module = draw_module(random.Random(seed))
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=SHAPE).astype(np.float32) for _ in range(3)]
    require_same(module, *arrays)
    for array in arrays:
        require_freed(module, array)


def test_random_choices_do_nest() -> None:
    """Otherwise the test above would prove little."""
    nested = 0
    for seed in range(60):
        choices = find_choices(draw_module(random.Random(seed)))
        nested += sum(first in choices.inside for first in choices.by_first)
    assert nested > 5


@pytest.mark.parametrize("is_true", [True, False])
def test_a_dry_run_sees_what_comes_after_a_branch(is_true: bool) -> None:
    module = two_layers()
    model = load(to_bytes(lower(module)))
    session = model.session()
    session.run({"x": X if is_true else -X})
    peak = session.peak_bytes
    assert peak >= 3 * 4 * 4 * 2

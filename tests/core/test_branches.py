"""What could fail in a branch does not fail where the other one is meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.importing.fallible import BranchBuilder
from nacre.core.module import Module
from tests.core.uses import USES, UseOf, inputs_of, module_of, type_of

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]

_FUNCTIONS = ("Add", "Div", "Mod", "Rem", "Pow", "ShiftLeft", "ShiftRight", "Min", "Xor")
_PAIRS = tuple(
    UseOf("BinOp", f"{dtype}[2,3] {dtype}[3]", f"{dtype}[2,3]", {"op": op})
    for op in _FUNCTIONS
    for dtype in ("i32", "i8", "u8")
)
_OTHERS = (
    UseOf("Gather", "f32[4,3] i64[2]", "f32[2,3]", {}),
    UseOf("GatherNd", "f32[2,3,4] i64[2,5,1]", "f32[2,5,4]", {"batch_dims": 1}),
    UseOf("ScatterElements", "f32[3,2] i64[1,2] f32[1,2]", "f32[3,2]", {"axis": -1}),
)
_ALL = (*USES, *_PAIRS, *_OTHERS)


def in_branch(use: UseOf, *meant: bool) -> Module:
    """An operation within branches, of which the conditions are the last inputs."""
    made = BranchBuilder()
    types = [*map(type_of, use.types.split()), *(type_of("bool[]") for _ in meant)]
    values = [made.input(f"x{i}", t.dtype, t.shape) for i, t in enumerate(types)]
    operands, conditions = values[: -len(meant)], values[-len(meant) :]
    around = [made.branch(one, is_true) for one, is_true in zip(conditions, meant, strict=True)]
    for one in around:
        one.__enter__()
    result = made.add(use.opcode, *operands, **use.attributes)
    for one in reversed(around):
        one.__exit__(None, None, None)
    return made.module(result)


def result_of(module: Module, inputs: dict[str, Array], *conditions: bool) -> Array | str:
    """What it gives, or why not."""
    last = list(module.input_types)[len(inputs) :]
    given = {**inputs, **{n: np.array(c) for n, c in zip(last, conditions, strict=True)}}
    try:
        return evaluate(module, given)[0]
    except InputError as error:
        return error.diagnostics[0].code


def hostile(inputs: dict[str, Array], number: int) -> dict[str, Array]:
    """Integers that are all one number, as far as their type has it."""
    return {
        name: array if array.dtype.kind == "f" else np.full(array.shape, number).astype(array.dtype)
        for name, array in inputs.items()
    }


@pytest.mark.parametrize("use", _ALL, ids=lambda use: f"{use.opcode}-{use.attributes.get('op')}")
def test_no_elements_make_a_branch_fail_that_is_not_meant(use: UseOf) -> None:
    plain = module_of(use)
    guarded, other = in_branch(use, True), in_branch(use, False)
    inputs = inputs_of(plain)
    expected = result_of(plain, inputs)
    np.testing.assert_array_equal(result_of(guarded, inputs, True), expected)
    np.testing.assert_array_equal(result_of(other, inputs, False), expected)
    for number in (0, 100, -1, -100):
        bad = hostile(inputs, number)
        assert not isinstance(result_of(guarded, bad, False), str)
        assert not isinstance(result_of(other, bad, True), str)
        np.testing.assert_array_equal(result_of(guarded, bad, True), result_of(plain, bad))


def test_of_branches_in_each_other_all_must_be_meant() -> None:
    use = UseOf("GatherAxis", "f32[2,3] i64[2]", "f32[2,2]", {"axis": 1})
    module = in_branch(use, True, False)
    inputs = {"x0": np.ones((2, 3), np.float32), "x1": np.array([5, 0])}
    failing = [
        (one, two)
        for one in (True, False)
        for two in (True, False)
        if isinstance(result_of(module, inputs, one, two), str)
    ]
    assert failing == [(True, False)]


def test_what_is_guarded_already_is_left_alone() -> None:
    made = BranchBuilder()
    x, i = made.input("x", "f32", (2, 3)), made.input("i", "i64", (4,))
    c = made.input("c", "bool", ())
    for is_true in (True, False):
        with made.branch(c, is_true):
            made.add("GatherAxis", x, i, axis=0)
            count = made.count
            (gather,) = made.operations_since(count - 1)
            made.add("GatherAxis", x, gather.operands[1], axis=0)
            assert made.count == count + 1
            made.add("GatherAxis", x, made.constant(np.array([1, -2])), axis=0)
            assert made.count == count + 3

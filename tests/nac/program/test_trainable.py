"""Which constants are used as parameters are, and what `nac info` says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.core.builder import Builder
from nacre.core.module import Labels, Module
from nacre.nac.format.file import to_bytes
from nacre.nac.program.lower import lower
from nacre.nac.program.trainable import fixed_constants, likely_parameters
from nacre.nac.tools.opening import open_nac
from nacre.nac.tools.overview import overview

Array = np.ndarray[Any, Any]
ROWS, WIDTH = 4, 3
VECTOR = np.array([1, 2, 3], np.float32)
SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3) + 1
MASK = np.triu(np.full((4, 4), -1e9, np.float32), 1)


class Written:
    """A module of one operation, or a few, on an input [4, 3] and constants with names."""

    def __init__(self) -> None:
        self.made = Builder()
        self.x = self.made.input("x", "f32", (ROWS, WIDTH))
        self.names: dict[int, tuple[str, ...]] = {}

    def constant(self, name: str, array: Array) -> int:
        value = self.made.constant(array)
        if name:
            self.names[value] = (name,)
        return value

    def module(self, output: int, fixed: frozenset[str] | None = None) -> Module:
        labels = Labels(parameters=self.names, fixed=fixed)
        return replace(self.made.module(output), labels=labels)


def sum_with(array: Array, name: str = "w", op: str = "Add") -> Module:
    one = Written()
    return one.module(one.made.add("BinOp", one.x, one.constant(name, array), op=op))


def product_with(array: Array, name: str = "w", *, is_first: bool = False) -> Module:
    one = Written()
    operands = [one.x, one.constant(name, array)]
    return one.module(one.made.add("MatMul", *(operands[::-1] if is_first else operands)))


def masked_scores() -> Module:
    one = Written()
    turned = one.made.add("Transpose", one.x, permutation=(1, 0))
    scores = one.made.add("MatMul", one.x, turned)
    return one.module(one.made.add("BinOp", scores, one.constant("mask", MASK), op="Add"))


def transposed() -> Module:
    one = Written()
    turned = one.made.add("Transpose", one.constant("w", SQUARE), permutation=(1, 0))
    return one.module(one.made.add("MatMul", one.x, turned))


def zero_state() -> Module:
    """A state at its start, times weights: the first step of a recurrent layer."""
    one = Written()
    state = one.constant("h", np.zeros((ROWS, WIDTH), np.float32))
    first = one.made.add("MatMul", state, one.constant("r", SQUARE))
    second = one.made.add("MatMul", one.x, one.constant("w", SQUARE + 1))
    return one.module(one.made.add("BinOp", first, second, op="Add"))


def table() -> Module:
    made = Written()
    rows = made.made.input("rows", "i64", (2,))
    return made.module(made.made.add("GatherAxis", made.constant("e", SQUARE), rows, axis=0))


def names_of(module: Module, values: frozenset[int]) -> set[str]:
    return {module.parameter_names[value][0] for value in values}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (sum_with(VECTOR), {"w"}),
        (sum_with(VECTOR, op="Mul"), {"w"}),
        (sum_with(np.zeros(3, np.float32)), {"w"}),
        (sum_with(np.zeros(3, np.float32), op="Mul"), set()),
        (sum_with(np.full((1, 1), 0.5, np.float32), op="Mul"), set()),
        (sum_with(VECTOR, "bn.running_mean", "Sub"), set()),
        (sum_with(np.full((4, 3), -np.inf, np.float32)), set()),
        (product_with(SQUARE), {"w"}),
        (product_with(np.ones((2, 4), np.float32), is_first=True), {"w"}),
        (product_with(SQUARE, "c1"), {"c1"}),  # nothing in the model has a name
        (masked_scores(), set()),
        (transposed(), {"w"}),
        (zero_state(), {"r", "w"}),
        (table(), {"e"}),
    ],
)
def test_what_is_used_as_parameters_are(module: Module, expected: set[str]) -> None:
    assert names_of(module, likely_parameters(module)) == expected


def test_what_the_model_says_counts_more() -> None:
    one = Written()
    scaled = one.made.add("BinOp", one.x, one.constant("t", np.array(2, np.float32)), op="Mul")
    moved = one.made.add("BinOp", scaled, one.constant("b", VECTOR), op="Add")
    module = one.module(moved, frozenset({"b"}))
    assert names_of(module, fixed_constants(module)) == {"b"}


def test_info_says_what_is_trained(tmp_path: Any) -> None:  # noqa: ANN401
    one = Written()
    bias, kept, odd = (one.constant(name, VECTOR + at) for at, name in enumerate("bko"))
    value = one.x
    for constant in (bias, kept, odd):
        value = one.made.add("BinOp", value, constant, op="Add")
    twin = one.constant("twin", VECTOR)  # equal to the bias, and fixed
    value = one.made.add("BinOp", value, twin, op="Mul")
    path = tmp_path / "m.nac"
    module = one.module(value, frozenset({"k", "twin"}))
    nac.save(nac.load(to_bytes(lower(module))), path)
    roles = {p.name: p.training for p in overview(open_nac(path)).parameters}
    assert roles == {"b": "both", "k": "fixed", "o": "trained"}

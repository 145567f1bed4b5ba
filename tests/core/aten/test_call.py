"""Calls of ATen without PyTorch: tensors that are known, results that are made later, refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nacre.core.aten.call import AtenCall, ConstantTensor, Value, ready_values
from nacre.core.aten.catalogue import handlers
from nacre.core.aten.promotion import promote
from nacre.core.builder import Builder, dtype_name
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array


@dataclass(frozen=True)
class KnownArray(ConstantTensor):
    """An array that becomes a constant of a builder, and notes that it did."""

    array: Array
    builder: Builder
    asked: list[str | None]

    @property
    def type(self) -> TensorType:
        return TensorType(dtype_name(self.array.dtype), self.array.shape)

    def value(self, dtype: str | None = None) -> int:
        self.asked.append(dtype)
        return self.builder.constant(self.array, dtype)

    def elements(self) -> Array:
        return self.array

    def transpose(self) -> KnownArray:
        return KnownArray(self.array.T, self.builder, self.asked)


class Calls:
    """A module that calls are made in, one input after the other."""

    def __init__(self, **inputs: Array) -> None:
        self.arrays: Mapping[str, Array] = inputs
        self.builder = Builder()
        self.asked: list[str | None] = []
        self.inputs = {
            name: Value(self.builder.input(name, dtype_name(array.dtype), array.shape))
            for name, array in inputs.items()
        }

    def known(self, array: Array) -> KnownArray:
        return KnownArray(array, self.builder, self.asked)

    def made(self, call: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - what a handler gives
        given = {k: self.inputs.get(str(v), v) for k, v in arguments.items()}
        return handlers()[call](AtenCall(call, given, self.builder))

    def opcodes(self) -> list[str]:
        count = self.builder.count
        found = [self.builder.operation(value).opcode for value in range(count)]
        return [opcode for opcode in found if opcode not in ("Input", "ConstTensor")]

    def run(self, value: int) -> Array:
        return evaluate(self.builder.module(value), self.arrays)[0]


def floats(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_a_known_weight_of_a_product_is_that_of_a_layer() -> None:
    x, weight, bias = floats(3, 4), floats(4, 5), floats(5)
    calls = Calls(x=x)
    made = calls.made(
        "addmm.default", self=calls.known(bias), mat1="x", mat2=calls.known(weight), beta=1, alpha=1
    )
    assert calls.opcodes() == ["Linear"]
    np.testing.assert_allclose(calls.run(made), x @ weight + bias, rtol=1e-5, atol=1e-6)


def test_a_known_tensor_is_taken_in_the_type_of_the_result() -> None:
    calls = Calls(x=floats(3))
    made = calls.made("mul.Tensor", self="x", other=calls.known(np.array([2, 3, 4])))
    assert calls.asked == ["f32"]
    assert calls.opcodes() == ["BinOp"]
    np.testing.assert_array_equal(calls.run(made), floats(3) * np.array([2, 3, 4], np.float32))


def test_known_indices_of_several_axes_are_one_constant() -> None:
    x = floats(4, 5)
    calls = Calls(x=x)
    rows, columns = np.array([[0], [2]]), np.array([1, 3, 4])
    given = (calls.known(rows), calls.known(columns))
    made = calls.made("index.Tensor", self="x", indices=given)
    assert calls.opcodes() == ["GatherNd"]
    np.testing.assert_array_equal(calls.run(made), x[rows, columns])


def test_a_known_mask_chooses() -> None:
    x, mask = floats(4, 5), np.array([True, False, True, True])
    calls = Calls(x=x)
    made = calls.made("index.Tensor", self="x", indices=(calls.known(mask),))
    np.testing.assert_array_equal(calls.run(made), x[mask])


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_mask_that_is_computed_replaces_without_a_count(accumulate: bool) -> None:
    x, mask = floats(4, 5), floats(4) > 0
    calls = Calls(x=x, mask=mask)
    indices = (calls.inputs["mask"],)
    value = calls.known(np.float32(7.0).reshape(1))
    made = calls.made(
        "index_put.default", self="x", indices=indices, values=value, accumulate=accumulate
    )
    expected = np.where(mask[:, None], x + 7 if accumulate else np.float32(7), x)
    np.testing.assert_array_equal(calls.run(made), expected)


def test_tensors_without_elements_play_no_part_in_a_row() -> None:
    calls = Calls(x=floats(2, 3))
    tensors = (calls.known(np.zeros(0)), calls.inputs["x"])
    made = calls.made("cat.default", tensors=tensors, dim=0)
    assert calls.builder.type_of(made) == TensorType("f64", (2, 3))


def test_where_the_largest_elements_lie_is_made_when_somebody_asks() -> None:
    x = floats(1, 2, 6, 6)
    calls = Calls(x=x)
    made = calls.made(
        "max_pool2d_with_indices.default",
        self="x", kernel_size=(2, 2), stride=(), padding=(0, 0), dilation=(1, 1), ceil_mode=False,
    )  # fmt: skip
    assert ready_values(made) == [made[0]]
    assert calls.opcodes() == ["MaxPool"]
    later: Callable[[], int] = made[1]
    places = calls.run(later())
    planes = x.reshape(2, 36)
    found = np.take_along_axis(planes, places.reshape(2, 9), 1)
    np.testing.assert_array_equal(found.reshape(1, 2, 3, 3), calls.run(made[0]))


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("index.Tensor", {"self": "x", "indices": (Value(1),)}, "a mask chooses", "torch.where"),
    ("index_put.default", {"self": "x", "indices": (Value(1),), "values": Value(2)},
     "for each place", "masked_scatter"),
    ("slice.Tensor", {"self": "x", "dim": 0, "start": Value(2), "end": 3, "step": 1},
     "a bound is computed", "index_select"),
    ("select.int", {"self": "x", "dim": 0, "index": Value(2)}, "the place is", "index_select"),
    ("native_dropout.default", {"input": "x", "p": 0.5, "train": True}, "at random", "eval"),
    ("topk.default", {"self": "x", "k": 0}, "no elements", "leave the part out"),
    ("slice.Tensor", {"self": "x", "dim": 0, "start": 2, "end": 2, "step": 1}, "no elements",
     "leave the part out"),
    ("scatter.value_reduce", {"self": "x", "dim": 0, "index": Value(1), "value": 1,
                              "reduce": "median"}, "`median`", "amax"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments", "reason", "help"), REFUSED)
def test_a_refusal_says_why_and_what_helps(
    call: str, arguments: dict[str, Any], reason: str, help: str
) -> None:
    calls = Calls(x=floats(4), mask=floats(4) > 0, y=floats(2))
    with pytest.raises(Unsupported) as refused:
        calls.made(call, **arguments)
    assert reason in refused.value.reason
    assert help in str(refused.value.help)


def test_a_call_takes_as_many_operations_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.core.aten.call._MOST_OPERATIONS", 2)
    calls = Calls(x=floats(2))
    call = AtenCall("relu.default", {}, calls.builder)
    last = call.unary("Sqrt", call.unary("Abs", calls.inputs["x"].id))
    with pytest.raises(Unsupported, match="more than 2 operations"):
        call.unary("Neg", last)


PROMOTED = [
    ("bool", "u8", "u8"), ("u8", "i8", "i16"), ("i32", "u8", "i32"), ("u16", "i16", "i32"),
    ("u32", "i8", "i64"), ("i64", "u32", "i64"), ("i8", "i32", "i32"), ("u8", "u16", "u16"),
    ("i64", "f16", "f16"), ("f16", "bf16", "f32"), ("bf16", "f64", "f64"), ("f32", "f16", "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "wanted"), PROMOTED)
def test_two_types_meet_in_the_least_that_holds_both(a: str, b: str, wanted: str) -> None:
    assert promote(a, b) == promote(b, a) == wanted


def test_a_file_cannot_ask_for_too_many_operations() -> None:
    calls = Calls(x=floats(1 << 15))
    before = calls.builder.count
    with pytest.raises(Unsupported, match="more than 16,384 operations"):
        calls.made("unbind.int", self="x", dim=0)
    assert calls.builder.count == before

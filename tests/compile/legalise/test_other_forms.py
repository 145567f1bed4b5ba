"""Truth values, quantised models, what exporters spell out, element types, notes, origins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nacre.compile.legalise.contract import is_legal
from nacre.core.module import Module
from tests.compile.legalise.checking import error, legal_of, opcodes, require_same, run
from tests.compile.legalise.samples import Sample, feeds_of, module_of

Make = Callable[[Sample], int | tuple[int, ...]]


def constant(sample: Sample, value: object, dtype: str = "f32") -> int:
    return sample.builder.constant(np.asarray(value), dtype)


# Truth values and integers

LOGIC: dict[str, tuple[Make, set[str]]] = {
    "not": (lambda s: s.add("Unary", s.x(3, 4, dtype="bool"), op="Not"), {"BinOp"}),
    "and true": (lambda s: s.add("BinOp", s.x(3, 4, dtype="bool"), constant(
        s, np.ones((2, 1, 1)), "bool"), op="And"), set()),
    "known choice": (lambda s: s.add("Where", constant(s, [[True], [False]], "bool"), s.x(2, 4),
                                     constant(s, -100.0)), set()),
    "triangle": (lambda s: s.add("Trilu", s.x(2, 4, 5), k=-1), set()),
    "square": (lambda s: s.add("BinOp", s.x(3, 4), constant(s, 2.0), op="Pow"), set()),
    "choice": (lambda s: s.add("Where", s.add("Compare", s.x(3, 4), s.x(3, 4), op="Lt"),
                               s.x(3, 4), s.x(4)), {"Compare", "Where"}),
    "mask": (lambda s: s.add("Where", s.x(3, 4, dtype="bool"), constant(s, 0.0),
                             constant(s, -60000.0)), set()),
    "gate": (lambda s: s.add("Where", s.x(3, 1, dtype="bool"), constant(s, [2.5]),
                             constant(s, np.zeros((1, 4)))), set()),
    "tuples": (lambda s: s.add("GatherNd", s.x(2, 3), constant(
        s, [[[[b, k] for k in range(3)]] * 2 for b in range(2)], "i64")), set()),
    "any tuples": (lambda s: s.add("GatherNd", s.x(2, 3, 2), constant(
        s, [[1, 2], [0, -1], [1, 0]], "i64")), set()),
    "to floats": (lambda s: s.add("Cast", s.x(3, 4, dtype="bool"), to="f32"), set()),
    "integer bounds": (lambda s: s.add("Clip", s.x(3, dtype="i64"), max=2.0), {"Clip"}),
    "integer sum": (lambda s: s.add("Sum", s.x(3, 4, dtype="i32"), axes=()), {"Sum"}),
    "largest": (lambda s: s.add("ArgMax", s.x(3, 4), axis=1), {"ArgMax"}),
    "top": (lambda s: (s.add("TopKIndices", s.x(3, 8), k=2, axis=1),), {"TopKIndices"}),
    "rounded": (lambda s: s.add("Unary", s.x(3, 4), op="Floor"), {"Unary"}),
    "cumulated": (lambda s: s.add("CumSum", s.x(3, 4), axis=1), {"CumSum"}),
    "one row": (lambda s: s.add("ScatterRows", s.x(4, 3), s.x(dtype="i64"), s.x(3)),
                {"ScatterRows"}),
    "one index": (lambda s: s.add("GatherAxis", s.x(4, 3), s.x(dtype="i64"), axis=0), set()),
    "response": (lambda s: s.add("Lrn", s.x(1, 4, 3, 3), size=3), {"Lrn"}),
    "filter": (lambda s: s.add("Conv", s.x(1, 3, 5, 5), s.x(2, 3, 3, 3)), {"Conv"}),
}  # fmt: skip


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("name", LOGIC)
def test_what_has_no_unit_is_escaped_with_a_reason(name: str, precision: str) -> None:
    make, expected = LOGIC[name]
    legal = require_same(module_of(make), precision)
    assert {legal.module.by_id[value].opcode for value in legal.escaped} == expected
    assert all(legal.escaped.values())


def test_a_wide_result_is_narrowed_at_once() -> None:
    legal = legal_of(module_of(lambda s: s.add("ArgMax", s.x(3, 4), axis=1)))
    assert [t.dtype for t in legal.module.output_types] == ["i32"]


# Quantised models


def quantised_chain(s: Sample) -> int:
    x = s.add("Quantize", s.x(1, 3, 6, 6), constant(s, 0.05), constant(s, 3, "i8"), to="i8")
    weights = constant(s, np.arange(4 * 27).reshape(4, 3, 3, 3) % 15 - 7, "i8")
    bias = constant(s, [5, -3, 0, 100], "i32")
    y = s.add(
        "QConv", x, weights, bias, x_scale=0.05, x_zero=3, w_scales=(0.01, 0.02, 0.03, 0.01),
        y_scale=0.1, y_zero=-2, to="i8",
    )  # fmt: skip
    z = s.add("QBinOp", y, y, op="Add", a_scale=0.1, a_zero=-2, b_scale=0.1, b_zero=-2,
              y_scale=0.2, y_zero=1, to="i8")  # fmt: skip
    p = s.add("QPool", z, op="Max", kernel=(2, 2), x_scale=0.2, x_zero=1, y_scale=0.2, y_zero=1,
              to="i8")  # fmt: skip
    return s.add("Dequantize", p, constant(s, 0.2), constant(s, 1, "i8"))


def test_fused_operations_are_floats_between_integers() -> None:
    legal = require_same(module_of(quantised_chain))
    assert {"Conv", "Quantize", "Dequantize", "MaxPool"} <= opcodes(legal)
    assert not legal.escaped


def test_floats_of_16_bits_are_quantised_by_way_of_32() -> None:
    module = module_of(quantised_chain)
    legal = legal_of(module, "f16")
    found, expected = run(legal.module, feeds_of(module)), run(module, feeds_of(module))
    assert not legal.escaped
    assert error(found[0], expected[0]) <= 0.2  # a step of the last scale


def test_bytes_without_a_sign_are_shifted() -> None:
    def make(s: Sample) -> int:
        x = s.add("Quantize", s.x(3, 4), constant(s, 0.05), constant(s, 130, "u8"), to="u8")
        return s.add("Dequantize", x, constant(s, 0.05), constant(s, 130, "u8"))

    legal = require_same(module_of(make))
    assert {op.type.dtype for op in legal.module.operations} == {"f32", "i8"}


def dynamic(s: Sample) -> int:
    """A product as dynamic quantisation spells it out."""
    x = s.x(5, 8)
    scale, zero = s.add("DynamicQuantizeScale", x), s.add("DynamicQuantizeZero", x)
    stored = s.add("Quantize", x, scale, zero, to="u8")
    less = s.add("BinOp", s.add("Cast", stored, to="i32"), s.add("Cast", zero, to="i32"), op="Sub")
    weights = constant(s, np.arange(24).reshape(3, 8) - 12, "i32")
    factor = s.add("BinOp", scale, constant(s, 0.01), op="Mul")
    bias = s.add("BinOp", constant(s, [1.0, -2.0, 0.5]), factor, op="Div")
    whole = s.add("Cast", s.add("Unary", bias, op="Floor"), to="i32")
    total = s.add("BinOp", s.add("Linear", less, weights), whole, op="Add")
    return s.add("BinOp", s.add("Cast", total, to="f32"), factor, op="Mul")


def test_products_with_scales_of_each_run_are_done_in_floats_and_noted() -> None:
    module = module_of(dynamic)
    legal = legal_of(module)
    assert opcodes(legal) == {"Linear"}
    assert legal.notes == ("1 tensors that the model quantises by scales of each run stay floats",)
    feeds = feeds_of(module)
    assert error(run(legal.module, feeds)[0], run(module, feeds)[0]) < 1e-2


# What exporters spell out


def spelled_norm(s: Sample) -> int:
    """As JAX has it: the mean of squares less the square of the mean, along a middle axis."""
    x = s.x(2, 6, 5)
    mean = s.add("BinOp", s.add("Sum", x, axes=(1,), keepdims=False), constant(s, 1 / 6), op="Mul")
    squares = s.add("Sum", s.add("BinOp", x, x, op="Mul"), axes=(1,), keepdims=False)
    squares = s.add("BinOp", squares, constant(s, 1 / 6), op="Mul")
    spread = s.add("BinOp", squares, s.add("BinOp", mean, mean, op="Mul"), op="Sub")
    spread = s.add("BinOp", constant(s, 0.0), spread, op="Max")
    spread = s.add("Reshape", spread, new_shape=(2, 1, 5))
    root = s.add("Unary", s.add("BinOp", spread, constant(s, 1e-6), op="Add"), op="Rsqrt")
    factor = s.add("BinOp", root, s.w(1, 6, 1), op="Mul")
    less = s.add("BinOp", x, s.add("Reshape", mean, new_shape=(2, 1, 5)), op="Sub")
    return s.add("BinOp", s.add("BinOp", less, factor, op="Mul"), s.w(1, 6, 1), op="Add")


def spelled_rms_norm(s: Sample) -> int:
    """As PyTorch gives it: without the axis, which a view puts back."""
    x = s.x(2, 6, 5)
    mean = s.add("Mean", s.add("BinOp", x, constant(s, 2.0), op="Pow"), axes=(2,), keepdims=False)
    mean = s.add("Reshape", mean, new_shape=(2, 6, 1))
    root = s.add("Unary", s.add("BinOp", mean, constant(s, 1e-6), op="Add"), op="Rsqrt")
    return s.add("BinOp", s.w(5), s.add("BinOp", x, root, op="Mul"), op="Mul")


def spelled_softmax(s: Sample) -> int:
    x = s.x(3, 7)
    most = s.add("Reduce", x, op="Max", axes=(1,))
    most = s.add("Reshape", s.add("BinOp", constant(s, -np.inf), most, op="Max"), new_shape=(3, 1))
    powers = s.add("Exp", s.add("BinOp", x, most, op="Sub"))
    total = s.add("Reshape", s.add("Sum", powers, axes=(1,)), new_shape=(3, 1))
    return s.add("BinOp", powers, total, op="Div")


def spelled_gelu(s: Sample) -> int:
    x = s.x(3, 7)
    cube = s.add("BinOp", s.add("BinOp", x, constant(s, 3.0), op="Pow"), constant(s, 0.044715),
                 op="Mul")  # fmt: skip
    inner = s.add("BinOp", s.add("BinOp", x, cube, op="Add"), constant(s, 0.7978846), op="Mul")
    gate = s.add("BinOp", s.add("Unary", inner, op="Tanh"), constant(s, 1.0), op="Add")
    return s.add("BinOp", s.add("BinOp", x, constant(s, 0.5), op="Mul"), gate, op="Mul")


def spelled_embedding(s: Sample) -> int:
    ids = s.x(2, 5, 1, dtype="i32")
    hot = s.add("Compare", ids, constant(s, np.arange(3).reshape(1, 1, 3), "i32"), op="Eq")
    return s.add("Linear", s.add("Cast", hot, to="f32"), s.w(4, 3), s.w(4))


def spelled_relu(s: Sample) -> int:
    x, zero = s.x(3, 7), constant(s, 0.0)
    above = s.add("Where", s.add("Compare", x, zero, op="Gt"), x, zero)
    return s.add("Where", s.add("Compare", zero, above, op="Ge"), zero, above)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (spelled_relu, {"ReluNan"}),
        (spelled_norm, {"LayerNorm", "Transpose"}),
        (spelled_rms_norm, {"RmsNorm"}),
        (spelled_softmax, {"Softmax"}),
        (spelled_gelu, {"Gelu"}),
    ],
)
def test_what_is_spelled_out_is_recovered(make: Make, expected: set[str]) -> None:
    legal = require_same(module_of(make))
    assert opcodes(legal) == expected
    require_same(module_of(make), "f16")


def test_a_product_with_ones_at_indices_is_a_table() -> None:
    module = module_of(spelled_embedding)
    legal = require_same(module)  # some indices lie outside
    assert "Gather" in opcodes(legal)
    assert "Linear" not in opcodes(legal)


# Numbers and types


def test_numbers_beyond_16_bits_are_held_and_noted() -> None:
    module = module_of(lambda s: s.add("BinOp", s.x(2, 3), constant(s, [-1e9, 0, 1]), op="Add"))
    legal = legal_of(module, "f16")
    assert any("beyond f16" in note for note in legal.notes)
    (found,) = run(legal.module, {"x1": np.zeros((2, 3), np.float32)})
    assert found[0].tolist() == [-65504, 0, 1]


def test_doubles_and_long_integers_are_narrowed() -> None:
    def make(s: Sample) -> tuple[int, int]:
        x = s.x(3, 4, dtype="f64")
        wide = s.add("Cast", s.x(3, dtype="i64"), to="f64")
        return s.add("BinOp", x, s.add("Reshape", wide, new_shape=(3, 1)), op="Add"), s.add(
            "Concat", s.x(2, dtype="i64"), constant(s, [1, 2], "i64"), axis=0
        )

    legal = require_same(module_of(make))
    assert [t.dtype for t in legal.module.output_types] == ["f32", "i32"]
    assert not legal.escaped


def test_states_follow_the_outputs() -> None:
    sample = Sample()
    x = sample.x(2, 3)
    builder = sample.builder
    state = builder.input("state", "f32", (2, 3))
    total = builder.add("BinOp", x, state, op="Add")
    builder.state("state", total, builder.constant(np.zeros((2, 3), np.float32)))
    legal = legal_of(sample.module(builder.add("Exp", total)))
    assert legal.outputs == 1
    assert len(legal.module.outputs) == 2
    assert legal.module.states == ()


def test_the_contract_finds_what_breaks_it() -> None:
    def broken(make: Make) -> list[str]:
        module: Module = module_of(make)
        return is_legal(module)

    assert broken(lambda s: s.add("Relu", s.x(3))) == ["`Relu` %1: no unit of the device has it"]
    assert "channels last" in broken(lambda s: s.add("MaxPool", s.x(1, 2, 4, 4), kernel=(2, 2)))[0]
    assert "two runs" in broken(
        lambda s: s.add("Transpose", s.x(2, 3, 4), permutation=(2, 1, 0))
    )[0]  # fmt: skip
    assert "which NEM does not have" in broken(lambda s: s.add("Exp", s.x(3, dtype="f64")))[0]
    module = module_of(lambda s: s.add("Exp", s.x(3)))
    assert is_legal(module, {1: "because"}) == ["`Exp` %1: it is escaped, but has a form"]

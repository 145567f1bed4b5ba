"""Gradients of whole modules: random ones, long ones, odd ones, and those that have none."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession, evaluate
from nacre.core.gradients import grad as home
from nacre.core.gradients.grad import grad
from nacre.core.module import Module, State, TensorType, operation
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.values import Word, attributes
from nacre.core.verify import verify
from tests.clock import in_time
from tests.core.gradients.gradient_cases import Array
from tests.core.gradients.test_gradients_ops import differences, gradients
from tests.core.modules import modules
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

WIDTH = (3, 4)
F32 = TensorType("f32")
MANY = settings(max_examples=scaled(100))


def points(module: Module, seed: int) -> dict[str, Array]:
    """Values between 0.4 and 1.6 of both signs, no two alike."""
    random = np.random.default_rng(seed)
    found = {}
    for name, type_ in module.input_types.items():
        values = random.uniform(0.4, 1.6, type_.shape)
        found[name] = np.asarray(values * np.where(random.random(type_.shape) < 0.3, -1, 1))
    return found


def is_smooth(module: Module, inputs: dict[str, Array]) -> bool:
    """Whether every value lies where differences can be trusted: finite, and away from kinks."""
    # Every value is looked at.
    every = Module(module.operations, tuple(op.value_id for op in module.operations))
    values = dict(zip(every.outputs, evaluate(every, inputs), strict=True))
    for op in module.operations:
        value = values[op.value_id]
        if value.dtype == np.float64 and not (np.abs(value) < 1e4).all():
            return False
        if op.opcode in ("Relu", "Log") and not (np.abs(values[op.operands[0]]) > 1e-2).all():
            return False
    return True


def check(module: Module, seed: int) -> None:
    inputs = points(module, seed)
    with np.errstate(all="ignore"):
        assume(is_smooth(module, inputs))
    names = list(inputs)
    expected = differences(module, inputs)
    for name, found in zip(names, gradients(module, inputs, names), strict=True):
        scale = 1.0 + max(float(np.abs(found).max()), float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-5 * scale)


@MANY
@given(modules(dtypes=("f64",), most_operations=10), st.integers(0, 999))
def test_random_modules_of_core_v1_have_the_gradients_of_differences(
    module: Module, seed: int
) -> None:
    check(module, seed)


_SMOOTH = ("Tanh", "Sigmoid", "Sin", "Cos", "Atan", "Softplus", "Erf", "Asinh")


class _Layers:
    """A random graph of `nacre-1` over tensors of one width, each step smooth and bounded."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw, self._b = draw, Builder()
        count = draw(st.integers(1, 3))
        self._values = [self._b.input(f"x{i}", "f64", WIDTH) for i in range(count)]

    def grow(self) -> None:
        ways = (
            self._function, self._pair, self._norm, self._move, self._reduce, self._layer,
            self._choice, self._gather,
        )  # fmt: skip
        value = self._draw(st.sampled_from(self._values[-4:]))
        made = self._draw(st.sampled_from(ways))(value)
        # Whatever it was, it is of the width again, and no larger than 1.
        shaped = self._add("Reshape", made, new_shape=(-1,))
        size = self._b.type_of(shaped).shape[0]
        rest = self._add("Pad", shaped, pads=(0, max(0, 12 - size)), value=0.5)
        cut = self._add("Slice", rest, starts=(0,), ends=(12,), steps=(1,))
        self._values.append(
            self._add("Unary", self._add("Reshape", cut, new_shape=WIDTH), op="Tanh")
        )

    def module(self) -> Module:
        chosen = self._draw(st.lists(st.sampled_from(self._values), min_size=1, max_size=2))
        return self._b.module(*chosen, self._values[-1])

    def _add(self, opcode: str, *operands: int, **given: object) -> int:
        return self._b.add(opcode, *operands, **given)

    def _other(self) -> int:
        return self._draw(st.sampled_from(self._values))

    def _function(self, x: int) -> int:
        if self._draw(st.booleans()):
            return self._add(self._draw(st.sampled_from(("Gelu", "Silu", "Exp", "Neg"))), x)
        return self._add("Unary", x, op=self._draw(st.sampled_from(_SMOOTH)))

    def _pair(self, x: int) -> int:
        word = self._draw(st.sampled_from(("Add", "Sub", "Mul", "Div")))
        y = self._add("Unary", self._other(), op="Softplus") if word == "Div" else self._other()
        return self._add("BinOp", x, y, op=word)

    def _norm(self, x: int) -> int:
        opcode = self._draw(st.sampled_from(("Softmax", "LogSoftmax", "LayerNorm", "RmsNorm")))
        extra = {} if opcode.endswith("max") else {"epsilon": 0.1}
        return self._add(opcode, x, axis=self._draw(st.sampled_from((0, -1))), **extra)

    def _move(self, x: int) -> int:
        ways: list[tuple[str, dict[str, object]]] = [
            ("Flip", {"axes": (1,)}),
            ("Tile", {"repeats": (2, 1)}),
            ("Pad", {"pads": (1, -1, 0, 2), "mode": "edge"}),
            ("Transpose", {"permutation": (1, 0)}),
            ("CumSum", {"axis": 0, "reverse": True}),
            ("Trilu", {"k": 1}),
            ("Resize", {"sizes": (4, 6), "mode": "linear"}),
        ]
        opcode, given = self._draw(st.sampled_from(ways))
        return self._add(opcode, x, **given)

    def _reduce(self, x: int) -> int:
        word = self._draw(st.sampled_from(("Prod", "SumSquare", "LogSumExp")))
        axes = self._draw(st.sampled_from(((), (0,), (1,), (0, 1))))
        return self._add("Reduce", x, op=word, axes=axes, keepdims=self._draw(st.booleans()))

    def _layer(self, x: int) -> int:
        if self._draw(st.booleans()):
            return self._add("Linear", x, self._other())
        plane = self._add("Reshape", x, new_shape=(1, 1, *WIDTH))
        if self._draw(st.booleans()):
            return self._add("AvgPool", plane, kernel=(2, 2), strides=(2, 1), pads=(1, 0, 0, 1))
        weight = self._add("Reshape", self._other(), new_shape=(2, 1, 2, 3))
        return self._add("Conv", plane, weight, strides=(1, 2), pads=(0, 1, 1, 1))

    def _choice(self, x: int) -> int:
        row = self._add("Iota", shape=WIDTH, axis=1, dtype="i64")
        is_odd = self._add("Compare", row, self._add("ConstI64", value=1), op="Gt")
        return self._add("Where", is_odd, x, self._other())

    def _gather(self, x: int) -> int:
        at = self._draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
        rows = self._b.constant(np.array(at), "i64")
        return self._add("GatherAxis", self._add("Concat", x, self._other(), axis=1), rows, axis=0)


@st.composite
def layers(draw: st.DrawFn) -> Module:
    growing = _Layers(draw)
    for _ in range(draw(st.integers(1, 6))):
        growing.grow()
    return growing.module()


@pytest.mark.heavy("random modules, each with differences in every direction")
@MANY
@given(layers(), st.integers(0, 999))
def test_random_modules_of_nacre_1_have_the_gradients_of_differences(
    module: Module, seed: int
) -> None:
    check(module, seed)


# What a gradient module looks like


def built(*shape: int, dtype: str = "f64") -> tuple[Builder, int]:
    builder = Builder()
    return builder, builder.input("x", dtype, shape)


def test_ids_stay_and_those_of_the_gradient_follow() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Input () {name="w"} : tensor<f32[3]>
%7 = BinOp (%0, %1) {op=Mul} : tensor<f32[2, 3]>
%9 = Sum (%7) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %9
"""
    module = parse(text)
    made = grad(module, ["w", "x"])
    assert print_module(module) == text
    assert made.operations[:4] == module.operations
    assert made.outputs[0] == 9
    assert min(op.value_id for op in made.operations[4:]) > 9
    assert [made.by_id[value].type for value in made.outputs[1:]] == [
        TensorType("f32", (3,)),
        TensorType("f32", (2, 3)),
    ]
    assert verify(made, "core-v1") == []


def test_the_same_module_gives_the_same_bytes() -> None:
    def text() -> str:
        builder, x = built(2, 3)
        y = builder.add("Softmax", builder.add("LayerNorm", x, axis=1), axis=0)
        return print_module(grad(builder.module(y), ["x"]))

    assert text() == text()


V1_ONLY = (
    "Sum", "Mean", "Reshape", "Transpose", "ExpandDims", "Squeeze", "MatMul", "Dot", "Neg", "Exp",
)  # fmt: skip


@pytest.mark.parametrize("opcode", V1_ONLY)
def test_core_v1_stays_core_v1_where_it_can(opcode: str) -> None:
    builder = Builder("core-v1")
    x = builder.input("x", "f64", (1, 3, 3))
    attributes_of: dict[str, dict[str, object]] = {
        "Sum": {"axes": (1,)},
        "Mean": {"axes": (0, 2)},
        "Reshape": {"new_shape": (9,)},
        "Transpose": {"permutation": (2, 1, 0)},
        "ExpandDims": {"axes": (1,)},
        "Squeeze": {"axes": (0,)},
    }
    flat = builder.add("Squeeze", x, axes=(0,)) if opcode == "Dot" else x
    pair = (flat, flat) if opcode in ("MatMul", "Dot") else (x,)
    y = builder.add(opcode, *pair, **attributes_of.get(opcode, {}))
    square = builder.add("BinOp", y, y, op="Mul")
    made = grad(builder.module(square), ["x"])
    assert verify(made, "core-v1") == []


def test_an_input_that_does_not_matter_gets_zeros() -> None:
    builder, x = built(2)
    builder.input("unused", "f32", (2, 3))
    floor = builder.input("floor", "f64", (2,))
    rounded = builder.add("Unary", floor, op="Floor")
    module = builder.module(builder.add("BinOp", x, rounded, op="Mul"))
    inputs = {
        "x": np.ones(2),
        "unused": np.ones((2, 3), np.float32),
        "floor": np.full(2, 2.5),
    }
    found = evaluate(grad(module, ["unused", "floor", "x"]), inputs)[1:]
    assert [array.dtype.name for array in found] == ["float32", "float64", "float64"]
    assert [array.tolist() for array in found] == [[[0.0] * 3] * 2, [0.0, 0.0], [2.0, 2.0]]


def test_outputs_of_integers_take_no_seed() -> None:
    builder, x = built(3)
    module = builder.module(builder.add("ArgMax", x, axis=0), x, builder.add("Neg", x), x)
    made = grad(module, ["x"])
    found = evaluate(made, {"x": np.array([1.0, 3.0, 2.0])})
    assert found[0] == 1
    assert found[-1].tolist() == [1.0, 1.0, 1.0]  # 1 - 1 + 1


def test_a_name_may_be_given_twice_or_not_at_all() -> None:
    builder, x = built(2)
    module = builder.module(builder.add("BinOp", x, x, op="Mul"))
    inputs = {"x": np.array([1.0, 3.0])}
    for names, count in ((["x", "x"], 2), (("x",), 1), ((), 0)):
        found = evaluate(grad(module, names), inputs)
        assert [array.tolist() for array in found] == [[1.0, 9.0], *[[2.0, 6.0]] * count]


def test_a_large_gradient_is_stretched_not_written_out() -> None:
    builder = Builder("core-v1")
    x = builder.input("x", "f32", (1000, 1000))
    made = grad(builder.module(builder.add("Sum", x, axes=())), ["x"])
    assert len(print_module(made)) < 1000
    assert evaluate(made, {"x": np.zeros((1000, 1000), np.float32)})[1].min() == 1.0


def test_a_module_that_is_not_canonical_is_made_so_first() -> None:
    x = operation(3, "Input", (), TensorType("f64", (2,)), attributes({"name": "x"}))
    late = operation(5, "Input", (), TensorType("f64", (2,)), attributes({"name": "y"}))
    minus = operation(4, "Neg", (3,), x.type)
    add = operation(6, "BinOp", (5, 4), x.type, attributes({"op": Word("Add")}))
    dead = operation(7, "Exp", (3,), x.type)
    module = Module((x, minus, late, add, dead), (6,))
    made = grad(module, ["y", "x"])
    found = evaluate(made, {"x": np.ones(2), "y": np.ones(2)})
    assert [array.tolist() for array in found] == [[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]
    assert "Exp" not in {op.opcode for op in made}


def test_state_is_what_it_was_at_the_start_of_the_run() -> None:
    builder, x = built(2)
    held = builder.input("h", "f64", (2,))
    start = builder.constant(np.array([2.0, 3.0]))
    product = builder.add("BinOp", x, held, op="Mul")
    builder.state("h", product, start)
    module = builder.module(product)
    made = grad(module, ["x", "h"])
    assert made.states == (State("h", product, start),)
    session = CoreSession(made)
    first = session.run({"x": np.array([5.0, 7.0])})
    assert [array.tolist() for array in first] == [[10.0, 21.0], [2.0, 3.0], [5.0, 7.0]]
    second = session.run({"x": np.array([1.0, 1.0])})
    assert second[1].tolist() == [10.0, 21.0]


def test_a_value_that_many_use_has_the_sum_of_all() -> None:
    builder, x = built(2, 2)
    total = x
    for _ in range(50):
        total = builder.add("BinOp", total, x, op="Add")
    (found,) = evaluate(grad(builder.module(total), ["x"]), {"x": np.zeros((2, 2))})[1:]
    assert found.tolist() == [[51.0, 51.0], [51.0, 51.0]]


def test_an_infinite_gradient_stays_where_it_belongs() -> None:
    builder, x = built(4)
    part = builder.add("Slice", x, starts=(0,), ends=(4,), steps=(2,))
    rows = builder.constant(np.array([3]), "i64")
    picked = builder.add("Gather", x, rows)
    roots = [builder.add("Unary", value, op="Sqrt") for value in (part, picked)]
    (found,) = evaluate(grad(builder.module(*roots), ["x"]), {"x": np.array([0.0, 0, 4, 1])})[2:]
    assert found.tolist() == [np.inf, 0.0, 0.25, 0.5]


DEEP = (2, *(1,) * 62, 3)
ODD: dict[str, dict[str, object]] = {
    "Slice": {"starts": (0,) * 64, "ends": DEEP, "steps": (2,) * 64},
    "CumProd": {"axis": 0},
    "Pad": {"pads": (1,) * 3 + (0,) * 125, "mode": "edge"},
    "Reduce": {"op": "Prod", "axes": (0, 63)},
    "Softmax": {"axis": 63},
    "Resize": {"sizes": (3, *(1,) * 62, 2)},
}


@pytest.mark.parametrize("opcode", ODD)
def test_a_tensor_of_as_many_axes_as_there_can_be_has_a_gradient(opcode: str) -> None:
    builder, x = built(*DEEP)
    module = builder.module(builder.add(opcode, x, **ODD[opcode]))
    inputs = {"x": np.arange(1.0, 7.0).reshape(DEEP)}
    (found,) = gradients(module, inputs, ["x"])
    np.testing.assert_allclose(found, differences(module, inputs)["x"], rtol=1e-6, atol=1e-6)


def test_a_gradient_by_one_of_many_gathered_indices_adds_up() -> None:
    builder, x = built(3)
    rows = builder.constant(np.ones((1,) * 63 + (2,), np.int64))
    module = builder.module(builder.add("Gather", x, rows))
    (found,) = gradients(module, {"x": np.ones(3)}, ["x"])
    assert found.tolist() == [0.0, 2.0, 0.0]


HUGE = 1 << 40


@pytest.mark.parametrize(
    ("opcode", "given"),
    [
        ("AvgPool", {"kernel": (1 << 20,), "pads": (5, 5)}),
        ("MaxPool", {"kernel": (2,)}),
        ("Pad", {"pads": (0, 0, 3, 0, 0, 7), "mode": "wrap"}),
        ("Slice", {"starts": (0, 0, 1), "ends": (1, 1, HUGE), "steps": (1, 1, 3)}),
        ("Resize", {"sizes": (1, 1, 1 << 30)}),
        ("Sum", {"axes": ()}),
        ("Lrn", {"size": 1 << 50}),
    ],
)
def test_a_huge_tensor_costs_nothing_until_it_is_run(opcode: str, given: dict[str, object]) -> None:
    builder, x = built(1, 1, HUGE)
    made = grad(builder.module(builder.add(opcode, x, **given)), ["x"])
    assert made.output_types[1] == TensorType("f64", (1, 1, HUGE))
    assert len(print_module(made)) < 10_000


def test_a_gradient_that_would_need_more_than_there_can_be_is_refused() -> None:
    builder, x = built(HUGE)
    module = builder.module(builder.add("CumProd", x, axis=0))
    (found,) = refusal(module, "x")
    assert found.code == "GRD01"
    assert "`CumProd` %1 has no gradient" in found.message
    assert "more elements than 2^63 - 1" in found.message


def test_a_count_beyond_a_half_float_is_infinite() -> None:
    builder, x = built(dtype="f16")
    module = builder.module(builder.add("Broadcast", x, shape=(70_000,)))
    (found,) = gradients(module, {"x": np.array(1, np.float16)}, ["x"])
    assert found == np.inf


@pytest.mark.full
@in_time(10)
def test_a_chain_of_very_many_operations_takes_seconds() -> None:
    type_ = TensorType("f64", (2,))
    plus, half = attributes({"op": Word("Add")}), attributes({"op": Word("Mul")})
    operations = [
        operation(0, "Input", (), type_, attributes({"name": "x"})),
        operation(1, "ConstF64", (), TensorType("f64"), attributes({"value": 0.5})),
    ]
    for at in range(2, 20_000, 2):
        before = at - 1 if at > 2 else 0
        operations.append(operation(at, "BinOp", (0, before), type_, plus))
        operations.append(operation(at + 1, "BinOp", (1, at), type_, half))
    module = Module(tuple(operations), (operations[-1].value_id,))
    made = grad(module, ["x"])
    value, gradient = evaluate(made, {"x": np.array([1.0, -2.0])})
    np.testing.assert_allclose(value, [1.0, -2.0])
    np.testing.assert_allclose(gradient, [1.0, 1.0])


# What is wrong


def refusal(module: Module, *names: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        grad(module, names)
    return caught.value.diagnostics


TEXT = """# a comment
%0 = Input () {name="weight"} : tensor<f32[2]>
%1 = Input () {name="at"} : tensor<i64[2]>
%2 = Neg (%0) : tensor<f32[2]>
outputs: %2
"""


def test_every_name_that_is_none_is_told_with_what_was_meant() -> None:
    found = refusal(parse(TEXT, "m.core"), "wieght", "weight", "other", "at")
    assert [d.code for d in found] == ["GRD02", "GRD02", "GRD03"]
    assert "no input `wieght`" in found[0].message
    assert "`weight`" in found[0].message
    assert "tensor<i64[2]>, expected floats" in found[2].message
    assert str(found[2].location) == "m.core:3:1"


QUANTISED = """
%0 = Input () {name="x"} : tensor<f32[1, 2]>
%1 = Input () {name="w"} : tensor<f32[1, 2]>
%2 = ConstF32 () {value=0.5} : tensor<f32[]>
%3 = Quantize (%0, %2) {to=i8} : tensor<i8[1, 2]>
%4 = Reshape (%3) {new_shape=[2]} : tensor<i8[2]>
%5 = Dequantize (%4, %2) : tensor<f32[2]>
%6 = Quantize (%1, %2) {to=i8} : tensor<i8[1, 2]>
%7 = Dequantize (%6, %2) : tensor<f32[1, 2]>
outputs: %5, %7
"""


def test_all_operations_without_a_gradient_are_told_at_once_at_their_places() -> None:
    module = parse(QUANTISED, "q.core")
    assert verify(module, "nacre-1") == []
    found = refusal(module, "x", "w")
    assert [(d.code, d.location.line) for d in found] == [
        ("GRD01", 5), ("GRD01", 7), ("GRD01", 8), ("GRD01", 9),
    ]  # fmt: skip
    assert "`Quantize` %3 has no gradient" in found[0].message


def test_only_what_lies_on_the_way_is_refused() -> None:
    module = parse(QUANTISED, "q.core")
    assert [d.location.line for d in refusal(module, "w")] == [8, 9]
    builder, x = built(2)
    scale = builder.add("ConstF64", value=0.5)
    level = builder.add("Quantize", builder.add("Neg", x), scale, to="i8")
    # An output of integers takes no seed.
    module = builder.module(level, builder.add("Exp", x))
    found = evaluate(grad(module, ["x"]), {"x": np.zeros(2)})
    assert found[2].tolist() == [1.0, 1.0]


def test_an_equation_with_too_many_axes_is_refused() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    builder = Builder()
    x = builder.input("x", "f64", (1,) * 54)
    module = builder.module(builder.add("Einsum", x, equation=f"{letters}...->..."))
    (found,) = refusal(module, "x")
    assert found.code == "GRD01"
    assert "54 axes, expected at most 52" in found.message


def test_a_wrong_module_has_the_findings_of_the_verifier() -> None:
    text = TEXT.replace("%2 = Neg (%0) : tensor<f32[2]>", "%2 = Neg (%0) : tensor<f32[3]>")
    assert [d.code for d in refusal(parse(text), "weight")] == ["MOD11"]


def test_places_are_those_of_the_text_also_where_inputs_are_hoisted() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[1]>
%1 = ConstF32 () {value=0.5} : tensor<f32[]>
%2 = Input () {name="y"} : tensor<f32[1]>
%3 = Quantize (%2, %1) {to=i8} : tensor<i8[1]>
%4 = Dequantize (%3, %1) : tensor<f32[1]>
outputs: %4
"""
    assert [d.location.line for d in refusal(parse(text), "y")] == [4, 5]


def test_a_gradient_of_our_own_that_is_wrong_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from nacre.base.diagnostics import InternalError

    builder, x = built(2)
    module = builder.module(builder.add("Exp", x))
    wrong = verify(parse(TEXT.replace("f32[2]>\noutputs", "f32[3]>\noutputs")), "nacre-1")
    monkeypatch.setattr(home, "verify", lambda made, profile: wrong)
    with pytest.raises(InternalError, match="no valid module"):
        grad(module, ["x"])


@in_time(2)
def test_a_thousand_wrong_names_are_answered_at_once() -> None:
    build = Builder()
    module = build.module(*[build.input(f"x{index}", "f32", ()) for index in range(1000)])
    with pytest.raises(InputError) as caught:
        grad(module, [f"w_x{index}" for index in range(1000)])
    assert [d.code for d in caught.value.diagnostics] == ["GRD02"] * 1000


def test_ids_without_room_behind_them_are_dealt_out_again() -> None:
    last = 10**18 - 1
    module = Module(
        (
            operation(0, "Input", (), F32, attributes({"name": "x"})),
            operation(last, "Log", (0,), F32),
        ),
        (last,),
    )
    made = grad(module, ["x"])
    assert verify(made, "nacre-1") == []
    assert parse(print_module(made)) == made
    assert [a.item() for a in evaluate(made, {"x": np.float32(4)})] == [np.log(np.float32(4)), 0.25]


def test_what_has_no_gradient_is_pointed_at_where_ids_are_dealt_out_again() -> None:
    text = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = ConstF32 () {value=0.5} : tensor<f32[]>
%2 = ConstTensor () {data=0, dtype=i8, shape=[]} : tensor<i8[]>
%3 = Quantize (%0, %1, %2) {to=i8} : tensor<i8[2]>
%999999999999999999 = Dequantize (%3, %1, %2) : tensor<f32[2]>
outputs: %999999999999999999
"""
    with pytest.raises(InputError) as caught:
        grad(parse(text), ["x"])
    assert [(d.code, d.location.line) for d in caught.value.diagnostics] == [
        ("GRD01", 4),
        ("GRD01", 5),
    ]


@pytest.mark.full
def test_a_concat_of_very_many_takes_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        build = Builder()
        parts = [build.input(f"x{index}", "f32", (1,)) for index in range(count)]
        weights = build.input("w", "f32", (count,))
        module = build.module(
            build.add("BinOp", build.add("Concat", *parts, axis=0), weights, op="Mul")
        )
        began = time.process_time()
        made = grad(module, [f"x{index}" for index in range(count)])
        assert len(made.outputs) == count + 1
        return time.process_time() - began

    assert seconds(8_000) < 5 * seconds(2_000) + 1


def test_the_gradient_of_hard_swish_at_nan_is_nan() -> None:
    build = Builder()
    module = build.module(build.add("HardSwish", build.input("x", "f32", (5,))))
    x = np.array([np.nan, -3, 0, 3, 4], np.float32)
    (_, found) = evaluate(grad(module, ["x"]), {"x": x})
    np.testing.assert_array_equal(found, np.array([np.nan, 0, 0.5, 1, 1], np.float32))

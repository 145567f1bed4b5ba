"""The verifier on damaged modules: never an exception, always the same list, and quick."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nacre.core.module import CoreOperation, Module, State, TensorType, operation
from nacre.core.ops import OPS, PROFILES, Profile
from nacre.core.rules.facts import OperationFacts
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.values import Attributes, Custom, Literal, Word, attributes
from nacre.core.verify import MAX_FINDINGS, verdict_of, verify
from nacre.kernels.interface.shapes import window_count
from tests.core.modules import modules

HUGE = 10**4000  # a little more, and Python refuses to print it
EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES)

integers = st.sampled_from([-(2**70), -5, -1, 0, 1, 2, 3, 64, 2**31, 2**62, 2**70, HUGE])
values = st.recursive(
    st.one_of(
        integers,
        st.booleans(),
        st.none(),
        st.sampled_from([0.5, float("nan"), float("inf"), 1e300]),
        st.sampled_from([Word("Add"), Word("Div"), Word("Same"), Word("f32"), Word("bf16"), "x"]),
        st.just(Custom(((1, 1), (0, 2)))),
        st.just(Custom(((1, -1),))),
        st.just(Custom(cast("Any", (1, "a")))),
        st.just(Literal(np.zeros((2, 3), np.float32))),
        st.just([1, 2]),  # has no hash
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
dims = st.one_of(st.lists(integers, max_size=5).map(tuple), values)
names = st.one_of(st.sampled_from(sorted(OPS)), st.sampled_from(["Foo", "", "br"]))
dtypes = st.sampled_from(["f32", "i32", "i64", "f64", "bool", "f16", "i4", "foo", None, ()])


@st.composite
def damaged(draw: st.DrawFn) -> Module:
    """A valid module in which some fields were exchanged for others, sensible or not."""
    module = draw(modules(most_operations=6))
    operations = list(module.operations)
    for at in draw(st.sets(st.integers(0, len(operations) - 1), min_size=1, max_size=3)):
        operations[at] = draw(_damage(operations[at]))
    outputs: Any = draw(st.one_of(st.just(module.outputs), dims))
    states = draw(st.sampled_from([(), (State("x0", 0, 1),), (State(cast("Any", 5), HUGE, -1),)]))
    return Module(tuple(operations), outputs if isinstance(outputs, tuple) else (), states)


def _damage(op: CoreOperation) -> st.SearchStrategy[CoreOperation]:
    known = [spec.name for spec in OPS[op.opcode].attributes] if op.opcode in OPS else []
    keys = st.sampled_from([*known, "data", "shape", "axes", "other"])
    kept = {key: value for key, value in op.attributes.items() if key != "data"}

    def with_attribute(key: str, value: object) -> CoreOperation:
        return replace(op, attributes=Attributes({**op.attributes, key: value}))

    def without(key: str) -> CoreOperation:
        rest = {name: value for name, value in op.attributes.items() if name != key}
        return replace(op, attributes=Attributes(rest))

    def with_type(dtype: object, shape: object) -> CoreOperation:
        return replace(op, type=TensorType(cast("str", dtype), cast("tuple[int, ...]", shape)))

    return st.one_of(
        st.builds(with_attribute, keys, values),
        st.builds(without, keys),
        st.builds(with_type, dtypes, dims),
        st.builds(with_type, st.just(op.type.dtype), dims),
        st.builds(lambda v: replace(op, operands=v), dims),
        st.builds(lambda v: replace(op, value_id=v), st.one_of(integers, values)),
        st.builds(lambda v: replace(op, opcode=v), st.one_of(names, values)),
        st.just(replace(op, attributes=Attributes(kept))),
        st.just(replace(op, attributes=cast("Any", None))),
        st.just(replace(op, type=cast("Any", "tensor<f32[]>"))),
    )


@EVERY_PROFILE
@given(module=damaged())
def test_any_damage_is_described_alike_each_time(profile: Profile, module: Module) -> None:
    first, second = (
        [(d.code, d.severity, d.message, d.location) for d in verify(module, profile)]
        for _ in range(2)
    )
    assert isinstance(verify(module, profile), list)
    assert first == second


@EVERY_PROFILE
@given(module=damaged())
def test_what_verifies_can_be_printed_read_and_verified(profile: Profile, module: Module) -> None:
    found = verify(module, profile)
    if any(d.severity == "error" for d in found):
        return
    again = parse(print_module(module))
    assert [(d.code, d.message, d.location.line) for d in verify(again, profile)] == [
        (d.code, d.message, d.location.line) for d in found
    ]


@EVERY_PROFILE
@given(module=modules())
def test_sound_modules_have_no_finding(profile: Profile, module: Module) -> None:
    assert [d for d in verify(module, profile) if d.severity == "error"] == []


def test_equal_values_of_other_types_are_judged_apart() -> None:
    """1 equals 1.0 and true, and a word equals a string: a verdict must not be shared."""
    x = operation(0, "Input", (), TensorType("f32", (1,)), attributes({"name": "x"}))
    kept = TensorType("f32", (1,))
    given: list[tuple[str, tuple[int, ...], TensorType, dict[str, object]]] = [
        ("Sum", (0,), kept, {"axes": (0,), "keepdims": True}),
        ("Sum", (0,), kept, {"axes": (0,), "keepdims": 1}),
        ("Sum", (0,), kept, {"axes": (False,), "keepdims": True}),
        ("BinOp", (0, 0), kept, {"op": Word("Add")}),
        ("BinOp", (0, 0), kept, {"op": "Add"}),
        ("ConstI64", (), TensorType("i64"), {"value": 1}),
        ("ConstI64", (), TensorType("i64"), {"value": 1.0}),
    ]
    operations = [
        operation(at, opcode, operands, type_, attributes(each))
        for at, (opcode, operands, type_, each) in enumerate(given, 1)
    ]
    found = verify(Module((x, *operations), (0,)))
    assert [(d.location.line, d.code) for d in found] == [
        (3, "MOD10"),
        (4, "MOD10"),
        (6, "MOD10"),
        (8, "CON01"),
    ]


def test_a_dimension_that_only_equals_an_integer_is_none() -> None:
    types = [TensorType("f32", cast("Any", (2,))), TensorType("f32", cast("Any", (2.0,)))]
    inputs = [
        operation(at, "Input", (), type_, attributes({"name": str(at)}))
        for at, type_ in enumerate(types)
    ]
    assert [d.location.line for d in verify(Module(tuple(inputs), (0,)))] == [2]


@pytest.mark.parametrize("field", ["dimension", "attribute", "id", "operand", "output", "value"])
def test_numbers_that_cannot_be_printed_do_no_harm(field: str) -> None:
    vast = 10**5000
    x = operation(0, "Input", (), TensorType("f32", (2,)), attributes({"name": "x"}))
    wrong = {
        "dimension": replace(x, type=TensorType("f32", (vast,))),
        "attribute": operation(1, "Sum", (0,), x.type, attributes({"axes": (vast,)})),
        "id": replace(x, value_id=vast),
        "operand": operation(1, "Relu", (vast,), x.type),
        "output": operation(1, "Relu", (0,), x.type),
        "value": operation(1, "ConstI64", (), TensorType("i64"), attributes({"value": vast})),
    }[field]
    found = verify(Module((x, wrong), (vast if field == "output" else 0,)))
    assert found
    assert all(len(str(d)) < 300 for d in found)


def test_more_axes_than_arrays_have_are_refused() -> None:
    text = '%0 = Input () {{name="x"}} : tensor<f32[{}]>\noutputs: %0\n'
    assert verify(parse(text.format(", ".join("1" * 64)))) == []
    (found,) = verify(parse(text.format(", ".join("1" * 65))))
    assert (found.code, found.message) == ("MOD12", "the tensor has 65 axes, expected at most 64")


def test_a_module_without_text_is_placed_in_its_canonical_text() -> None:
    text = (
        '%0 = Input () {name="x"} : tensor<f32[2]>\n%1 = Exp (%0) : tensor<f32[3]>\noutputs: %9\n'
    )
    built = Module(parse(text).operations, (9,), (State("q", 0, 0),))
    found = [(d.code, d.location.line) for d in verify(built, "nacre-1")]
    assert found == [("MOD11", 2), ("MOD03", 3), ("MOD15", 4), ("MOD15", 4)]
    assert verify(built)[0].span.source.line_text(2) == text.split("\n")[1]


def test_literals_made_by_hand_are_judged_as_read_ones() -> None:
    def codes(data: object, dtype: str, shape: tuple[int, ...]) -> list[str]:
        given = attributes({"data": data, "dtype": Word(dtype), "shape": shape})
        op = operation(0, "ConstTensor", (), TensorType(dtype, shape), given)
        return [d.code for d in verify(Module((op,), (0,)), "nacre-1")]

    assert codes((1.0, 2.0), "f32", (2,)) == []
    assert codes((1e39,), "f32", (1,)) == ["CON05"]
    assert codes((3.4028235e38,), "f32", (1,)) == []
    assert codes((2**70,), "f32", (1,)) == []
    assert codes((10**400,), "f64", (1,)) == ["CON05"]
    assert codes((500.0,), "f8e4m3", (1,)) == ["CON05"]
    assert codes((8,), "i4", (1,)) == ["CON05"]
    assert codes((True,), "bool", (1,)) == []
    assert codes((1,), "bool", (1,)) == ["CON05"]
    assert codes(np.zeros(2, np.float64), "f32", (2,)) == ["CON05"]
    assert codes(np.zeros(3, np.float32), "f32", (2,)) == ["CON04"]
    assert codes(np.zeros((3, 2), np.float32), "f32", (2, 3)) == ["CON06"]
    assert codes(((1.5, 2), (3,)), "i32", (2, 2)) == ["CON05", "CON06"]


@pytest.mark.parametrize(("opcode", "value"), [("ConstF32", 1e39), ("ConstF64", 10**309)])
def test_scalar_floats_out_of_range_are_no_values(opcode: str, value: float) -> None:
    type_ = TensorType(opcode.removeprefix("Const").lower())
    op = operation(0, opcode, (), type_, attributes({"value": value}))
    assert [d.code for d in verify(Module((op,), (0,)))] == ["CON05"]


def test_every_operation_defines_one_value() -> None:
    module = parse('%0 = Input () {name="x"} : tensor<f32[2]>\noutputs: %0\n')
    assert set(module.by_id) == {0}
    assert isinstance(module.operations[0].type, TensorType)


def _convolution(strides: tuple[int, ...], padding: object) -> OperationFacts:
    types = (TensorType("f32", (1, 5, 6, 2)), TensorType("f32", (3, 4, 2, 1)))
    given = attributes({"strides": strides, "padding": padding})
    inferred = OPS["Conv2d"].infer(types, given)
    declared = inferred or TensorType("f32", (1, 1, 1, 1))
    return OperationFacts("Conv2d", OPS["Conv2d"], types, given, declared, "core-v1")


pads = st.tuples(st.integers(-1, 2), st.integers(-1, 2))
paddings = st.one_of(
    st.sampled_from([Word("Same"), Word("Valid"), Word("Full")]),
    st.lists(pads, min_size=1, max_size=3).map(Custom),
)


@given(strides=st.lists(st.integers(-1, 4), min_size=1, max_size=3).map(tuple), padding=paddings)
def test_every_combination_of_a_convolution_is_computed_or_diagnosed(
    strides: tuple[int, ...], padding: object
) -> None:
    use = _convolution(strides, padding)
    codes = {rule.code for rule, _ in verdict_of(use)}
    is_odd = padding == "Full"
    if isinstance(padding, Custom):
        is_odd = len(padding) != 2 or min(map(min, padding)) < 0
    assert ("CNV05" in codes) == is_odd
    assert ("CNV04" in codes) == (len(strides) != 2 or min(strides) < 1)
    assert "MOD11" not in codes
    if codes or padding == "Same":
        return
    (top, bottom), (left, right) = padding if isinstance(padding, Custom) else ((0, 0), (0, 0))
    rows = window_count(5, 3, top, bottom, strides[0], 1)
    columns = window_count(6, 4, left, right, strides[1], 1)
    assert use.type.shape == (1, rows, columns, 1)


def test_findings_are_limited() -> None:
    lines = [f"%{i} = Foo () : tensor<f32[]>" for i in range(3 * MAX_FINDINGS)]
    found = verify(parse("\n".join([*lines, "outputs: %0", ""])))
    assert len(found) == MAX_FINDINGS


@pytest.mark.full
def test_lists_of_a_hundred_thousand_entries_take_no_time() -> None:
    many = ", ".join(["-1"] * 100_000)
    large = ", ".join(["99999999999999999999"] * 100_000)
    text = (
        '%0 = Input () {name="x"} : tensor<f32[2, 3]>\n'
        f"%1 = Sum (%0) {{axes=[{many}]}} : tensor<f32[]>\n"
        f"%2 = Reshape (%0) {{new_shape=[{large}]}} : tensor<f32[6]>\n"
        f"%3 = Transpose (%0) {{permutation=[{many}]}} : tensor<f32[6]>\n"
        "outputs: %0\n"
    )
    module = parse(text)
    start = time.perf_counter()
    assert [d.code for d in verify(module)] == ["RED02", "SHP01", "SHP04"]
    assert time.perf_counter() - start < 30


def test_a_long_chain_is_verified_in_proportion_to_its_length() -> None:
    count = 100_000
    lines = ['%0 = Input () {name="x"} : tensor<f32[2, 3]>']
    lines += [f"%{i} = Relu (%{i - 1}) : tensor<f32[2, 3]>" for i in range(1, count)]
    module = parse("\n".join([*lines, f"outputs: %{count - 1}", ""]))
    start = time.perf_counter()
    assert verify(module) == []
    # A loaded machine is slow; quadratic time would take hours.
    assert time.perf_counter() - start < 10


def test_an_operation_that_cannot_be_looked_at_is_the_one_report() -> None:
    f32 = TensorType("f32")
    broken = CoreOperation(1, "Relu", cast("Any", None), attributes({}), f32)
    operations = (
        operation(0, "Input", (), f32, attributes({"name": "x"})),
        broken,
        operation(2, "Relu", (1,), f32),
    )
    (found,) = verify(Module(operations, (1, 2)))
    assert found.message == "the operands of %1 are not a list of ids"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("opcode", sorted(OPS))
def test_messages_about_endless_attributes_end(opcode: str) -> None:
    endless = (1,) * 20_000
    spec = OPS[opcode]
    given = {a.name: endless for a in spec.attributes if a.kind in ("ints", "floats", "data")}
    type_ = TensorType("f32", endless)
    x = operation(0, "Input", (), TensorType("f32", (1,)), attributes({"name": "n" * 100_000}))
    use = operation(1, opcode, (0,) * spec.least, type_, attributes(given))
    found = verify(Module((x, use), (1,)), "nacre-1")
    assert found
    assert max(len(d.message) for d in found) <= 2100

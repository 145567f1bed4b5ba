"""Surface expressions: what they become, and where a wrong one is pointed at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.canonical import canonicalise
from nacre.core.expression_reader import FUNCTIONS, MAX_CHARACTERS, MAX_NESTING
from nacre.core.expressions import lower
from nacre.core.module import TensorType
from nacre.core.ops import OPS
from nacre.core.text.printer import print_module
from nacre.core.verify import verify
from tests.clock import in_time
from tests.core.modules import interpret

INPUTS = {
    "x": "f32[2,3]",
    "w": "f32[3, 4]",
    "b": "f32[4]",
    "n": "i64[2]",
    "d": "f64[2]",
    "s": "f32",
    "image": "f32[1,5,5,2]",
    "filter": "f32[3,3,2,4]",
}


def lines(expression: str) -> list[str]:
    """What follows the inputs, without the types."""
    made = lower(expression, INPUTS)
    assert verify(made) == []
    shown = [line.split(" : ")[0] for line in print_module(made).splitlines()]
    return [line for line in shown if " Input " not in line]


def test_a_dense_layer_lowers_as_the_text_says() -> None:
    assert print_module(lower("relu(x @ w + b)", INPUTS)) == (
        '%0 = Input () {name="x"} : tensor<f32[2, 3]>\n'
        '%1 = Input () {name="w"} : tensor<f32[3, 4]>\n'
        '%2 = Input () {name="b"} : tensor<f32[4]>\n'
        "%3 = MatMul (%0, %1) : tensor<f32[2, 4]>\n"
        "%4 = BinOp (%3, %2) {op=Add} : tensor<f32[2, 4]>\n"
        "%5 = Relu (%4) : tensor<f32[2, 4]>\n"
        "outputs: %5\n"
    )


LOWERED = [
    ("x", ["outputs: %0"]),
    ("((x))", ["outputs: %0"]),
    ("x - x - x", ["%1 = BinOp (%0, %0) {op=Sub}", "%2 = BinOp (%1, %0) {op=Sub}", "outputs: %2"]),
    ("x + x * x", ["%1 = BinOp (%0, %0) {op=Mul}", "%2 = BinOp (%0, %1) {op=Add}", "outputs: %2"]),
    ("-x * x", ["%1 = Neg (%0)", "%2 = BinOp (%1, %0) {op=Mul}", "outputs: %2"]),
    ("--x", ["%1 = Neg (%0)", "%2 = Neg (%1)", "outputs: %2"]),
    ("relu(-exp(log(neg(s))))",
     ["%1 = Neg (%0)", "%2 = Log (%1)", "%3 = Exp (%2)", "%4 = Neg (%3)", "%5 = Relu (%4)",
      "outputs: %5"]),
    ("sum(x)", ["%1 = Sum (%0) {axes=[], keepdims=false}", "outputs: %1"]),
    ("mean(x, axes=[1], keepdims=true)",
     ["%1 = Mean (%0) {axes=[1], keepdims=true}", "outputs: %1"]),
    ("sum(x, -1, true)", ["%1 = Sum (%0) {axes=[-1], keepdims=true}", "outputs: %1"]),
    ("reshape(x, [3, -1])", ["%1 = Reshape (%0) {new_shape=[3, -1]}", "outputs: %1"]),
    ("transpose(x)", ["%1 = Transpose (%0) {permutation=[1, 0]}", "outputs: %1"]),
    ("dot(x, w)", ["%2 = Dot (%0, %1)", "outputs: %2"]),
    ("matmul(x, w)", ["%2 = MatMul (%0, %1)", "outputs: %2"]),
    ("slice(x, [0, 1], [2, 3])",
     ["%1 = Slice (%0) {ends=[2, 3], starts=[0, 1], steps=[1, 1]}", "outputs: %1"]),
    ("index(x, indices=[1, 2])", ["%1 = Index (%0) {indices=[1, 2]}", "outputs: %1"]),
    ("squeeze(expand_dims(x, 0), [0])",
     ["%1 = ExpandDims (%0) {axes=[0]}", "%2 = Squeeze (%1) {axes=[0]}", "outputs: %2"]),
    ("conv2d(image, filter)",
     ["%2 = Conv2d (%0, %1) {padding=Valid, strides=[1, 1]}", "outputs: %2"]),
    ("conv2d(image, filter, strides=[2, 1], padding=Same)",
     ["%2 = Conv2d (%0, %1) {padding=Same, strides=[2, 1]}", "outputs: %2"]),
    ("conv2d(image, filter, padding=[[1, 1], [0, 0]])",
     ["%2 = Conv2d (%0, %1) {padding=Custom([[1, 1], [0, 0]]), strides=[1, 1]}", "outputs: %2"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), LOWERED)
def test_operators_and_calls_become_operations(expression: str, expected: list[str]) -> None:
    assert lines(expression) == expected


def test_every_function_names_an_operation() -> None:
    assert set(FUNCTIONS.values()) <= set(OPS)


def test_inputs_stand_in_the_order_of_first_use_and_unused_ones_are_left_out() -> None:
    made = lower("b + x @ w + b", {"w": "f32[3,4]", **INPUTS})
    assert list(made.input_types) == ["b", "x", "w"]


LITERALS = [
    ("x * 2", ["data=2.0, dtype=f32, shape=[]"]),
    ("n * 2", ["data=2, dtype=i64, shape=[]"]),
    ("d * (1 - 0.5)", ["data=1.0, dtype=f64, shape=[]", "data=0.5, dtype=f64, shape=[]"]),
    ("(2 + 3) * x", ["data=2.0, dtype=f32, shape=[]", "data=3.0, dtype=f32, shape=[]"]),
    ("2 + 3", ["data=2, dtype=i64, shape=[]", "data=3, dtype=i64, shape=[]"]),
    ("2 + 3e0", ["data=2.0, dtype=f32, shape=[]", "data=3.0, dtype=f32, shape=[]"]),
    ("n + -9223372036854775808", ["data=-9223372036854775808, dtype=i64, shape=[]"]),
    ("d * -0.0", ["data=-0.0, dtype=f64, shape=[]"]),
    ("n - [[1, -2]]", ["data=[[1, -2]], dtype=i64, shape=[1, 2]"]),
    ("gather(x, [1, 0])", ["data=[1, 0], dtype=i64, shape=[2]"]),
]


@pytest.mark.parametrize(("expression", "expected"), LITERALS)
def test_literals_take_the_type_of_what_they_meet(expression: str, expected: list[str]) -> None:
    found = [line for line in lines(expression) if "ConstTensor" in line]
    assert [line.split("{")[1].rstrip("}") for line in found] == expected


WRONG = [
    ("x + q", 5, "LOW02", "no input `q` was given"),
    ("x + d", 3, "BIN02", "`f32` and `f64`"),
    ("x @ w + [1, 2]", 7, "BIN03", "dimension 1 is 4 and 2"),
    ("b + x @ x", 7, "MAT02", "3 of [2, 3] and 2 of [2, 3]"),
    ("x @ b", 3, "MAT01", "rank 1, expected 2 or more"),
    ("1 + relu(n)", 5, "UNA01", "`Relu` of `i64`"),
    ("sum(x, axes=[2])", 1, "RED01", "axis 2"),
    ("reshape(x, [4])", 1, "SHP01", "6"),
    ("", 1, "LOW01", "found the end"),
    ("x +", 4, "LOW01", "expected a name, a number or `(`, found the end"),
    ("x $ x", 3, "LOW01", "found `$`"),
    ("x x", 3, "LOW01", "expected an operator or the end, found `x`"),
    ("(x", 3, "LOW01", "expected `)`, found the end"),
    ("relu(x", 7, "LOW01", "expected `,` or `)`, found the end"),
    ("x + [1, 2", 10, "LOW01", "expected `,` or `]`, found the end"),
    ("x\xa0+ x", 2, "LOW01", "expected an expression, found U+00A0"),
    ("x + x\xa0", 6, "LOW01", "expected an expression, found U+00A0"),
    ("[1, x]", 5, "LOW01", "expected a number, found `x`"),
    ("rellu(x)", 1, "LOW02", "no function `rellu`"),
    ("sum(x, axis=[1])", 8, "LOW03", "`sum` has no argument `axis`"),
    ("sum(x, axes=[1], axes=[1])", 18, "LOW03", "`axes` is given twice"),
    ("sum(x, 1.5)", 8, "LOW03", "`axes` is `1.5`, expected a list of integers"),
    ("sum(x, axes=", 13, "LOW03", "`axes` is missing, expected a list of integers"),
    ("sum(x, [0], 1)", 13, "LOW03", "`keepdims` is `1`, expected `true` or `false`"),
    ("sum(x, [0], true, 3)", 19, "LOW03", "takes at most 3 arguments"),
    ("x + dot(x)", 5, "LOW03", "`dot` has 1 operands, expected 2"),
    ("reshape(x)", 1, "LOW03", "`reshape` lacks the argument `new_shape`"),
    ("conv2d(image, filter, padding=[1])", 31, "LOW03", "`padding` is `[1]`, expected `Valid`"),
    ("n * 0.5", 5, "LOW04", "the literal `0.5` has a value that is no `i64`"),
    ("x * 1e40", 5, "LOW04", "`1e40` has a value that is no `f32`"),
    ("x * 1e400", 5, "LOW04", "`1e400` is beyond every type"),
    ("n + [[1], [1, 2]]", 5, "LOW04", "has rows of different lengths"),
    ("n + []", 5, "LOW04", "the literal `[]` is empty"),
    ("n + " + "1" * 5000, 5, "LOW04", "an integer of 5000 digits"),
    ("(" * 99 + "x" + ")" * 99, MAX_NESTING + 1, "LOW05", f"more than {MAX_NESTING} levels"),
    ("[" * 99 + "1" + "]" * 99, MAX_NESTING, "LOW05", f"more than {MAX_NESTING} levels"),
    ("x" * (MAX_CHARACTERS + 1), 1, "LOW05", "1,000,001 characters"),
]


@pytest.mark.parametrize(
    ("expression", "column", "code", "message"),
    WRONG,
    ids=[row[0][:30] or "nothing" for row in WRONG],
)
def test_what_is_wrong_is_pointed_at(expression: str, column: int, code: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        lower(expression, INPUTS)
    first = caught.value.diagnostics[0]
    assert (first.code, first.location.line, first.location.column) == (code, 1, column)
    assert message in first.message


def test_a_misspelt_name_is_met_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        lower("imag + fliter + rellu", INPUTS)
    helps = [d.help for d in caught.value.diagnostics]
    assert helps == ["did you mean `image`?", "did you mean `filter`?", None]


def test_one_cause_is_reported_once_and_others_beside_it() -> None:
    with pytest.raises(InputError) as caught:
        lower("relu(x + b) * w + relu(n)", INPUTS)
    assert [d.code for d in caught.value.diagnostics] == ["BIN03", "UNA01"]


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("f33[2]", "no element type `f33`; did you mean `f32`?"),
        ("f32[2", "expected a type such as `f32[2,3]`, found `f32[2`"),
        ("f32[-1]", "expected a type such as `f32[2,3]`, found `f32[-1]`"),
    ],
)
def test_a_type_that_cannot_be_read_is_reported_with_its_input(type_: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        lower("x", {"x": type_})
    assert str(caught.value) == f"<input x>:1:1: error[LOW06]: input `x`: {message}"


def test_an_input_that_the_verifier_would_refuse_is_refused() -> None:
    for type_, code in (("f32[0]", "MOD12"), ("f16[2]", "MOD13")):
        with pytest.raises(InputError) as caught:
            lower("x", {"x": type_})
        assert [d.code for d in caught.value.diagnostics] == [code]


def test_types_may_be_given_as_values() -> None:
    made = lower("x + 1", {"x": TensorType("i32", (2,))})
    assert made.output_types == (TensorType("i32", (2,)),)


@pytest.mark.full
def test_long_chains_need_no_stack() -> None:
    made = lower(" + ".join(["x"] * 20_000), INPUTS)
    assert len(made) == 20_000
    assert len(lower("-" * 20_000 + "x", INPUTS)) == 20_001


def test_a_lowered_expression_computes_what_it_says() -> None:
    random = np.random.default_rng(5)
    values = {name: random.standard_normal(shape).astype(np.float32)
              for name, shape in (("x", (2, 3)), ("w", (3, 4)), ("b", (4,)))}  # fmt: skip
    made = lower("relu(x @ w - 2 * b) + mean(b)", INPUTS)
    x, w, b = values["x"], values["w"], values["b"]
    expected = np.maximum(x @ w - 2 * b, 0) + b.mean()
    for each in (made, canonicalise(made)):
        np.testing.assert_allclose(interpret(each, values)[0], expected, rtol=1e-5, atol=1e-6)


_PIECES = ["x", "n", "w", "2", "0.5", "[1, 2]", "+", "-", "*", "@", "(", ")", "relu(", "sum(", ",",
           "axes=", "true", "=", " ", "é", "[", "]"]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_any_text_lowers_to_a_valid_module_or_raises_an_input_error(text: str) -> None:
    try:
        made = lower(text, INPUTS)
    except InputError:
        return
    assert verify(made) == []
    assert lower(text, INPUTS) == made


@in_time(2)
def test_a_thousand_wrong_names_are_answered_at_once() -> None:
    inputs = {f"x{index}": "f32[2]" for index in range(1000)}
    with pytest.raises(InputError) as caught:
        lower(" + ".join(f"w_x{index}" for index in range(1000)), inputs)
    assert [d.code for d in caught.value.diagnostics] == ["LOW02"] * 1000

"""Modules as MLIR text: every opcode read and verified by xDSL, constants to the bit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.mlir.export import to_mlir
from nacre.core.mlir.lowerings import LOWERINGS
from nacre.core.mlir.shape_ops import axis_groups
from nacre.core.mlir.types import MOST_LISTED, dense_text, element_text, number_text
from nacre.core.module import Module, Shape, TensorType
from nacre.core.ops import OPS
from nacre.core.text.reader import parse
from nacre.core.values import Custom, Literal
from tests.core.modules import modules

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = npt.NDArray[Any]
Attributes = Mapping[str, object]

V1_TYPES = ("i32", "i64", "f32", "f64")
FLOATS = tuple(name for name, element in GRAPH_TYPES.items() if element.kind == "float")
NUMBERS = tuple(name for name in GRAPH_TYPES if name != "bool")


# Every opcode


@dataclass(frozen=True)
class Case:
    """A use of an opcode: the shapes of its operands, and its attributes for an element type."""

    opcode: str
    shapes: tuple[Shape, ...]
    attributes: Attributes | Callable[[str], Attributes]
    dtypes: tuple[str, ...] = NUMBERS
    indices: str = ""  # the type of a second operand that has rows below 3

    def given(self, dtype: str) -> Attributes:
        return self.attributes(dtype) if callable(self.attributes) else self.attributes

    def types(self, dtype: str) -> tuple[str, ...]:
        return (dtype, self.indices or dtype)[: len(self.shapes)]

    def add(self, build: Builder, dtype: str, inputs: Sequence[int]) -> int:
        return build.add(self.opcode, *inputs, **self.given(dtype))


def _case(opcode: str, *shapes: Shape, **attributes: object) -> Case:
    return Case(opcode, shapes, attributes)


def _float_case(opcode: str, *shapes: Shape) -> Case:
    return Case(opcode, shapes, {}, FLOATS)


def _scalar(opcode: str, dtype: str, value: float) -> Case:
    return Case(opcode, (), {"value": value}, (dtype,))


def _tensor(*shape: int) -> Case:
    def literal(dtype: str) -> Attributes:
        count = np.arange(prod(shape)).reshape(shape) % 7
        data = count.astype(GRAPH_TYPES[dtype].dtype)
        return {"data": Literal(data), "dtype": dtype, "shape": shape}

    return Case("ConstTensor", (), literal, tuple(GRAPH_TYPES))


CUSTOM = Custom(((1, 0), (0, 2)))
CASES = (
    _scalar("ConstI64", "i64", -(2**63)),
    _scalar("ConstF32", "f32", 0.1),
    _scalar("ConstF64", "f64", float("-inf")),
    _tensor(2, 3),
    _tensor(5, 9),
    *(_case("BinOp", (2, 3), (2, 3), op=op) for op in ("Add", "Sub", "Mul")),
    *(_case("BinOp", a, b, op="Sub") for a, b in (((2, 3), (3,)), ((), (2, 3)), ((1,), ()))),
    _case("BinOp", (2, 1, 3), (4, 1), op="Mul"),
    *(_case("Sum", (2, 3, 4), axes=axes) for axes in ((), (1,), (0, -1))),
    *(_case("Sum", (2, 3, 4), axes=axes, keepdims=True) for axes in ((1,), (0, 1, 2))),
    _case("Sum", (), axes=()),
    *(_case("Mean", (2, 3, 4), axes=axes, keepdims=False) for axes in ((), (1,), (2, 0))),
    _case("Mean", (2, 3), axes=(1,), keepdims=True),
    _case("Mean", (), axes=()),
    *(_case("Reshape", (2, 3, 4), new_shape=shape) for shape in ((4, 6), (24,), (-1, 1, 2))),
    _case("Reshape", (1, 1), new_shape=()),
    _case("Reshape", (), new_shape=(1, 1)),
    _case("Transpose", (2, 3, 4), permutation=(2, 0, 1)),
    _case("Transpose", (), permutation=()),
    *(_case("ExpandDims", (3, 4), axes=axes) for axes in ((0, 2), (), (1, 1))),
    _case("ExpandDims", (), axes=(0, 0)),
    *(_case("Squeeze", (1, 3, 1), axes=axes) for axes in ((0,), (0, 2), ())),
    _case("Squeeze", (1,), axes=(0,)),
    _case("Index", (2, 3), indices=(1, 2)),
    _case("Index", (), indices=()),
    _case("Slice", (4, 5), starts=(1, -3), ends=(9, 4), steps=(2, 2**63 - 1)),
    _case("Slice", (4, 5), starts=(0, 1), ends=(4, 5), steps=(1, 2)),
    _case("Slice", (), starts=(), ends=(), steps=()),
    *(Case("Gather", ((3, 4), (2, 2)), {}, tuple(GRAPH_TYPES), by) for by in ("i32", "i64")),
    Case("Gather", ((3,), ()), {}, tuple(GRAPH_TYPES), "i64"),
    *(_case("Dot", a, b) for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)))),
    _case("Dot", (2, 3), (3, 4)),
    *(_case("MatMul", a, b) for a, b in (((2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 2)))),
    *(_case("MatMul", a, b) for a, b in (((5, 2, 3), (3, 4)), ((2, 3), (1, 3, 2)))),
    *(
        _case("Conv2d", (1, 5, 6, 3), (2, 3, 3, 4), strides=strides, padding=padding)
        for strides in ((1, 1), (2, 3))
        for padding in ("Valid", "Same", CUSTOM)
    ),
    _case("Conv2d", (1, 2, 2, 1), (2, 2, 1, 1), strides=(1000, 1), padding="Valid"),
    _case("Relu", (2, 3)),
    _case("Relu", ()),
    _case("Neg", (2, 3)),
    _float_case("Exp", (2, 3)),
    _float_case("Log", (2, 3)),
)


def module_of(dtype: str, cases: Sequence[Case]) -> Module:
    """All cases in one module: the inputs `x0.0`, `x0.1`, ..., and one output for each case."""
    build = Builder()
    inputs = [
        [
            build.input(f"x{at}.{i}", type_, shape)
            for i, (type_, shape) in enumerate(zip(case.types(dtype), case.shapes, strict=True))
        ]
        for at, case in enumerate(cases)
    ]
    return build.module(
        *(case.add(build, dtype, found) for case, found in zip(cases, inputs, strict=True))
    )


def cases_of(dtype: str) -> list[Case]:
    return [case for case in CASES if dtype in case.dtypes]


def read(text: str) -> Any:  # noqa: ANN401 - a ModuleOp of xDSL, which need not be there
    """The text as xDSL reads it, verified."""
    pytest.importorskip("xdsl")
    from xdsl.context import Context
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.dialects.linalg import Linalg
    from xdsl.dialects.math import Math
    from xdsl.dialects.tensor import Tensor
    from xdsl.parser import Parser

    context = Context()
    for dialect in (Builtin, Func, Arith, Math, Linalg, Tensor):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def signature(text: str, name: str = "main") -> tuple[list[str], list[str]]:
    """The types that a function takes and returns, as xDSL reads them."""
    (found,) = (op for op in read(text).ops if op.sym_name.data == name)
    return [str(t) for t in found.function_type.inputs], [
        str(t) for t in found.function_type.outputs
    ]


def spelled(type_: TensorType) -> str:
    return f"tensor<{'x'.join([*map(str, type_.shape), element_text(type_.dtype)])}>"


def test_every_operation_of_the_first_profile_has_a_row_and_a_case() -> None:
    first = {name for name, spec in OPS.items() if spec.profile == "core-v1"}
    assert first - {"Input"} <= set(LOWERINGS) <= set(OPS)
    assert {case.opcode for case in CASES} == set(LOWERINGS)


@pytest.mark.sampled(4)
@pytest.mark.heavy("another reader of MLIR")
@pytest.mark.parametrize("dtype", GRAPH_TYPES)
def test_every_case_is_read_by_xdsl(dtype: str) -> None:
    module = module_of(dtype, cases_of(dtype))
    inputs, outputs = signature(to_mlir(module))
    assert inputs == [spelled(type_) for type_ in module.input_types.values()]
    assert outputs == [spelled(type_) for type_ in module.output_types]


@given(module=modules())
def test_random_modules_are_read_by_xdsl(module: Module) -> None:
    text = to_mlir(module)
    inputs, outputs = signature(text)
    assert inputs == [spelled(type_) for type_ in module.input_types.values()]
    assert outputs == [spelled(type_) for type_ in module.output_types]
    assert to_mlir(parse(str(module))) == text


LAYER = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Input () {name="b"} : tensor<f32[3]>
%2 = BinOp (%0, %1) {op=Add} : tensor<f32[2, 3]>
%3 = Sum (%2) {axes=[1], keepdims=true} : tensor<f32[2, 1]>
outputs: %3, %0
"""
LAYER_TEXT = """\
module {
  func.func @main(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> (tensor<2x1xf32>, tensor<2x3xf32>) {
    %empty$2 = tensor.empty() : tensor<2x3xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) \
-> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} \
ins(%x, %b : tensor<2x3xf32>, tensor<3xf32>) outs(%empty$2 : tensor<2x3xf32>) {
    ^bb0(%$0: f32, %$1: f32, %$2: f32):
      %$3 = arith.addf %$0, %$1 : f32
      linalg.yield %$3 : f32
    } -> tensor<2x3xf32>
    %zero$3 = arith.constant 0.0 : f32
    %empty$3 = tensor.empty() : tensor<2xf32>
    %zeros$3 = linalg.fill ins(%zero$3 : f32) outs(%empty$3 : tensor<2xf32>) -> tensor<2xf32>
    %sum$3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, \
affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} \
ins(%2 : tensor<2x3xf32>) outs(%zeros$3 : tensor<2xf32>) {
    ^bb0(%$0: f32, %$1: f32):
      %$2 = arith.addf %$1, %$0 : f32
      linalg.yield %$2 : f32
    } -> tensor<2xf32>
    %3 = tensor.expand_shape %sum$3 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into \
tensor<2x1xf32>
    func.return %3, %x : tensor<2x1xf32>, tensor<2x3xf32>
  }
}
"""


def test_values_keep_their_numbers_and_steps_on_the_way_are_marked() -> None:
    assert to_mlir(parse(LAYER)) == LAYER_TEXT


# Constants


def constant_bytes(array: Array, dtype: str) -> bytes:
    """A constant written, and its bytes as xDSL reads them."""
    type_ = TensorType(dtype, array.shape)
    text = f"%0 = arith.constant {dense_text(array, dtype)} : {spelled(type_)}"
    (op,) = read(text).ops
    found: bytes = op.value.data.data
    return found


@st.composite
def arrays(draw: st.DrawFn, dtype: str) -> Array:
    """Any bits at all, often many of the same."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    size = GRAPH_TYPES[dtype].dtype.itemsize
    patterns = st.binary(min_size=size, max_size=size)
    pool = draw(st.lists(patterns, min_size=1, max_size=4))
    raw = b"".join(draw(st.sampled_from(pool)) for _ in range(prod(shape)))
    return np.frombuffer(raw, GRAPH_TYPES[dtype].dtype).reshape(shape)


@pytest.mark.parametrize(
    "dtype", [n for n, e in GRAPH_TYPES.items() if e.bits >= 8 and n != "bool"]
)
@given(data=st.data())
def test_constants_are_exact_to_the_bit(dtype: str, data: st.DataObject) -> None:
    array = data.draw(arrays(dtype))
    assert constant_bytes(array, dtype) == array.tobytes()


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2"])
def test_numbers_that_are_no_numbers_are_exact_too(dtype: str) -> None:
    numpy_type = GRAPH_TYPES[dtype].dtype
    with np.errstate(all="ignore"):
        array = np.array([np.nan, -0.0, np.inf, -np.inf, 1], np.float64).astype(numpy_type)
    assert constant_bytes(array, dtype) == array.tobytes()
    assert constant_bytes(array[1:2].repeat(40), dtype) == array[1:2].repeat(40).tobytes()


def test_narrow_constants_are_numbers_however_many_they_are() -> None:
    count = 3 * MOST_LISTED
    wanted = np.arange(count) % 2
    truths = np.frombuffer(constant_bytes(wanted.astype(bool), "bool"), np.int8)
    assert (truths & 1).tolist() == wanted.tolist()
    for dtype in ("i4", "u4"):
        array = (np.arange(count) % 16 - (8 if dtype == "i4" else 0)).astype("int8")
        narrow = array.astype(GRAPH_TYPES[dtype].dtype)
        found = np.frombuffer(constant_bytes(narrow, dtype), np.int8)
        assert (found & 15).tolist() == (array & 15).tolist()


def test_uniform_constants_are_written_once_and_many_elements_as_bytes() -> None:
    assert dense_text(np.full((64, 64), 0.5, np.float32), "f32") == "dense<0.5>"
    assert dense_text(np.full(99, np.nan, np.float32), "f32") == 'dense<"0x0000c07f">'
    assert dense_text(np.array([[1, -2], [3, 4]], np.int32), "i32") == "dense<[[1, -2], [3, 4]]>"
    text = dense_text(np.arange(MOST_LISTED + 1, dtype=np.int8), "i8")
    assert text == 'dense<"0x000102030405060708090a0b0c0d0e0f10">'
    # A zero of another sign is another number.
    assert dense_text(np.array([0.0, -0.0]), "f64") == "dense<[0.0, -0.0]>"


@given(value=st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_an_f32_reads_back_by_way_of_f64(value: float) -> None:
    text = number_text(value, "f32")
    assert re.fullmatch(r"-?\d+\.\d+(e[-+]\d+)?", text)
    assert np.float32(float(text)).tobytes() == np.float32(value).tobytes()


def test_more_digits_are_written_where_rounding_twice_would_miss() -> None:
    value = np.uint32(0x15AE43FD).view(np.float32)
    assert str(value) == "7.038531e-26"  # as an f64 halfway between two f32
    assert np.float32(float(str(value))) != value
    assert np.float32(float(number_text(float(value), "f32"))) == value


# Shapes


@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=5), data=st.data())
def test_axes_are_grouped_into_the_smallest_runs(shape: list[int], data: st.DataObject) -> None:
    other = data.draw(st.permutations(shape)) + data.draw(st.lists(st.just(1), max_size=2))
    groups = axis_groups(tuple(shape), tuple(other))
    assert [axis for before, _ in groups for axis in before] == list(range(len(shape)))
    assert [axis for _, after in groups for axis in after] == list(range(len(other)))
    for before, after in groups:
        assert prod(shape[axis] for axis in before) == prod(other[axis] for axis in after)


def test_a_mean_of_so_many_that_their_sum_overflows_is_taken_in_parts() -> None:
    for count, is_in_parts in ((2**30, False), (2**31, True)):
        build = Builder()
        text = to_mlir(build.module(build.add("Mean", build.input("x", "u32", (count,)), axes=())))
        assert ("arith.floordivsi" in text) == is_in_parts
        assert signature(text)[1] == ["tensor<i32>"]


# Names


def test_arguments_have_the_names_of_inputs_as_far_as_mlir_allows() -> None:
    build = Builder()
    names = ["x", "enc.0-w", "a b", "a_b", "a/b", "0", "$0", "line\nbreak", "é"]
    values = [build.input(name, "f32", (2,)) for name in names]
    text = to_mlir(build.module(*values))
    notes = [line.strip() for line in text.splitlines() if line.strip().startswith("//")]
    assert notes == [
        '// %a_b is the input "a b"',
        '// %a_b_2 is the input "a_b"',
        '// %a_b_3 is the input "a/b"',
        '// %_0 is the input "0"',
        '// %_0_2 is the input "$0"',
        '// %line_break is the input "line\\nbreak"',
        '// %_ is the input "é"',
    ]
    assert len(signature(text)[0]) == len(names)
    assert "@main(%x: tensor<2xf32>, %enc.0-w: tensor<2xf32>, %a_b: " in text


def test_an_input_may_be_named_like_a_value_of_ours() -> None:
    build = Builder()
    values = [build.input(name, "f32", (2,)) for name in ("zero$4", "$1", "4", "empty$3")]
    total = build.add("Sum", build.add("BinOp", *values[:2], op="Add"), axes=())
    assert len(signature(to_mlir(build.module(total)))[0]) == 4


# State


def counter() -> Module:
    """A module that adds its input to what it kept."""
    build = Builder()
    x, kept = build.input("x", "i32", (2,)), build.input("kept", "i32", (2,))
    start = build.constant(np.array([10, 20], np.int32))
    total = build.add("BinOp", x, kept, op="Add")
    doubled = build.add("BinOp", total, total, op="Add")
    build.state("kept", total, start)
    return build.module(doubled)


def test_state_is_an_argument_and_a_result_and_has_a_function_that_starts_it() -> None:
    text = to_mlir(counter())
    assert signature(text) == (["tensor<2xi32>"] * 2, ["tensor<2xi32>"] * 2)
    assert signature(text, "initial") == ([], ["tensor<2xi32>"])
    assert "// %kept keeps state: result 1 of the run before" in text
    # The first value is no business of `@main`.
    assert text.count("dense<[10, 20]>") == 1


def test_a_module_without_state_has_one_function() -> None:
    assert to_mlir(parse(LAYER)).count("func.func") == 1


# What is refused


def codes_and_lines(error: InputError) -> list[tuple[str, int]]:
    return [(found.code, found.location.line) for found in error.diagnostics]


def test_a_wrong_module_is_refused_with_the_findings_of_the_verifier() -> None:
    with pytest.raises(InputError) as refused:
        to_mlir(parse(LAYER.replace("axes=[1]", "axes=[5]")))
    assert codes_and_lines(refused.value)[0] == ("RED01", 4)


def test_everything_without_a_form_is_said_at_once_and_where() -> None:
    module = parse(
        '%0 = Input () {name="x"} : tensor<f32[2, 3]>\n'
        '%1 = Input () {name="t"} : tensor<bool[2]>\n'
        "%2 = Index (%0) {indices=[0, 3]} : tensor<f32[]>\n"
        "%3 = Neg (%0) : tensor<f32[2, 3]>\n"
        "%4 = BinOp (%0, %3) {op=Max} : tensor<f32[2, 3]>\n"
        "%5 = Sum (%1) {axes=[], keepdims=false} : tensor<bool[]>\n"
        "outputs: %2, %4\n"
    )
    with pytest.raises(InputError) as refused:
        to_mlir(module)
    assert codes_and_lines(refused.value) == [("MLR01", 3), ("MLR01", 5), ("MLR01", 6)]
    messages = [found.message for found in refused.value.diagnostics]
    assert messages == [
        "`Index` %2 cannot be written in MLIR: index 3 along axis 1, expected 0 to 2",
        "`BinOp` %4 cannot be written in MLIR: op=Max is not translated",
        "`Sum` %5 cannot be written in MLIR: arithmetic on `bool`",
    ]


def test_an_opcode_without_a_row_is_refused_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: row for name, row in LOWERINGS.items() if name != "Sum"}
    monkeypatch.setattr("nacre.core.mlir.export.LOWERINGS", rows)
    with pytest.raises(InputError) as refused:
        to_mlir(parse(LAYER))
    assert codes_and_lines(refused.value) == [("MLR01", 4)]


def test_a_padded_input_larger_than_any_tensor_is_refused() -> None:
    build = Builder()
    x, w = build.input("x", "f32", (1, 2, 2, 1)), build.input("w", "f32", (2, 2, 1, 1))
    padding = Custom(((2**63 - 1, 0), (0, 0)))
    module = build.module(build.add("Conv2d", x, w, strides=(2**63 - 1, 1), padding=padding))
    with pytest.raises(InputError) as refused:
        to_mlir(module)
    assert [found.code for found in refused.value.diagnostics] == ["MLR01"]
    assert "2^63 elements or more" in refused.value.diagnostics[0].message
    assert refused.value.diagnostics[0].location.line == 3


def test_steps_that_lead_nowhere_may_be_as_large_as_numbers_get() -> None:
    build = Builder()
    x, w = build.input("x", "f32", (1, 2, 2, 1)), build.input("w", "f32", (2, 2, 1, 1))
    conv = build.add("Conv2d", x, w, strides=(2**63 - 1, 1), padding="Valid")
    part = build.add("Slice", x, starts=(0,) * 4, ends=(1,) * 4, steps=(2**63 - 1,) * 4)
    assert signature(to_mlir(build.module(conv, part)))[1] == ["tensor<1x1x1x1xf32>"] * 2

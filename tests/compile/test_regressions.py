"""Models that once gave a wrong plan, a refused one, or none, as small as they could be made."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.validation import relative_error, sqnr
from nacre.compile.options import Precision
from nacre.compile.partition.items import items_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import values
from tests.compile.random_graphs import Array, Case, feeds_of
from tests.compile.test_random_graphs import TINY, require_right

pytestmark = pytest.mark.sampled(2)  # together they take long


def right(module: Module, *devices: str, precision: Precision = "f16") -> None:
    """A clean plan with the right values on every device."""
    for device in devices or ("npm4k", TINY):
        require_right(Case(module, feeds_of(module)), device, precision)


def test_a_bias_of_f32_is_a_sum_of_its_own() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (6, 5, 7))
    weights, bias = builder.constant(values((3, 7), 1)), builder.constant(values((3,), 2))
    right(builder.module(builder.add("Linear", x, weights, bias)), "nem_reference", precision="f32")


def test_an_average_in_f32_adds_up_in_another_order() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 4, 31, 1))
    y = builder.add("AvgPool", x, layout="NHWC", kernel=(2, 3), strides=(1, 2))
    right(builder.module(y), "nem_reference", precision="f32")


def test_a_narrow_slice_beside_a_part_of_itself_is_no_whole_tensor() -> None:
    # The slice spans the joined axis but not the others: its source cannot lie in its place.
    builder = Builder()
    x = builder.add("ReluNan", builder.input("x", "f32", (2, 3, 20, 2)))
    given = {"starts": (0, 0, 0, 0), "steps": (1, 1, 1, 1)}
    narrow = builder.add("Slice", x, ends=(2, 3, 19, 2), **given)
    first = builder.add("Slice", narrow, ends=(2, 1, 19, 2), **given)
    right(builder.module(builder.add("Concat", first, narrow, axis=1)))


def test_a_row_that_does_not_fit_is_an_error_even_where_nothing_could_stay_in_l1() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 9000))
    with pytest.raises(InputError) as caught:
        nacre.compile(builder.module(builder.add("Softmax", x, axis=1)), TINY)
    assert [d.code for d in caught.value.diagnostics] == ["CMP02"]


def test_copies_alone_may_keep_a_tensor_in_l1() -> None:
    builder = Builder()
    x = builder.add("Flip", builder.input("x", "f32", (9, 6, 1)), axes=(0,))
    right(builder.module(builder.add("Broadcast", x, shape=(9, 6, 4))))


def test_what_a_copy_makes_is_not_loaded_ahead_of_it() -> None:
    # While the first function runs, the next layer begins; what it repeats is not joined yet.
    builder = Builder()
    x, w = builder.input("x", "f32", (64, 64)), builder.input("w", "f32", (16, 8))
    y, z = builder.input("y", "f32", (4,)), builder.input("z", "f32", (4,))
    first = builder.add("ReluNan", x)
    joined = builder.add("Concat", y, z, axis=0)
    right(builder.module(first, builder.add("BinOp", w, joined, op="Add")))


@pytest.mark.parametrize("rows", [1, 40])
def test_weights_that_layers_share(rows: int) -> None:
    # Copies stand before the first of them: the weights come while the layer before runs.
    builder = Builder()
    x = builder.input("x", "f32", (rows, 16))
    weights = builder.constant(values((16, 16), 1, 0.25))
    first = builder.add("Unary", x, op="Tanh")
    joined = builder.add("Concat", first, x, first, axis=0)
    y = builder.add("Linear", joined, weights)
    y = builder.add("Linear", builder.add("ReluNan", y), weights)
    part = builder.add("Slice", y, starts=(0, 0), ends=(1, 16), steps=(1, 1))
    right(builder.module(builder.add("Linear", part, weights), y))


@pytest.mark.parametrize("value", [1e6, float("inf"), float("nan")])
@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_padding_beyond_f16(value: float, precision: Precision) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (3, 4))
    module = builder.module(builder.add("Pad", x, pads=(0, 1, 0, 1), value=value))
    right(module, "npm4k", precision=precision)


def test_infinities_are_compared_without_a_fuss() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (3, 4))
    zero = builder.constant(np.zeros((), np.float32))
    module = builder.module(builder.add("BinOp", x, zero, op="Div"))
    right(module, "npm4k")
    found = nacre.compile(module, "npm4k").validate(feeds_of(module))
    assert (found.first_difference, found.missed) == (None, ())
    assert found.unproven[0].problem == "the reference is infinite everywhere"


def test_which_errors_count() -> None:
    def array(*elements: float) -> Array:
        return np.array(elements, np.float32)

    inf, nan = float("inf"), float("nan")
    assert relative_error(array(1, inf, nan), array(2, inf, nan)) == 0.5
    assert relative_error(array(1, -inf), array(1, inf)) == inf
    assert relative_error(array(1, nan), array(1, inf)) == inf
    assert relative_error(array(1, 3), array(1, nan)) == inf
    assert sqnr(array(1, inf), array(1, inf)) == inf
    assert sqnr(array(1, 3), array(1, inf)) == -inf
    assert sqnr(array(11, 0), array(10, 0)) == pytest.approx(20)


def test_a_cast_between_scales_is_no_task_on_integers() -> None:
    # NEM's cast looks at no scale: as one task the bits would come through, not the values.
    builder = Builder()
    x = builder.input("x", "f32", (2, 16))
    scale, zero = builder.constant(np.float32(0.05)), builder.constant(np.int8(0))
    stored = builder.add("Quantize", x, scale, zero, to="i8")
    real = builder.add("Dequantize", stored, scale, zero)
    half = builder.add("Cast", real, to="f16")
    wide = builder.add("Cast", half, to="f32")
    wider, other = builder.constant(np.float32(0.1)), builder.constant(np.int8(7))
    again = builder.add("Quantize", wide, wider, other, to="i8")
    module = builder.module(again)
    items = items_of(module, {})
    assert [item.row.nem for item in items] == ["quantize", "dequantize", "quantize"]


@pytest.mark.parametrize("order", [(1, 3, 2, 0), (2, 0, 1, 3), (0, 2, 1, 3)])
def test_a_function_of_a_product_that_is_turned(order: tuple[int, ...]) -> None:
    # The function runs in the product's tiles, which have no strides for every order.
    builder = Builder()
    x = builder.input("x", "f32", (9, 4, 8, 15))
    weights = builder.constant(np.random.default_rng(0).standard_normal((32, 15)).astype("f4"))
    made = builder.add("Gelu", builder.add("Linear", x, weights), approximate="tanh")
    module = builder.module(builder.add("Transpose", made, permutation=order))
    right(module, "npm4k")


@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (4, 1, 4, 1), (1, 1, 1, 1)])
def test_an_operation_by_name_on_what_repeats(shape: tuple[int, ...]) -> None:
    # Operands are stretched to each other, and this one has nothing to be stretched to.
    builder = Builder()
    x = builder.input("x", "f32", shape)
    wide = builder.add("Broadcast", x, shape=(4, 4, 4, 2))
    made = [builder.add("Unary", wide, op=op) for op in ("Sin", "IsNan")]
    limit = builder.constant(np.zeros(shape, np.float32))
    mask = builder.add("Broadcast", builder.add("Compare", x, limit, op="Lt"), shape=(4, 4, 4, 2))
    made += [builder.add("Unary", mask, op="Not"), builder.add("BinOp", wide, wide, op="Mod")]
    module = builder.module(*made)
    right(module)
    right(module, "nem_reference", precision="f32")


@pytest.mark.parametrize("device", ["npm4k", "npm16k"])
@pytest.mark.parametrize("shape", [(2, 1, 1, 12), (2, 1, 12, 1), (1, 1, 12, 12)])
def test_truth_values_that_repeat_become_floats(shape: tuple[int, ...], device: str) -> None:
    """The mask of a batch, for every head and row: no task repeats truth values."""
    builder = Builder()
    scores = builder.input("scores", "f32", (2, 3, 12, 12))
    x = builder.input("x", "f32", shape)
    is_seen = builder.add("Compare", x, builder.constant(np.float32(0)), op="Gt")
    wide = builder.add("Broadcast", is_seen, shape=(2, 3, 12, 12))
    weights = builder.add("Cast", wide, to="f32")
    right(builder.module(builder.add("BinOp", scores, weights, op="Mul")), device)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32"])
@pytest.mark.parametrize("device", ["npm_lite", "npm4k"])
def test_integers_that_repeat_become_floats(dtype: str, device: str) -> None:
    """Not every device repeats every type: what it cannot is copied in full."""
    builder = Builder()
    scores, x = builder.input("scores", "f32", (4, 12)), builder.input("x_below_60", dtype, (1, 12))
    wide = builder.add("Broadcast", x, shape=(4, 12))
    weights = builder.add("Cast", wide, to="f32")
    right(builder.module(builder.add("BinOp", scores, weights, op="Mul")), device)


@pytest.mark.parametrize("axes", [(0, 1), ()])
def test_a_length_behind_what_other_forms_have_made_anew(axes: tuple[int, ...]) -> None:
    """Values have other numbers by then: its axes were those of whatever had the old one."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 8, 1))
    convolved = builder.add("Conv", x, builder.constant(values((8, 8, 1), 1)))
    plane = builder.add("Reshape", x, new_shape=(4, 2))
    length = builder.add("Reduce", plane, op="L2", axes=axes, keepdims=True)
    right(builder.module(length, convolved))

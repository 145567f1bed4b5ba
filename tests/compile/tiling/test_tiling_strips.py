"""Layers too wide, too deep or too large for L1: cut along further axes, and still right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.geometry import Window
from nacre.compile.tiling.strips import Strip, inner_strips, strip_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, values

pytestmark = pytest.mark.sampled(2)  # together they take long

TINY = Path(__file__).parents[1] / "npm_tiny.nem"  # 16 KiB of L1, two engines
Shape = tuple[int, ...]


def require_right(
    module: Module, precision: str = "f16", device: str | Path = TINY
) -> nacre.Bundle:
    """Strictly clean, the bits of the legalised module, close to the model."""
    given_inputs = inputs_of(module)
    samples = {name: array[None] for name, array in given_inputs.items()}
    calibration = samples if precision == "i8" else None
    bundle = nacre.compile(module, device, precision, calibration=calibration)  # type: ignore[arg-type]
    found = nacre.nem.check(bundle.program, strict=True)
    assert [d for d in found if d.severity != "info"] == []
    validation = bundle.validate(given_inputs)
    assert validation.ok, str(validation)
    return bundle


def convolution(
    x: Shape, kernel: Shape, attributes: dict[str, object], *, residual: bool = False
) -> Module:
    """A convolution with channels first, its bias, and what follows it."""
    builder = Builder()
    image = builder.input("x", "f32", x)
    weights = builder.constant(values(kernel, 3, float(np.prod(kernel[1:])) ** -0.5))
    bias = builder.constant(values((kernel[0],), 4))
    y = builder.add("Conv", image, weights, bias, **attributes)
    if residual:
        y = builder.add("Relu", builder.add("BinOp", y, image, op="Add"))
    return builder.module(y)


WIDE: dict[str, tuple[Shape, Shape, dict[str, object]]] = {
    "padded": ((1, 8, 6, 400), (8, 8, 3, 3), {"pads": (1, 1, 1, 1)}),
    "strided": ((1, 8, 7, 401), (12, 8, 3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
    "unpadded": ((1, 8, 5, 500), (8, 8, 3, 3), {}),
    "dilated": ((1, 8, 9, 300), (8, 8, 3, 3), {"pads": (2, 4, 2, 4), "dilations": (2, 4)}),
    "uneven pads": ((1, 4, 3, 700), (6, 4, 2, 5), {"pads": (0, 4, 1, 1)}),
    "depthwise": ((1, 32, 6, 300), (32, 1, 3, 3), {"pads": (1, 1, 1, 1), "groups": 32}),
    "groups": ((1, 16, 4, 300), (16, 4, 3, 3), {"pads": (1, 1, 1, 1), "groups": 4}),
    "several images": ((3, 8, 3, 400), (8, 8, 3, 3), {"pads": (1, 1, 1, 1)}),
    "audio": ((1, 1, 1, 9000), (16, 1, 1, 10), {"strides": (1, 5)}),
    "audio, deep": ((1, 16, 1, 1500), (16, 16, 1, 3), {"pads": (0, 1, 0, 1)}),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_wide_rows_are_cut_into_strips(name: str, precision: str) -> None:
    x, kernel, attributes = WIDE[name]
    if precision == "i8":
        x = (*x[:3], 2 * x[3])
    bundle = require_right(convolution(x, kernel, attributes), precision)
    # To people it is one layer.
    entries = [entry for entry in bundle.manifest.layers if entry.macs]
    assert len(entries) == 1
    assert len(entries[0].results) == 1
    assert any(token.startswith(f"{entries[0].name}n") for token in entries[0].tasks)


def test_a_strip_takes_what_is_added_to_it_along() -> None:
    module = convolution((1, 8, 5, 400), (8, 8, 3, 3), {"pads": (1, 1, 1, 1)}, residual=True)
    require_right(module)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_what_is_added_may_have_fewer_axes_than_an_image(shape: Shape) -> None:
    """Two convolutions of one pixel, the second with a stride, on a device that tries strips."""
    builder = Builder()
    x = builder.input("x", "f32", (3, 1, 1, 1))
    for seed, strides in enumerate([(1, 1), (1, 2)]):
        weights = builder.constant(values((1, 1, 1, 1), seed))
        x = builder.add(
            "Conv", x, weights, groups=1, layout="NHWC", pads=(0, 0, 0, 0), strides=strides
        )
    x = builder.add("BinOp", x, builder.constant(values(shape, 3)), op="Add")
    require_right(builder.module(x), "f16", "npm64k")


@pytest.mark.parametrize("opcode", ["MaxPool", "AvgPool"])
def test_poolings_of_wide_rows(opcode: str) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 16, 9, 400))
    given = {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    require_right(builder.module(builder.add(opcode, x, **given)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("opcode", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("plane", [(60, 60), (1, 1009), (900, 1)])
def test_poolings_of_windows_larger_than_l1(opcode: str, plane: tuple[int, int]) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 20, *plane))
    made = builder.add(opcode, x, kernel=plane)
    bundle = require_right(builder.module(made))
    assert any("too large for L1" in note for note in bundle.manifest.notes)


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [
        ((1, 70, 70, 4), (0, 3, 1, 2)),
        ((5000, 3), (1, 0)),
        ((3, 4, 3000), (1, 0, 2)),
        ((1, 200, 4, 64), (0, 2, 1, 3)),
    ],
)
def test_transpositions_larger_than_l1(shape: Shape, permutation: Shape) -> None:
    builder = Builder()
    x = builder.input("x", "f32", shape)
    turned = builder.add("Transpose", x, permutation=permutation)
    require_right(builder.module(builder.add("Relu", turned)))


def test_elements_of_many_axes() -> None:
    builder = Builder()
    a = builder.input("a", "f32", (2, 1, 12, 1, 300))
    b = builder.input("b", "f32", (2, 8, 1, 6, 300))
    c = builder.input("c", "f32", (1, 8, 12, 6, 1))
    product = builder.add("BinOp", a, b, op="Mul")
    require_right(builder.module(builder.add("BinOp", product, c, op="Add")))


def test_rows_of_a_table_longer_than_l1() -> None:
    builder = Builder()
    indices = builder.input("i", "i32", (3,))
    table = values((5, 9000), 5)
    rows = builder.add("Gather", builder.constant(table), indices)
    module = builder.module(builder.add("Unary", rows, op="Abs"))
    bundle = nacre.compile(module, TINY)
    found = bundle.run({"i": np.array([4, 0, 2], np.int32)})["output0"]
    expected = np.abs(table[[4, 0, 2]].astype(np.float16))
    assert (found == expected).all()


# Depth


def product_of(rows: int, depth: int, columns: int, *, computed: bool) -> Module:
    builder = Builder()
    a = builder.input("a", "f32", (rows, depth))
    right = values((depth, columns), 8, depth**-0.5)
    b = builder.input("b", "f32", right.shape) if computed else builder.constant(right)
    return builder.module(builder.add("Relu", builder.add("MatMul", a, b)))


@pytest.mark.heavy("compiles networks")
@pytest.mark.parametrize("rows", [1, 9])
def test_few_columns_where_many_are_too_deep(rows: int) -> None:
    bundle = require_right(product_of(rows, 3000, 20, computed=False))
    assert not any("too deep" in note for note in bundle.manifest.notes)


@pytest.mark.full
@pytest.mark.parametrize("computed", [False, True])
def test_products_too_deep_for_one_column_are_added_up(computed: bool) -> None:
    bundle = require_right(product_of(3, 9000, 18, computed=computed))
    assert any("depth 9000 is too deep" in note for note in bundle.manifest.notes)


def test_products_too_deep_in_integers_of_8_bits() -> None:
    require_right(product_of(2, 20000, 6, computed=False), "i8")


def test_convolutions_too_deep_for_l1() -> None:
    bundle = require_right(convolution((1, 256, 5, 5), (20, 256, 3, 3), {"pads": (1, 1, 1, 1)}))
    assert any("`Conv` of depth 256 is too deep" in note for note in bundle.manifest.notes)


def test_a_row_that_cannot_be_cut_is_refused_with_its_size() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 20000))
    module = builder.module(builder.add("Softmax", x, axis=-1))
    with pytest.raises(InputError) as caught:
        nacre.compile(module, TINY)
    (found,) = caught.value.diagnostics
    assert found.code == "CMP02"
    assert "1 rows by 20000 columns, takes 40000" in found.message


# Geometry


@given(
    width=st.integers(1, 60),
    kernel=st.integers(1, 9),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    left=st.integers(0, 30),
    right=st.integers(0, 30),
    count=st.integers(1, 20),
)
def test_strips_that_see_no_padding_are_counted_without_a_look_at_each(
    width: int, kernel: int, stride: int, dilation: int, left: int, right: int, count: int
) -> None:
    size = (width + left + right - dilation * (kernel - 1) - 1) // stride + 1
    if size < 1:
        return
    window = Window(1, 1, 1, 0, (left, right), (1, kernel), (1, stride), (1, dilation))
    each = [
        strip_of(window, width, first, min(count, size - first)) for first in range(0, size, count)
    ]
    inner = inner_strips(window, width, size, count)
    plain = [at for at, one in enumerate(each) if one.sides == (0, 0) and one.count == count]
    assert plain == [*inner]
    assert len({each[at].x_count for at in inner}) <= 1


@given(
    width=st.integers(1, 60),
    kernel=st.integers(1, 7),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    left=st.integers(0, 3),
    right=st.integers(0, 3),
    count=st.integers(1, 20),
)
def test_a_strip_reads_what_its_windows_see(
    width: int, kernel: int, stride: int, dilation: int, left: int, right: int, count: int
) -> None:
    """Against windows that are walked through one by one."""
    reach = dilation * (kernel - 1) + 1
    size = (width + left + right - reach) // stride + 1
    if size < 1:
        return
    window = Window(1, 1, 1, 0, (left, right), (1, kernel), (1, stride), (1, dilation))
    for first in range(0, size, count):
        some = min(count, size - first)
        strip = strip_of(window, width, first, some)
        begins, ends = first * stride - left, (first + some - 1) * stride - left + reach
        inside = [p for p in range(begins, ends) if 0 <= p < width]
        expected = Strip(
            first, some, max(begins, 0), len(inside) if inside else strip.x_count,
            (sum(p < 0 for p in range(begins, ends)), sum(p >= width for p in range(begins, ends))),
        )  # fmt: skip
        if inside:
            assert strip == expected
            seen = strip.x_count + sum(strip.sides)
            assert (seen - reach) // stride + 1 == some
        else:
            assert strip.x_count <= 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("opcode", ["LayerNorm", "RmsNorm"])
@pytest.mark.parametrize(("columns", "spread"), [(9000, 1.0), (9001, 900.0), (9000, 1e-3)])
def test_norms_of_rows_longer_than_l1(opcode: str, columns: int, spread: float) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, columns))
    given = [builder.constant(values((columns,), seed)) for seed in (11, 12)]
    made = builder.add(opcode, x, *given[: 1 + (opcode == "LayerNorm")], axis=-1, epsilon=1e-5)
    module = builder.module(made)
    bundle = nacre.compile(module, TINY)
    validation = bundle.validate({"x": values((2, columns), 13, spread) + np.float32(spread)})
    assert validation.ok, str(validation)
    assert any("runs in steps" in note for note in bundle.manifest.notes)

"""Chains that are computed as one step give the bits of their operations, one by one.

The oracle is the same module with every value as an output: then nothing may be left out, and every
operation runs by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Product:
    """A convolution or a linear layer of what is quantised dynamically, as importers write it."""

    opcode: str = "Conv"
    weights: str = "i8"  # how they are stored
    more: bool = True  # integers are added to the sums
    is_turned: bool = False  # with the sums as the second operand
    groups: int = 1
    side: int = 3
    span: int = 40  # of the weights around their zero point

    def module(self, *, is_open: bool) -> Module:
        """The module; open, every value is an output and nothing can be fused."""
        build, random = Builder(), np.random.default_rng(self.side)
        is_conv = self.opcode == "Conv"
        x = build.input("x", "f32", (1, 4, 5, 6) if is_conv else (3, 24))
        y = build.input("y", "i32", (1, 8, 1, 1) if is_conv else (8,)) if self.more else None
        scale, zero = build.add("DynamicQuantizeScale", x), build.add("DynamicQuantizeZero", x)
        stored = build.add("Quantize", x, scale, zero, to="u8")
        wide, wide_zero = (build.add("Cast", v, to="i32") for v in (stored, zero))
        centred = build.add("BinOp", wide, wide_zero, op="Sub")
        shape = (8, 4 // self.groups, self.side, self.side) if is_conv else (8, 24)
        low, dtype = (0, np.uint8) if self.weights == "u8" else (-self.span // 2, np.int8)
        w = random.integers(low, low + self.span, shape).astype(dtype)
        weight = build.add("Cast", build.constant(w, self.weights), to="i32")
        point = build.constant(np.array(low + self.span // 2, np.int32))
        moved = build.add("BinOp", weight, point, op="Sub")
        fixed = {"pads": (self.side // 2,) * 4, "groups": self.groups}
        sums = build.add(self.opcode, centred, moved, **(fixed if is_conv else {}))
        values = [scale, zero, stored, wide, wide_zero, centred, weight, moved, sums]
        if y is not None:
            pair = (y, sums) if self.is_turned else (sums, y)
            sums = build.add("BinOp", *pair, op="Add")
            values.append(sums)
        floats = build.add("Cast", sums, to="f32")
        result = build.add("BinOp", floats, scale, op="Mul")
        return build.module(result, *([*values, floats] if is_open else []))


PRODUCTS = [
    Product(),
    Product(more=False),
    Product(weights="u8", is_turned=True),
    Product(groups=2),
    Product(groups=4, more=False),
    Product(side=1),
    Product("Linear", more=False),
    Product("Linear", weights="u8"),
]
FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
EXTREMES = [0.0, -0.0, 1e-45, -1e-40, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays have the same bits; NaN is NaN."""
    numbers = np.isnan(a), np.isnan(b)
    return bool(np.array_equal(*numbers)) and a[~numbers[0]].tobytes() == b[~numbers[1]].tobytes()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("product", PRODUCTS, ids=str)
@given(st.data())
def test_one_step_gives_the_bits_of_many(product: Product, data: st.DataObject) -> None:
    module = product.module(is_open=False)
    x_shape = module.input_types["x"].shape
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = (random.normal(size=x_shape) * data.draw(st.sampled_from([1e-38, 1, 1e30]))).astype("f4")
    for place in data.draw(st.lists(st.integers(0, x.size - 1), max_size=3)):
        x.flat[place] = data.draw(FLOATS | st.sampled_from(EXTREMES))
    if data.draw(st.booleans()):
        x = np.abs(x)
    feeds = {"x": x}
    if product.more:
        reach = data.draw(st.sampled_from([100, 1 << 24, (1 << 31) - 1]))
        feeds["y"] = random.integers(-reach, reach, module.input_types["y"].shape, dtype=np.int32)
    (found,) = CoreSession(module).run(feeds)
    assert same_bytes(found, CoreSession(product.module(is_open=True)).run(feeds)[0])


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_the_chains_are_found(product: Product) -> None:
    """Without this the test above would compare operations with themselves."""
    open_, closed = (CoreSession(product.module(is_open=is_open)) for is_open in (True, False))
    # Of a convolution nothing is left but quantising, product, rounding and scaling.
    most = 4 if product.opcode == "Conv" else 5 if product.more else 4
    assert len(closed._plan.steps) == most
    assert len(open_._plan.steps) > most + 3


@given(st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=40))
@example([0.0])
@example([-3.0, -3.0])
def test_quantising_follows_its_definition(numbers: list[float]) -> None:
    """Against ONNX's text for DynamicQuantizeLinear, in numbers of f32 one by one."""
    build = Builder()
    x = build.input("x", "f32", (len(numbers),))
    scale, zero = build.add("DynamicQuantizeScale", x), build.add("DynamicQuantizeZero", x)
    stored = build.add("Quantize", x, scale, zero, to="u8")
    wide, wide_zero = (build.add("Cast", v, to="i32") for v in (stored, zero))
    module = build.module(build.add("BinOp", wide, wide_zero, op="Sub"), scale)
    session = CoreSession(module)
    assert len(session._plan.steps) == 1
    centred, found_scale = session.run({"x": np.array(numbers, np.float32)})
    low, high = (np.float32(f(0.0, *numbers)) for f in (min, max))
    wanted = (high - low) / np.float32(255) if high > low else np.float32(1)
    assert found_scale == wanted
    if wanted == 0:  # the range is below what f32 can divide
        return
    point = round(min(max(float(-low / wanted), 0), 255))
    for number, value in zip(numbers, centred, strict=True):
        quotient = round(float(np.float32(number) / wanted))
        assert value == min(max(quotient + point, 0), 255) - point


def test_sums_that_f32_does_not_hold_go_by_integers() -> None:
    """The weights reach so far that a float would round."""
    build = Builder()
    x = build.input("x", "f32", (1, 300, 2, 2))
    scale, zero = build.add("DynamicQuantizeScale", x), build.add("DynamicQuantizeZero", x)
    stored = build.add("Quantize", x, scale, zero, to="u8")
    wide, wide_zero = (build.add("Cast", v, to="i32") for v in (stored, zero))
    centred = build.add("BinOp", wide, wide_zero, op="Sub")
    w = np.full((2, 300, 1, 1), 30_001, np.int32)
    floats = build.add("Cast", build.add("Conv", centred, build.constant(w)), to="f32")
    module = build.module(floats)
    given_ = np.random.default_rng(3).uniform(0, 1, (1, 300, 2, 2)).astype(np.float32)
    (found,) = CoreSession(module).run({"x": given_})
    step = np.float32(given_.max() / np.float32(255))
    exact = (np.rint(given_ / step).astype(np.int64) * 30_001).sum(axis=1, keepdims=True)
    wrapped = exact.astype(np.int32).astype(np.float32)
    assert np.array_equal(found, np.repeat(wrapped, 2, axis=1))


def test_a_sum_of_two_products_is_the_end_of_one_of_them() -> None:
    outcomes = []
    for is_open in (False, True):
        build, sums, shown = Builder(), list[int](), list[int]()
        for x in [build.input(name, "f32", (1, 2, 4, 4)) for name in ("x", "y")]:
            scale, zero = build.add("DynamicQuantizeScale", x), build.add("DynamicQuantizeZero", x)
            stored = build.add("Quantize", x, scale, zero, to="u8")
            wide, wide_zero = (build.add("Cast", v, to="i32") for v in (stored, zero))
            centred = build.add("BinOp", wide, wide_zero, op="Sub")
            w = np.arange(-8, 8, dtype=np.int32).reshape(8, 2, 1, 1)
            sums.append(build.add("Conv", centred, build.constant(w)))
            shown += [zero, stored, wide, wide_zero, centred, sums[-1]]
        both = build.add("BinOp", *sums, op="Add")
        module = build.module(build.add("Cast", both, to="f32"), *([*shown, both] * is_open))
        random = np.random.default_rng(1)
        feeds = {n: random.normal(size=(1, 2, 4, 4)).astype(np.float32) for n in ("x", "y")}
        outcomes.append(CoreSession(module).run(feeds)[0].tobytes())
    assert outcomes[0] == outcomes[1]


def test_a_scale_that_two_chains_share_is_made_once() -> None:
    """Two zero points of one tensor, with one scale: what importers without a memory write."""
    build = Builder()
    x = build.input("x", "f32", (2, 3))
    scale, results = build.add("DynamicQuantizeScale", x), list[int]()
    for _ in range(2):
        zero = build.add("DynamicQuantizeZero", x)
        stored = build.add("Quantize", x, scale, zero, to="u8")
        wide, wide_zero = (build.add("Cast", v, to="i32") for v in (stored, zero))
        results.append(build.add("BinOp", wide, wide_zero, op="Sub"))
    module = build.module(*results, scale)
    given_ = np.array([[-1.5, 0.25, 3.0], [2.0, -0.75, 1.0]], np.float32)
    one, other, step = CoreSession(module).run({"x": given_})
    assert step == np.float32(4.5) / np.float32(255)
    assert one.tolist() == other.tolist() == np.rint(given_ / step).astype(int).tolist()

"""Lower bounds of models: figures worked out by hand, and no plan below them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import nacre
from nacre.compile.estimate.bounds import ModelBounds, model_bounds
from nacre.compile.partition.stage import Partition
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.run.timing.costs import copied_bytes
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.result import TimedResult
from tests.compile.models import convolution_model, linear_model, models, values
from tests.compile.tiling.plain_groups import plain_groups

# npm4k: one engine; an NMU of 2048 fp16 or 4096 int8 MACs, two CSTLs of 256 elements or 32 stored
# bytes, one sDMA of 32 bytes a cycle. npm64k: eight engines; 4096 fp16 MACs, 4 CSTLs, 8 sDMAs.


def bounds_of(module: Module, device: str = "npm4k", escaped: tuple[int, ...] = ()) -> ModelBounds:
    """The bounds of a legal module, layers by the plain rule."""
    found = target_of(device).device
    return model_bounds(module, plain_groups(module), found, timing_profile(found), escaped)


def compiled_bounds(module: Module, device: str) -> tuple[nacre.Bundle, ModelBounds]:
    """A plan, and the bounds of the module that it was made from."""
    seen: list[Partition] = []

    def shown(stage: str, result: object) -> None:
        if isinstance(result, Partition):
            seen.append(result)

    bundle = nacre.compile(module, device, on_stage=shown)
    made, target = seen[-1], target_of(device).device
    profile = timing_profile(target)
    return bundle, model_bounds(made.legal.module, made.layers, target, profile)


def test_a_linear_layer_by_hand() -> None:
    _, bounds = compiled_bounds(linear_model(256, 64, 96), "npm4k")
    (layer,) = bounds.layers
    assert layer.macs == 256 * 64 * 96
    assert layer.nmu == 256 * 64 * 96 // 2048
    assert layer.elements == 256 * 96  # the relu; what leaves the model is no store
    assert layer.cstl == Fraction(256 * 96, 2 * 256)
    read, written = 256 * 64 + 64 * 96 + 96, 256 * 96
    assert layer.ddr_bytes == 2 * (read + written)
    assert layer.ddr == 2 * (read + written) // 32 == 2950
    assert (layer.cycles, layer.limit) == (2950, "DDR")
    assert (bounds.layer, bounds.whole, bounds.floor) == (2950, 2950, 2950)


def test_a_convolution_by_hand_on_one_engine_and_on_eight() -> None:
    module = convolution_model((1, 28, 28, 16), (3, 3, 16, 32))
    macs, moved = 28 * 28 * 32 * 9 * 16, 2 * (28 * 28 * 16 + 9 * 16 * 32 + 28 * 28 * 32)
    for device, rate, ports in (("npm4k", 2048, 1), ("npm64k", 8 * 4096, 8)):
        _, bounds = compiled_bounds(module, device)
        (layer,) = bounds.layers
        assert (layer.macs, layer.ddr_bytes) == (macs, moved)
        assert layer.nmu == Fraction(macs, rate)
        assert layer.ddr == Fraction(moved, 32 * ports)
        assert bounds.layer == ceil(max(macs / rate, moved / (32 * ports)))


def two_layers() -> Module:
    """A convolution, a relu, a pooling: the tensor between them stays on the chip."""
    builder = Builder()
    x = builder.input("x", "i8", (1, 16, 16, 8))
    weights = builder.constant(np.ones((3, 3, 8, 64), np.int8), "i8")
    bias = builder.constant(np.zeros(64, np.int32), "i32")
    made = builder.add(
        "QConv", x, weights, bias, layout="NHWC", pads=(1, 1, 1, 1), to="i8",
        x_scale=1.0, w_scales=(1.0,) * 64, y_scale=1.0,
    )  # fmt: skip
    pooled = builder.add(
        "QPool", made, op="Max", kernel=(2, 2), strides=(2, 2), layout="NHWC", to="i8",
        x_scale=1.0, y_scale=1.0,
    )  # fmt: skip
    return builder.module(pooled)


def test_the_sum_over_layers_and_the_largest_of_the_sums() -> None:
    bounds = bounds_of(two_layers())
    conv, pool = bounds.layers
    assert conv.nmu == Fraction(16 * 16 * 64 * 72, 4096)  # 288
    assert conv.store_bytes == 16 * 16 * 64  # it stays inside
    assert conv.cstl == Fraction(16 * 16 * 64, 64)  # 256
    assert conv.ddr == Fraction(16 * 16 * 8 + 72 * 64 + 4 * 64, 32)  # 216
    assert conv.limit == "NMU"
    assert pool.nmu == 0
    assert pool.cstl == Fraction(8 * 8 * 64 * 4, 512)  # 32: outputs times window
    assert pool.ddr == Fraction(8 * 8 * 64, 32)  # 128
    assert (pool.limit, pool.store_bytes) == ("DDR", 0)
    assert bounds.layer == 288 + 128
    assert bounds.whole == max(288, 256 + 32, 216 + 128)
    products, passes = 16 * 16 * 64 * 72 / (4096 + 32), 8 * 8 * 64 * 4 / (512 + 32)
    assert bounds.floor == ceil(max(products, passes, 216 + 128))


def test_f32_products_run_at_half_the_rate_of_f16() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (64, 64))
    made = builder.module(builder.add("Linear", x, builder.constant(values((64, 64), 1))))
    device = target_of("nem_reference").device  # 4 engines of 2 NMUs of 4096 fp16 MACs
    (layer,) = model_bounds(made, plain_groups(made), device, timing_profile(device)).layers
    assert layer.nmu == Fraction(64**3, 4 * 2 * 4096 // 2)


def test_a_window_with_strides_asks_for_what_it_sees() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (1, 9, 8, 4))
    weights = builder.constant(np.ones((1, 1, 4, 4), np.float16), "f16")
    made = builder.add("Conv", x, weights, layout="NHWC", strides=(2, 2))
    (layer,) = bounds_of(builder.module(made)).layers
    assert layer.ddr_bytes == 2 * (5 * 4 * 4 + 16 + 5 * 4 * 4)


def test_a_slice_asks_for_its_part_and_costs_nothing() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (64, 32))
    part = builder.add("Slice", x, starts=(0, 0), ends=(16, 32), steps=(1, 1))
    bounds = bounds_of(builder.module(builder.add("Silu", part)))
    assert sum(layer.ddr_bytes for layer in bounds.layers) == 2 * (16 * 32 + 16 * 32)
    assert sum(layer.elements for layer in bounds.layers) == 16 * 32


def test_a_constant_that_two_layers_want_is_read_once() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (8, 16))
    weights = builder.constant(np.ones((16, 16), np.float16), "f16")
    first = builder.add("Linear", x, weights)
    made = builder.module(builder.add("Linear", first, weights))
    charged = [layer.ddr_bytes for layer in bounds_of(made).layers]
    assert charged == [2 * (8 * 16 + 16 * 16), 2 * 8 * 16]


def test_a_quantised_function_is_one_pass_and_its_scales_are_literals() -> None:
    builder = Builder()
    x = builder.input("x", "i8", (1, 8, 8, 32))
    scale = builder.constant(np.float32(0.5))
    zero = builder.constant(np.int8(3), "i8")
    real = builder.add("Silu", builder.add("Dequantize", x, scale, zero))
    bounds = bounds_of(builder.module(builder.add("Quantize", real, scale, zero, to="i8")))
    (layer,) = bounds.layers
    assert layer.elements == 8 * 8 * 32
    assert layer.ddr_bytes == 2 * 8 * 8 * 32


def test_softmax_takes_three_passes_and_entering_an_island_none_of_the_cstls() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (4, 10))
    (softmax,) = bounds_of(builder.module(builder.add("Softmax", x, axis=-1))).layers
    assert softmax.elements == 3 * 40
    builder = Builder()
    x = builder.input("x", "i8", (4, 10))
    real = builder.add("Dequantize", x, builder.constant(np.float32(0.5)))
    (entry,) = bounds_of(builder.module(builder.add("Cast", real, to="f16"))).layers
    assert entry.elements == 0


def test_a_scale_on_the_way_into_an_island_is_no_work_that_the_model_asks_for() -> None:
    builder = Builder()
    x = builder.input("x", "i8", (4, 64))
    steps = builder.add("Cast", x, to="f16")
    centred = builder.add("BinOp", steps, builder.constant(np.float16(3), "f16"), op="Sub")
    real = builder.add("BinOp", centred, builder.constant(np.float16(0.5), "f16"), op="Mul")
    made = builder.add("Silu", real)
    module = builder.module(builder.add("BinOp", made, builder.constant(np.float16(7)), op="Mul"))
    (layer,) = bounds_of(module).layers
    assert layer.elements == 2 * 4 * 64  # the function, and the product behind it


@pytest.mark.parametrize(("scale", "passes"), [(1.0, 1), (0.5, 3)])
def test_a_scale_on_the_way_out_of_an_island_is_none_either(scale: float, passes: int) -> None:
    """A cast has its product and its sum inside; before `quantize` they are the model's."""
    builder = Builder()
    made = builder.add("Silu", builder.input("x", "f16", (4, 64)))
    made = builder.add("BinOp", made, builder.constant(np.float16(20), "f16"), op="Mul")
    made = builder.add("BinOp", made, builder.constant(np.float16(-3), "f16"), op="Add")
    real = builder.add("Cast", made, to="f32")
    parameters = builder.constant(np.float32(scale)), builder.constant(np.int8(0), "i8")
    module = builder.module(builder.add("Quantize", real, *parameters, to="i8"))
    (layer,) = bounds_of(module).layers
    assert layer.elements == passes * 4 * 64


def test_a_product_of_integers_stores_bytes() -> None:
    """Whatever the sums inside of it are written as."""
    builder = Builder()
    y = builder.input("x", "f32", (8, 64))
    for seed, shape in enumerate(((16, 8), (8, 16))):
        y = builder.add("MatMul", builder.constant(values(shape, seed, 0.3)), y)
    found = nacre.estimate(builder.module(y), "npm4k", precision="i8").bounds
    assert found is not None
    assert [layer.store_bytes for layer in found.layers] == [16 * 64, 0]


def test_an_escaped_operation_is_charged_with_its_store_only() -> None:
    builder = Builder()
    x = builder.input("x", "f16", (4, 64))
    odd = builder.add("Silu", x)
    made = builder.module(
        builder.add("MatMul", odd, builder.constant(np.ones((64, 8), np.float16), "f16"))
    )
    plain, escaped = bounds_of(made), bounds_of(made, escaped=(odd,))
    assert plain.layers[0].elements == 4 * 64
    assert escaped.layers[0].elements == 0
    assert escaped.layers[0].store_bytes == plain.layers[0].store_bytes == 2 * 4 * 64
    assert escaped.layers[1] == plain.layers[1]


def test_ddr_of_a_limited_bandwidth_is_no_faster_than_that() -> None:
    device = target_of("npm64k").device
    module = two_layers()
    limited = timing_profile(device, {"DDR": {"bandwidth": 64}})
    for layer in model_bounds(module, plain_groups(module), device, limited).layers:
        assert layer.ddr == Fraction(layer.ddr_bytes, 64)


@pytest.mark.parametrize("device", ["npm4k", "npm16k"])
@pytest.mark.parametrize("rows", [1, 64, 500])
def test_one_layer_takes_at_least_its_bound(device: str, rows: int) -> None:
    bundle, bounds = compiled_bounds(linear_model(rows, 80, 48), device)
    assert bounds.layer == bounds.whole
    assert bundle.time().cycles >= bounds.layer


_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, phases=_PHASES)
@given(models())
def test_no_plan_is_below_the_floor_nor_a_plan_that_stores_its_tensors_below_the_whole_bound(
    module: Module,
) -> None:
    bundle, bounds = compiled_bounds(module, "npm4k")
    timed = bundle.time()
    assert bounds.floor <= bounds.whole <= bounds.layer
    assert timed.cycles >= bounds.floor
    if stored_bytes(timed) >= sum(layer.store_bytes for layer in bounds.layers):
        assert timed.cycles >= bounds.whole
    assert sum(layer.macs for layer in bounds.layers) <= timed.macs_by_unit.get("NMU", 0)


def stored_bytes(timed: TimedResult) -> int:
    """Bytes that the CSTLs of a run store."""
    steps, total = timed.timeline.steps, 0
    for task in steps.plan.program.tasks:
        if task.op == "store":
            moved = copied_bytes(task, steps.grid(task))
            rows = steps.numbers[task.position].size
            total += moved * rows if isinstance(moved, int) else int(moved.sum())
    return total

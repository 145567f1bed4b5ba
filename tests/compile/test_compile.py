"""From a module to a plan: clean, right and timed, for models of every kind that is known."""

from __future__ import annotations

from importlib import import_module
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.compile.geometry import swap_of
from nacre.compile.options import STAGES
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.api import NemInterpreter
from tests.compile.models import convolution_model, inputs_of, linear_model, models, values

pytestmark = pytest.mark.sampled(2)  # together they take long

DEVICES = ("npm4k", "npm_lite", "npm16k")


def require_right(module: Module, device: str) -> nacre.Bundle:
    """Strictly clean, the bits of the legalised module, close to the model."""
    bundle = nacre.compile(module, device)
    found = nacre.nem.check(bundle.program, strict=True)
    assert [d for d in found if d.severity != "info"] == []
    assert nacre.nem.format(bundle.program) == bundle.program
    validation = bundle.validate(inputs_of(module))
    assert validation.first_difference is None, str(validation)
    return bundle


@pytest.mark.parametrize("device", DEVICES)
def test_a_matrix_product_with_bias_and_relu(device: str) -> None:
    module = linear_model()
    bundle = require_right(module, device)
    given_inputs = inputs_of(module)
    assert bundle.validate(given_inputs).ok
    found = bundle.run(given_inputs)["output0"]
    expected = core.evaluate(module, given_inputs)[0]
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= 1e-2 * np.abs(expected).max()
    # Few tiles are written out, many are a loop.
    assert "@max_in_flight(" in bundle.program or bundle.program.count("gemm.async") > 1
    timed = bundle.time(clock_mhz=800)
    assert timed.macs_by_unit == {"NMU": 256 * 64 * 96}
    assert timed.cycles >= timed.bounds.largest
    assert timed.milliseconds == timed.cycles / 800_000


@pytest.mark.parametrize("padding", ["Same", "Valid"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_a_convolution(padding: str, strides: tuple[int, int]) -> None:
    module = convolution_model(strides=strides, padding=padding)
    bundle = require_right(module, "npm4k")
    assert bundle.validate(inputs_of(module)).ok
    assert "VPU" not in bundle.time().macs_by_unit


def test_a_layer_whose_weights_do_not_fit_at_once_is_cut_into_columns() -> None:
    module = linear_model(64, 2048, 1024)
    bundle = require_right(module, "npm4k")
    assert "linear_0_w1" in bundle.program
    assert bundle.validate(inputs_of(module)).ok


def test_rows_that_all_blocks_of_weights_read_are_loaded_once() -> None:
    # The weights alone, 4 MiB at 32 bytes a cycle, are the bound; the next block comes meanwhile.
    timed = nacre.compile(linear_model(64, 2048, 1024), "npm4k").time()
    assert timed.cycles < 1.25 * (4 << 20) / 32


def test_blocks_of_columns_are_in_flight_together() -> None:
    """One is loaded and another stored while a third is multiplied."""
    builder = Builder()
    x = builder.input("x", "f32", (64, 8192))
    module = builder.module(builder.add("MatMul", builder.constant(values((128, 64), 1)), x))
    timed = nacre.compile(module, "npm4k").time()
    assert max(timed.cycles_by_unit.values()) > 0.9 * timed.cycles


# A counterexample is small enough as it comes; making it smaller takes minutes.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, phases=_PHASES)
@given(models())
def test_any_model_gives_a_clean_plan_with_the_bits_of_the_legalised_module(module: Module) -> None:
    require_right(module, "npm4k")


@pytest.mark.full
@settings(
    suppress_health_check=[HealthCheck.too_slow], deadline=None, phases=_PHASES,
    max_examples=settings().max_examples // 2,
)  # fmt: skip
@given(models())
def test_a_plan_is_right_on_small_and_on_large_devices(module: Module) -> None:
    for device in DEVICES[1:]:
        require_right(module, device)


@pytest.mark.heavy("compiles networks")
def test_any_schedule_gives_the_same_bytes() -> None:
    bundle = nacre.compile(convolution_model(), "npm4k")
    interpreter = NemInterpreter()
    program = interpreter.load_string(bundle.program)
    image = values((1, 28, 28, 16), 5).astype(np.float16)
    filled = {"image_DDR": image, "weights": bundle.weights}
    expected = interpreter.run(program, filled).read_buffer("output0_DDR")
    for seed in range(10):
        interpreter.set_scheduling("random", seed)
        result = interpreter.run(program, filled, detect_races=True)
        assert result.status == "completed"
        assert result.read_buffer("output0_DDR") == expected


def test_the_same_model_gives_the_same_bytes() -> None:
    first, second = (nacre.compile(convolution_model(), "npm4k") for _ in range(2))
    assert first.program == second.program
    assert first.weights == second.weights
    assert first.manifest == second.manifest


def test_every_stage_can_be_seen() -> None:
    seen: dict[str, str] = {}

    def shown(stage: str, result: object) -> None:
        seen[stage] = str(result)

    bundle = nacre.compile(linear_model(), "npm4k", on_stage=shown)
    assert tuple(seen) == tuple(stage for stage in STAGES if stage != "quantise")
    assert "Linear" in seen["legalise"]
    assert "linear_0: Linear" in seen["partition"]
    assert seen["emit"] == bundle.program
    seen.clear()
    samples = [inputs_of(linear_model())]
    nacre.compile(linear_model(), "npm4k", "i8", calibration=samples, on_stage=shown)
    assert tuple(seen) == STAGES


def test_every_task_knows_where_it_comes_from() -> None:
    module = linear_model()
    bundle = nacre.compile(module, "npm4k")
    (layer,) = bundle.manifest.layers
    tokens = {task["name"] for task in bundle.time().tasks}
    assert {*layer.tasks, *layer.loads} == tokens
    assert "linear_0_w0" in layer.loads
    sources = [module.by_id[op.source or 0].opcode for op in layer.operations]
    assert sources == ["MatMul", "Relu"]


def test_a_wrong_weight_is_found_and_named() -> None:
    module = linear_model()
    right = nacre.compile(module, "npm4k")
    spoilt = bytearray(right.weights)
    spoilt[1] ^= 0x40
    wrong = nacre.Bundle(module, right.program, bytes(spoilt), right.manifest, right.legal)
    validation = wrong.validate(inputs_of(module))
    assert not validation.ok
    assert validation.first_difference is not None
    assert validation.first_difference.layer == "linear_0"


def test_state_is_kept_in_a_session() -> None:
    builder = Builder()
    x, h = builder.input("x", "f32", (4, 8)), builder.input("h", "f32", (4, 8))
    total = builder.add("BinOp", x, h, op="Add")
    zero = builder.constant(np.zeros((4, 8), np.float32))
    builder.state("h", total, zero)
    module = builder.module(builder.add("Relu", total))
    bundle = nacre.compile(module, "npm4k")
    session, reference = bundle.session(), module.session()
    for seed in range(3):
        given_inputs = {"x": values((4, 8), seed)}
        found = session.run(given_inputs)["output0"]
        assert np.allclose(found, reference.run(given_inputs)[0], atol=0.02)
    once = bundle.run({"x": values((4, 8), 0)})["output0"]
    session.reset()
    assert np.array_equal(session.run({"x": values((4, 8), 0)})["output0"], once)


def test_constants_beyond_the_precision_are_held_and_reported() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 4))
    most = builder.constant(np.full((4, 4), 1e6, np.float32))
    bundle = nacre.compile(builder.module(builder.add("BinOp", x, most, op="Min")), "npm4k")
    assert bundle.manifest.notes == (
        "16 elements of constant %1 lie beyond f16; they are held at 65504",
    )


@pytest.mark.parametrize("size", [1e6, 1e-9])
def test_weights_beyond_the_precision_are_scaled(size: float) -> None:
    builder = Builder("core-v1")
    x = builder.input("x", "f32", (4, 4))
    weights = builder.constant(np.full((4, 4), size, np.float32))
    bundle = nacre.compile(builder.module(builder.add("MatMul", x, weights)), "npm4k")
    assert not any("constant" in note for note in bundle.manifest.notes)
    found = bundle.validate({"x": np.arange(16, dtype=np.float32).reshape(4, 4)})
    assert found.ok, found


# What cannot be compiled


def codes(error: InputError) -> list[str]:
    return [d.code for d in error.diagnostics]


def test_all_operations_without_a_form_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Everything that importers make has a form; what would happen to something without one?
    stage = import_module("nacre.compile.legalise.layout")
    monkeypatch.setattr(stage, "escape_of", lambda op: "there is no kernel for it")
    text = """
%0 = Input () {name="x"} : tensor<f32[4, 4]>
%1 = CumSum (%0) {axis=1} : tensor<f32[4, 4]>
%2 = Unary (%1) {op=Sin} : tensor<f32[4, 4]>
outputs: %2
"""
    with pytest.raises(InputError) as caught:
        nacre.compile(core.parse(text), "npm4k")
    assert codes(caught.value) == ["CMP01"] * 2
    messages = [d.message for d in caught.value.diagnostics]
    assert "`CumSum` %1 has no form in NEM: there is no kernel" in messages[0]
    assert "`Unary` %2" in messages[1]


def test_a_layer_with_rows_too_long_for_l1_is_refused_with_its_sizes() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 600_000))
    with pytest.raises(InputError) as caught:
        nacre.compile(builder.module(builder.add("Softmax", x, axis=1)), "npm4k")
    (found,) = caught.value.diagnostics
    assert found.code == "CMP02"
    assert "softmax_0" in found.message
    assert "1200000" in found.message


def test_a_precision_that_the_device_lacks() -> None:
    with pytest.raises(InputError) as caught:
        nacre.compile(linear_model(), "npm4k", "f32")
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("CMP03", "`npm4k` has f16 and i8; `nem_reference` has f32")


@pytest.mark.parametrize("op", ["Cast", "Concat"])
def test_floats_of_8_bits_are_refused_by_their_name(op: str) -> None:
    builder = core.Builder("nacre-1")
    x = builder.input("x", "f8e5m2", (4, 4))
    made = builder.add("Cast", x, to="f32") if op == "Cast" else builder.add(op, x, x, axis=1)
    with pytest.raises(InputError) as caught:
        nacre.compile(builder.module(made), "npm4k")
    (found,) = caught.value.diagnostics
    assert found.code == "CMP03"
    assert "f8e5m2" in found.message


@pytest.mark.parametrize(
    ("device", "precision", "message"),
    [
        ("npm4q", "f16", "no device `npm4q`"),
        ("npm4k", "f61", "no precision `f61`"),
        ("nem_baseline_1_0", "f16", "no topology"),
    ],
)
def test_requests_that_make_no_sense(device: str, precision: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        nacre.compile(linear_model(), device, precision)  # type: ignore[arg-type]
    assert codes(caught.value) == ["CMP04"]
    assert message in caught.value.diagnostics[0].message


def test_sources_that_are_no_models() -> None:
    for source, code in (("model.bin", "MDL01"), (3, "CMP04")):
        with pytest.raises(InputError) as caught:
            nacre.compile(source, "npm4k")
        assert codes(caught.value) == [code]


def test_outputs_that_nothing_computes_are_copied() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 6))
    known = builder.constant(values((3,), 1))
    turned = builder.add("Reshape", x, new_shape=(2, 12))
    part = builder.add("Slice", x, starts=(1, 0), ends=(4, 6), steps=(2, 3))
    module = builder.module(x, known, x, turned, part)
    bundle = require_right(module, "npm4k")
    given_inputs = inputs_of(module)
    assert bundle.validate(given_inputs).ok
    found = bundle.run(given_inputs)
    assert [array.shape for array in found.values()] == [(4, 6), (3,), (4, 6), (2, 12), (2, 2)]


def test_a_model_larger_than_ddr() -> None:
    with pytest.raises(InputError) as caught:
        nacre.compile(linear_model(), "npm4k", ddr_bytes=4096)
    assert codes(caught.value) == ["CMP05"]
    assert "output0_DDR" in caught.value.diagnostics[0].message


def test_inputs_are_checked() -> None:
    bundle = nacre.compile(linear_model(), "npm4k")
    for wrong in ({}, {"x": np.zeros((2, 2), np.float32)}, {"y": np.zeros(3)}):
        with pytest.raises(InputError):
            bundle.run(wrong)


# What a stranger found


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32", "i64"])
def test_integers_stay_what_they_are(dtype: str) -> None:
    builder = Builder()
    x, y = builder.input("x", dtype, (4, 4)), builder.input("y", dtype, (4,))
    total = builder.add("BinOp", builder.add("ReluNan", x), y, op="Add")
    module = builder.module(total)
    random = np.random.default_rng(1)
    element = module.by_id[total].type.element.dtype
    low = 0 if dtype == "u8" else -60
    given_inputs = {
        name: random.integers(low, 60, type_.shape).astype(element)
        for name, type_ in module.input_types.items()
    }
    bundle = nacre.compile(module, "npm4k")
    assert bundle.validate(given_inputs).first_difference is None
    found = bundle.run(given_inputs)["output0"]
    assert found.dtype == element
    assert np.array_equal(found, core.evaluate(module, given_inputs)[0])


@pytest.mark.parametrize("given", [{"max": 6.0}, {"min": 0.5}, {"min": -1.0, "max": 1.0}])
def test_a_clip_with_one_bound(given: dict[str, float]) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    module = builder.module(builder.add("ReluNan", builder.add("Clip", x, **given)))
    assert require_right(module, "npm4k").validate(inputs_of(module)).ok


def test_a_clip_without_bounds_is_nothing() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    module = builder.module(builder.add("ReluNan", builder.add("Clip", x)))
    assert "clamp" not in require_right(module, "npm4k").program


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_both_forms_of_gelu(form: str) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    module = builder.module(builder.add("Gelu", x, approximate=form))
    bundle = require_right(module, "npm4k")
    assert ("approximate=tanh" in bundle.program) == (form == "tanh")
    assert bundle.validate(inputs_of(module)).ok


@pytest.mark.parametrize("bias", [True, False])
def test_a_bias_in_a_precision_that_has_none_is_added(bias: bool) -> None:
    module = linear_model(bias=bias)
    bundle = nacre.compile(module, "nem_reference", "f32")
    assert bundle.validate(inputs_of(module)).ok
    assert ("add.async" in bundle.program) == bias


def test_a_device_from_a_file() -> None:
    path = Path(__file__).parents[2] / "examples/devices/npm_quad_cstl.nem"
    module = linear_model()
    assert require_right(module, str(path)).validate(inputs_of(module)).ok


@pytest.mark.parametrize(
    ("shape", "outputs", "groups"),
    [((1, 3, 5, 5), 1, 1), ((1, 1, 5, 5), 2, 1), ((1, 3, 20, 24), 16, 1), ((2, 4, 9, 7), 4, 4)],
)
def test_channels_first(shape: tuple[int, ...], outputs: int, groups: int) -> None:
    builder = Builder()
    x = builder.input("x", "f32", shape)
    weights = values((outputs, shape[1] // groups, 3, 3), 1, 0.2)
    y = builder.add("Conv", x, builder.constant(weights), pads=(1, 1, 1, 1), groups=groups)
    z = builder.add(
        "Conv", builder.add("ReluNan", y), builder.constant(values((5, outputs, 1, 1), 2))
    )
    module = builder.module(z)
    assert require_right(module, "npm4k").validate(inputs_of(module)).ok


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (4, 1, 6), (2, 3, 4, 5)])
def test_transpositions(shape: tuple[int, ...]) -> None:
    for order in permutations(range(len(shape))):
        builder = Builder()
        x = builder.input("x", "f32", shape)
        turned = builder.add("Transpose", x, permutation=order)
        module = builder.module(builder.add("ReluNan", turned))
        assert require_right(module, "npm4k").validate(inputs_of(module)).ok


def test_which_transpositions_exchange_two_runs_of_axes() -> None:
    assert swap_of((2, 3), (1, 0)) == (1, 2, 3, 1)
    assert swap_of((2, 3, 4, 5), (0, 2, 3, 1)) == (2, 3, 20, 1)
    assert swap_of((2, 3, 4, 5), (0, 2, 1, 3)) == (2, 3, 4, 5)
    assert swap_of((1, 3, 1, 5), (3, 0, 1, 2)) == (1, 3, 5, 1)
    assert swap_of((2, 3, 4), (2, 1, 0)) is None


def test_constants_that_vanish_are_noted() -> None:
    builder = Builder("core-v1")
    x = builder.input("x", "f32", (4, 4))
    weights = np.eye(4, dtype=np.float32)
    weights[0, 1] = 1e-9
    bundle = nacre.compile(
        builder.module(builder.add("MatMul", x, builder.constant(weights))), "npm4k"
    )
    assert bundle.manifest.notes == ("1 element of constant %2 is 0 in f16",)


def test_a_state_that_nothing_computes_is_copied() -> None:
    builder = Builder()
    x, h = builder.input("x", "f32", (4,)), builder.input("h", "f32", (4,))
    builder.state("h", x, builder.constant(np.zeros(4, np.float32)))
    module = builder.module(builder.add("BinOp", x, h, op="Add"))
    session = nacre.compile(module, "npm4k").session()
    one, two = np.ones(4, np.float32), np.full(4, 2, np.float32)
    assert session.run({"x": one})["output0"].tolist() == [1] * 4
    assert session.run({"x": two})["output0"].tolist() == [3] * 4


@pytest.mark.parametrize("clock", [0, -5, float("nan"), float("inf")])
def test_a_clock_that_does_not_tick(clock: float) -> None:
    with pytest.raises(InputError) as caught:
        nacre.compile(linear_model(), "npm4k").time(clock_mhz=clock)
    assert codes(caught.value) == ["CMP04"]


def test_rows_that_see_nothing_but_padding() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 9, 1))
    weights = builder.constant(values((1, 3, 1, 5), 1))
    given = {"layout": "NHWC", "pads": (1, 1, 0, 1), "strides": (2, 1)}
    with pytest.raises(InputError) as caught:
        nacre.compile(builder.module(builder.add("Conv", x, weights, **given)), "npm4k")
    assert codes(caught.value) == ["CMP02"]
    assert "nothing but padding" in caught.value.diagnostics[0].message


@pytest.mark.parametrize("pads", [(1, 0, 1, 0), (2, 0, 2, 0)])
def test_rows_of_padding_beside_others(pads: tuple[int, ...]) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 6, 5, 3))
    weights = builder.constant(values((1, 1, 3, 4), 1))
    module = builder.module(builder.add("Conv", x, weights, layout="NHWC", pads=pads))
    assert require_right(module, "npm4k").validate(inputs_of(module)).ok

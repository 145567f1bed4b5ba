"""Estimates: the numbers add up, a model that does not fit is told why, and nothing is hidden."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.estimate.assumptions import derated_figures
from nacre.compile.estimate.estimate import estimate
from nacre.compile.estimate.layer_times import DEPENDENCES
from nacre.compile.estimate.text import estimate_text
from nacre.compile.sampling.draw import draw_inputs
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import convolution_model, linear_model, models, values

pytestmark = pytest.mark.sampled(2)  # together they take long

_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def chain() -> Module:
    """Three layers, the last of which is all weights."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 16, 16, 8))
    kernel = builder.constant(values((3, 3, 8, 32), 1, 0.1))
    made = builder.add("Conv", x, kernel, layout="NHWC", pads=(1, 1, 1, 1))
    made = builder.add("Silu", made)
    flat = builder.add("Reshape", made, new_shape=(1, 16 * 16 * 32))
    weights = builder.constant(values((10, 16 * 16 * 32), 2, 0.01))
    return builder.module(builder.add("Linear", builder.add("Unary", flat, op="Tanh"), weights))


def test_what_a_console_shows_is_a_line() -> None:
    """Not the weights, the plan and its timeline, which may be many megabytes."""
    module = chain()
    kept = "x tensor<f32[1, 16, 16, 8]> -> tensor<f32[1, 10]>"
    assert repr(module) == f"<Module of {len(module)} operations: {kept}>"
    assert repr(Module((), (7,))) == "<Module of 0 operations:  -> >"
    bundle, found = nacre.compile(module, "npm4k"), estimate(module, "npm4k")
    assert repr(bundle) == f"<Bundle for npm4k in f16: {len(bundle.manifest.layers)} layers>"
    assert repr(found) == f"<Estimate on npm4k in f16: {found.cycles:,} cycles>"
    assert repr(estimate(module, "npm4k", precision="f32")).endswith("in f32: no plan>")


def test_no_random_input_puts_a_layer_back_into_floats() -> None:
    """Scores close together and far from 0: with data, the layer would be kept in f16."""
    builder = Builder()
    x, weights = builder.input("x", "f32", (64, 12)), builder.constant(values((6, 12), 3, 0.3))
    y = builder.add("Linear", x, weights, builder.constant(np.full(6, 60.0, np.float32)))
    module = builder.module(builder.add("ArgMax", y, axis=1))
    given = nacre.compile(module, "npm4k", "i8", calibration=draw_inputs(module, 1, (2,)))
    assert any("kept in f16" in note for note in given.manifest.notes)
    found = estimate(module, "npm4k", precision="i8")
    assert [layer.operations[0] for layer in found.layers if layer.macs] == ["QLinear"]
    assert any("no layer is kept in f16" in told for told in found.assumptions)


def test_an_estimate_agrees_with_the_bundle_that_it_is_about() -> None:
    found = estimate(chain(), "npm4k", clock_mhz=500)
    timed = nacre.compile(chain(), "npm4k").time(clock_mhz=500)
    assert found.fits
    assert found.plan is not None
    assert found.plan.ideal.cycles == timed.cycles
    shown = found.as_json()
    assert shown["milliseconds"] == timed.cycles / 500_000
    assert shown["macs_by_unit"] == timed.macs_by_unit
    assert shown["cycles_by_unit"] == timed.cycles_by_unit
    macs = 16 * 16 * 32 * 72 + 16 * 16 * 32 * 10
    assert shown["macs_by_unit"] == {"NMU": macs}
    assert shown["mac_utilisation"] == pytest.approx(macs / 2048 / timed.cycles)
    assert shown["over_whole_bound"] >= 1
    assert shown["vpu_share"] == 0
    assert shown["derated"]["cycles"] > timed.cycles


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, phases=_PHASES)
@given(models())
def test_layers_add_up_to_the_run(module: Module) -> None:
    found = estimate(module, "npm4k")
    assert found.plan is not None
    assert found.bounds is not None
    layers, timed = found.plan.layers, found.plan.ideal
    assert sum(layer.cycles for layer in layers) == timed.cycles
    assert sum(layer.macs for layer in layers) <= timed.macs_by_unit.get("NMU", 0)
    assert sum(layer.ddr_bytes for layer in layers) == found.plan.ddr_bytes
    assert found.plan.ddr_bytes >= sum(bound.ddr_bytes for bound in found.bounds.layers)
    named = [token for layer in layers for token in layer.tasks]
    assert sorted(named) == sorted({task["name"] for task in timed.tasks})
    entries = found.plan.bundle.manifest.layers
    assert [layer.name for layer in layers] == [entry.name for entry in entries]
    members = [name for entry in entries for name in entry.members or (entry.name,)]
    assert members == [bound.name for bound in found.bounds.layers]
    assert max(layer.end for layer in layers) == timed.cycles


def test_the_limit_of_a_layer_is_the_unit_that_has_most_to_do() -> None:
    weights = estimate(linear_model(1, 4096, 512), "npm4k").plan
    assert weights is not None
    (layer,) = weights.layers
    assert layer.bottleneck == "sDMA"  # 4 MiB of weights for one row
    assert layer.bound is not None
    assert layer.bound.limit == "DDR"
    # With eight engines of which one works, no unit has much to do.
    idle = estimate(chain(), "npm64k").plan
    assert idle is not None
    for layer in idle.layers:
        is_idle = max(layer.busy.values()) < layer.cycles / 2
        assert (layer.bottleneck == DEPENDENCES) == is_idle


def test_derating_keeps_the_rate_and_gives_the_array_a_shape() -> None:
    for name, precision, lanes in (
        ("npm4k", "i8", (32, 128)), ("npm64k", "i8", (64, 128)), ("npm4k", "f16", (16, 128)),
    ):  # fmt: skip
        figures = derated_figures(target_of(name).device, precision)
        assert figures["NMU"]["lanes"] == lanes
        assert figures["DDR"] == {"bandwidth": 64}


def test_a_model_that_does_not_fit_is_told_which_layer_and_keeps_its_bounds() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 600_000))
    found = estimate(builder.module(builder.add("Softmax", x, axis=1)), "npm4k")
    assert not found.fits
    assert [problem.code for problem in found.problems] == ["CMP02"]
    shown = found.as_json()
    assert (shown["fits"], shown["cycles"], shown["layers"]) == (False, None, [])
    assert shown["layer_bound"] == shown["whole_bound"] > 0
    assert "softmax_0" in shown["problems"][0]["message"]
    text = estimate_text("big.core", {"npm4k": found})
    assert "npm4k cannot take the model:" in text
    assert "CMP02: no tile of `softmax_0` fits" in text


def test_ddr_that_is_too_small_names_the_buffers() -> None:
    found = estimate(linear_model(), "npm4k", ddr_bytes=1000)
    assert [problem.code for problem in found.problems] == ["CMP05"]
    assert "`output0_DDR` 49152" in found.problems[0].message


@pytest.mark.parametrize("clock", [0, -5, float("nan"), float("inf")])
def test_a_clock_that_cannot_be_is_refused(clock: float) -> None:
    with pytest.raises(InputError) as caught:
        estimate(linear_model(), "npm4k", clock_mhz=clock)
    assert caught.value.diagnostics[0].code == "CMP04"


def test_a_request_that_is_wrong_is_no_estimate(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        estimate(linear_model(), "npm5k")
    assert caught.value.diagnostics[0].code == "CMP04"
    with pytest.raises(InputError):
        estimate(tmp_path / "missing.core", "npm4k")


def test_every_estimate_says_what_it_assumes() -> None:
    assumed = estimate(convolution_model(), "npm4k").assumptions
    text = "\n".join(assumed)
    for part in ("clock 1,000 MHz", "sDMA.bandwidth 32", "CSTL 2", "16 input by 128 output"):
        assert part in text
    given_clock = estimate(convolution_model(), "npm4k", clock_mhz=800).assumptions
    assert "clock" not in "\n".join(given_clock)
    assert "fact" not in text  # what is known is no assumption


def test_several_devices_stand_side_by_side() -> None:
    module = chain()
    found = {name: estimate(module, name, clock_mhz=800) for name in ("npm4k", "npm64k")}
    lines = estimate_text("chain.core", found).splitlines()
    assert [line.split(":")[0] for line in lines[2:4]] == ["npm4k", "npm64k"]
    assert lines[5].split() == ["npm4k", "npm64k"]
    rows = {line[:20].strip(): line.split()[-2:] for line in lines[6:13]}
    assert rows["fits"] == ["yes", "yes"]
    cycles = [int(cell.replace(",", "")) for cell in rows["cycles"]]
    assert cycles == [one.plan.ideal.cycles for one in found.values() if one.plan]
    assert max(len(line) for line in lines) <= 110


def test_random_inputs_have_the_types_of_the_inputs_and_are_the_same_every_time() -> None:
    builder = Builder()
    builder.input("ids", "i64", (1, 4))
    x = builder.input("x", "f32", (2, 3))
    module = builder.module(builder.add("Silu", x))
    first, second = (draw_inputs(module, 1, (2,)) for _ in range(2))
    assert {name: (a.dtype.name, a.shape) for name, a in first.items()} == {
        "ids": ("int64", (2, 1, 4)), "x": ("float32", (2, 2, 3)),
    }  # fmt: skip
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


def test_every_key_of_the_json_is_on_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs/estimate.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page.partition("## JSON")[2]))
    shown = estimate(linear_model(), "npm4k").as_json()
    own = {"device", "precision", "clock_mhz"}  # what was asked for
    assert (
        named
        == {
            *shown.keys(),
            *shown["layers"][0],
            *shown["derated"],
            *shown["operations"][0],
            *shown["band"],
            *shown["why"],
            *shown["why"]["losses"][0],
            "null",
        }
        - own
    )

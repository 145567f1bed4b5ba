"""The noise of tensors: against plain evaluations, on networks whose faults are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.blame.measures import (
    channel_factors,
    histogram_of,
    noise_ratio,
    saturated_share,
    weight_noise,
)
from nacre.compile.quantise.affine import Affine
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.models import Array, values
from tests.compile.quantise.networks import mobile, named, samples

pytestmark = pytest.mark.sampled(2)  # together they take long


def noise_in_db(found: Array, wanted: Array) -> float:
    """Signal over noise, element by element."""
    signal = noise = 0.0
    for a, b in zip(found.ravel().tolist(), wanted.ravel().tolist(), strict=True):
        signal, noise = signal + b * b, noise + (a - b) ** 2
    return 10 * float(np.log10(signal / noise))


@pytest.fixture(scope="module")
def network() -> Module:
    return mobile(blocks=2)


@pytest.fixture(scope="module")
def plan(network: Module) -> nacre.Bundle:
    return nacre.compile(network, "npm4k", "i8", calibration=samples(network, 6))


def test_every_computed_tensor_of_a_plan_in_floats_is_its_model_s(network: Module) -> None:
    found = nacre.compile(network, "npm4k").blame(samples(network, 1)[0])
    nodes = {tensor.node for tensor in found.tensors}
    assert {name for name in network.labels.nodes.values() if name.startswith("conv")} <= nodes  # type: ignore[union-attr]
    assert all(tensor.after > 45 for tensor in found.tensors)
    assert found.first_divergence is None


def test_ratios_are_those_of_plain_evaluations(network: Module, plan: nacre.Bundle) -> None:
    inputs = samples(network, 1, seed=80)[0]
    found = plan.blame(inputs)
    last = found.tensors[-1]
    wanted = evaluate(network, inputs)[0]
    actual = plan.run(inputs)["y"]
    assert last.after == pytest.approx(noise_in_db(actual, wanted), abs=1e-3)
    assert last.stored >= last.added - 0.5  # weights come on top of rounding
    assert last.scale == plan.manifest.outputs[0].scale
    first = next(tensor for tensor in found.tensors if tensor.opcode == "Input")
    port = plan.manifest.inputs[0]
    held = port.real(port.to_memory(inputs["image"]))
    assert first.added == pytest.approx(noise_in_db(held, inputs["image"]), abs=1e-3)
    for tensor in found.tensors:
        assert sum(tensor.histogram.counts) == np.prod(tensor.shape)


def poor_layer() -> Module:
    """Three products; what the second leaves has one element a thousand times the others."""
    builder = Builder()
    x = builder.input("x", "f32", (16, 32))
    spread = np.ones((32, 1), np.float32)
    spread[5] = 1000
    for seed, factor in ((1, 1.0), (2, spread), (3, 1.0)):
        x = builder.add("Linear", x, builder.constant(values((32, 32), seed, 0.2) * factor))
        x = builder.add("Unary", x, op="Tanh") if seed == 1 else x
    keep = np.full(32, 1e-3, np.float32)
    return named(builder.module(builder.add("BinOp", x, builder.constant(keep), op="Mul")))


def test_the_layer_that_loses_is_blamed() -> None:
    module = poor_layer()
    data = [{"x": values((16, 32), seed)} for seed in range(4)]
    bundle = nacre.compile(module, "npm4k", "i8", calibration=data, fallback=False)
    found = bundle.blame(data[0])
    products = [tensor for tensor in found.tensors if tensor.opcode == "QLinear"]
    assert len({tensor.node for tensor in products}) >= 2
    # Rows of the outlier are all there is of the signal; the middle tensor alone has it.
    scales = {tensor.node: tensor.scale or 0 for tensor in products}
    assert max(scales, key=scales.__getitem__) == products[1].node


def test_inputs_beyond_the_calibration_data_are_held_at_the_ends(
    network: Module, plan: nacre.Bundle
) -> None:
    usual = samples(network, 1)[0]
    far = {"image": usual["image"] * 20}
    few = plan.blame(usual)
    many = plan.blame(far)
    assert few.first_divergence is None
    first = many.tensors[0]
    port = plan.manifest.inputs[0]
    assert port.scale is not None
    low, high = ((end - (port.zero or 0)) * port.scale for end in (-128.5, 127.5))
    beyond = sum(1 for x in far["image"].ravel().tolist() if not low <= x <= high)
    assert first.saturated == pytest.approx(beyond / far["image"].size, abs=2e-3)
    assert many.first_divergence is not None
    assert many.first_divergence.node == "image"


def test_channels_that_were_made_alike_are_told_from_noise() -> None:
    """A norm with channels that are far larger than the others shares factors with weights."""
    builder = Builder()
    x = builder.input("x", "f32", (16, 32))
    scale = np.ones(32, np.float32)
    scale[[3, 7]] = 60
    y = builder.add("LayerNorm", x, builder.constant(scale), builder.constant(values((32,), 1)),
                    axis=1)  # fmt: skip
    module = named(
        builder.module(builder.add("Linear", y, builder.constant(values((8, 32), 2, 0.1))))
    )
    data = [{"x": values((16, 32), seed)} for seed in range(4)]
    found = nacre.compile(module, "npm4k", "i8", calibration=data).blame(data[1])
    norm = next(tensor for tensor in found.tensors if tensor.node.startswith("layernorm"))
    assert norm.after > 25
    assert any(change.startswith("smoothing") for change in norm.changes)


def test_factors_of_weights_are_found() -> None:
    """What is left is the noise that was added, of weights with factors for all channels."""
    weights, noise = values((3, 3, 12, 10), 1), values((3, 3, 12, 10), 2, 0.01)
    before, behind = np.exp(values((12, 1), 3, 0.7)), np.exp(values((10,), 4, 0.7))
    found = (weights + noise) * before * behind
    assert weight_noise(found, weights) == pytest.approx(40, abs=1.5)
    assert weight_noise(weights + noise, weights) == noise_ratio(weights + noise, weights)


@given(st.integers(0, 1000), st.floats(0.01, 100))
def test_factors_of_channels_are_found(seed: int, least: float) -> None:
    random = np.random.default_rng(seed)
    wanted = random.standard_normal((40, 6)).astype(np.float32)
    factors = (least * np.geomspace(1, 30, 6)).astype(np.float32)
    noisy = wanted * (1 + 0.01 * random.standard_normal(wanted.shape)).astype(np.float32)
    found = channel_factors(noisy * factors, wanted)
    assert found is not None
    assert np.allclose(found, factors, rtol=0.05)
    assert channel_factors(noisy, wanted) is None
    # Noise alone is no factor.
    assert channel_factors(random.standard_normal((40, 6)).astype(np.float32), wanted) is None


def test_histograms_and_ends_of_integers() -> None:
    affine = Affine(0.5, 10)
    reals = np.array([-69.0, -69.3, 58.5, 58.7, 70, 0], np.float32)
    stored = affine.quantise(reals)
    counts = histogram_of(stored, affine).counts
    assert (counts[0], counts[-1], sum(counts)) == (2, 3, 6)
    assert saturated_share(stored, reals, affine) == pytest.approx(2 / 6)


def test_what_keeping_a_layer_in_f16_costs_is_what_a_map_costs(
    network: Module, plan: nacre.Bundle
) -> None:
    data: Any = samples(network, 6)
    found = plan.blame(data[0], remedies=1, calibration=data)
    (remedy,) = found.remedies
    asked: list[dict[str | int, str]] = [{}, {remedy.node: "f16"}]
    plain, kept = (
        nacre.compile(
            network, "npm4k", "i8", calibration=data, fallback=False, precision_map=one
        ).time()
        for one in asked
    )
    assert found.cycles == plain.cycles
    assert remedy.cycles == kept.cycles - plain.cycles
    assert (
        remedy.node
        == min(
            (t for t in found.tensors if t.layer and t.scale is not None), key=lambda t: t.added
        ).node
    )
    assert set(remedy.gains) == {"y"}


def test_folders_keep_the_names(network: Module, plan: nacre.Bundle, tmp_path: Path) -> None:
    plan.save(tmp_path / "b")
    again = nacre.Bundle.load(tmp_path / "b")
    inputs = samples(network, 1)[0]
    assert again.blame(inputs).tensors == plan.blame(inputs).tensors
    plan.save(tmp_path / "c", reference=False)
    with pytest.raises(InputError, match="without the model"):
        nacre.Bundle.load(tmp_path / "c").blame(inputs)


def test_two_plans_beside_each_other(network: Module, plan: nacre.Bundle) -> None:
    inputs = samples(network, 1)[0]
    floats = nacre.compile(network, "npm4k")
    found = plan.compare(floats, inputs)
    assert [figures.cycles for figures in found.plans] == [plan.time().cycles, floats.time().cycles]
    for side in (0, 1):
        assert sum(layer.cycles[side] for layer in found.layers) == found.plans[side].cycles
    both = [node for node in found.nodes if None not in node.ratios and "conv" in node.node]
    assert both
    assert all((node.ratios[0] or 0) < (node.ratios[1] or 0) for node in both)
    with pytest.raises(InputError, match="two models"):
        plan.compare(nacre.compile(mobile(seed=5, blocks=2), "npm4k"), inputs)

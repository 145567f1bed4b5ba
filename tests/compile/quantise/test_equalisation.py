"""Channels made alike between products: the same floats, less noise on integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.compile.legalise.legal_module import Legal
from nacre.compile.quantise.calibration import check_samples
from nacre.compile.quantise.channels.channel_pairs import channel_pairs
from nacre.compile.quantise.channels.equalisation import equalise_channels
from nacre.compile.quantise.observers import OBSERVERS
from nacre.compile.quantise.quantiser import quantise
from nacre.compile.quantise.roles import Graph
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.quantise.networks import (
    Array,
    legal,
    named,
    numbers,
    samples,
    sqnr,
    stored_run,
)

MSE = OBSERVERS["mse"]
FUNCTIONS = ("none", "relu", "leaky", "pool", "clip", "silu")
HOMOGENEOUS = FUNCTIONS[:4]
CHANNELS = 8


def network(function: str, reader: str, *, seed: int = 0, branches: bool = False) -> Module:
    """A convolution with channels of very unlike sizes, and a product to which all are as much."""
    builder = Builder()
    x = builder.input("image", "f32", (1, 6, 6, 3))
    sizes = np.exp2(np.linspace(-3, 3, CHANNELS)).astype(np.float32)
    weights, bias = (
        numbers(seed, 3, 3, 3, CHANNELS) * sizes / 5,
        numbers(seed + 1, CHANNELS) * sizes,
    )
    made = builder.add("Conv", x, builder.constant(weights), builder.constant(bias),
                       layout="NHWC", pads=(1,) * 4)  # fmt: skip
    y = _function(builder, function, made)
    if reader == "linear":
        z = builder.add("Linear", y, builder.constant(numbers(seed + 2, 5, CHANNELS) / sizes))
    elif reader == "depthwise":
        second = numbers(seed + 2, 3, 3, 1, CHANNELS) / sizes
        z = builder.add("Conv", y, builder.constant(second), layout="NHWC", groups=CHANNELS)
    else:
        second = numbers(seed + 2, 3, 3, CHANNELS, 5) / sizes[:, None]
        z = builder.add("Conv", y, builder.constant(second), layout="NHWC")
    both = (z, y) if branches else (z,)
    return named(builder.module(*both))


def _function(builder: Builder, name: str, x: int) -> int:
    if name == "pool":
        return builder.add("MaxPool", x, layout="NHWC", kernel=(2, 2))
    if name == "clip":
        return builder.add("Clip", x, min=0.0, max=6.0)
    opcodes = {"relu": "ReluNan", "leaky": "LeakyRelu", "silu": "Silu"}
    return x if name == "none" else builder.add(opcodes[name], x)


def equalised(module: Module) -> Legal:
    """The module after the stage, with data of its own."""
    return equalise_channels(legal(module), check_samples(module, samples(module, 4)), MSE)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(HOMOGENEOUS), st.sampled_from(["linear", "conv", "depthwise"]),
       st.integers(0, 99))  # fmt: skip
def test_floats_keep_every_bit(function: str, reader: str, seed: int) -> None:
    module = network(function, reader, seed=seed)
    changed = equalised(module).module
    assert changed != module
    for sample in samples(module, 2, seed=seed):
        (wanted,), (found,) = evaluate(module, sample), evaluate(changed, sample)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("function", "branches"), [("clip", False), ("silu", False), ("relu", True), ("none", True)]
)
def test_what_factors_would_change_is_left_alone(function: str, branches: bool) -> None:
    module = network(function, "conv", branches=branches)
    assert not list(channel_pairs(Graph(module)))
    assert equalised(module).module == module


def test_channels_that_are_alike_are_left_alone() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 16))
    random = np.sign(numbers(1, 16, 16)).astype(np.float32)
    y = builder.add("ReluNan", builder.add("Linear", x, builder.constant(random)))
    module = named(builder.module(builder.add("Linear", y, builder.constant(random.copy()))))
    assert len(list(channel_pairs(Graph(module)))) == 1
    assert equalised(module).module == module


@pytest.mark.parametrize("reader", ["linear", "conv", "depthwise"])
def test_integers_have_less_noise(reader: str) -> None:
    module = network("relu", reader)
    data = samples(module, 4)
    wanted: list[Array] = [evaluate(module, one)[0] for one in data]
    ratios = []
    for without in ({"equalise"}, set()):
        made = quantise(legal(module), data, source=module, without=frozenset(without))
        ratios.append(sqnr(wanted, [stored_run(made, one)[0] for one in data]))
    assert ratios[1] > ratios[0] + 15


def test_weights_of_two_products_are_left_alone() -> None:
    builder = Builder()
    x, weights = builder.input("x", "f32", (4, 8)), builder.constant(numbers(1, 8, 8))
    y = builder.add("ReluNan", builder.add("Linear", x, weights))
    module = named(builder.module(builder.add("Linear", y, weights)))
    assert not list(channel_pairs(Graph(module)))
    assert replace(equalised(module), origins={}).module == module

"""Stores that take over the last step of a tile: the same bits in fewer cycles."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.compile.bundle.bundle import Bundle
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.options import Options
from nacre.compile.partition.items import Quant
from nacre.compile.partition.layers import Access, Axes, Layer, Local, Operand, Result, Step
from nacre.compile.pipeline import compile_module
from nacre.compile.schedule.quantising_stores import quantising_store
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module

Feeds = dict[str, Any]
# Results of f16 then lie in L2 between layers.
APART = frozenset({"residency", "groups"})


def islands(rows: int = 512, width: int = 64) -> tuple[Module, Feeds]:
    """Products on integers with a softmax in floats between them."""
    random, builder = np.random.default_rng(0), Builder()

    def linear(value: int) -> int:
        weights = random.standard_normal((width, width)) / width**0.5
        bias = random.standard_normal(width)
        constants = (builder.constant(a.astype(np.float32)) for a in (weights, bias))
        return builder.add("Linear", value, *constants)

    x = builder.input("x", "f32", (rows, width))
    y = builder.add("Softmax", linear(x), axis=1)
    module = builder.module(linear(y))
    return module, {"x": random.standard_normal((rows, width)).astype(np.float32)}


def compiled(device: str | Path, module: Module, feeds: Feeds) -> CompiledModel:
    target = target_of(str(device))
    options = Options(target.device, "i8", calibration=[feeds], disabled=APART)
    return compile_module(module, target, options)


def without_quantising_stores(
    monkeypatch: pytest.MonkeyPatch, device: str | Path, module: Module, feeds: Feeds
) -> CompiledModel:
    tasks = importlib.import_module("nacre.compile.schedule.tasks")
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "quantising_store", lambda layer, options: None)
        return compiled(device, module, feeds)


def test_a_store_takes_over_a_cast_and_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    module, feeds = islands()
    plain = without_quantising_stores(monkeypatch, "npm4k", module, feeds)
    bundle = compiled("npm4k", module, feeds)
    quant = "per_tensor(scale=1.0, zero_point=0)"
    assert bundle.program.count(quant) > 0 == plain.program.count(quant)
    assert bundle.program.count("cast.async") < plain.program.count("cast.async")
    assert not bundle.problems
    (output,) = bundle.run(feeds).values()
    (expected,) = plain.run(feeds).values()
    assert np.array_equal(output, expected)
    assert str(Bundle.of(bundle).validate(feeds)).startswith("valid: ")
    assert bundle.time().cycles < plain.time().cycles
    assert bundle.legal.operations == plain.legal.operations


def test_plans_stay_as_they_are_where_devices_lack_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, feeds = islands(rows=256)
    plain = without_quantising_stores(monkeypatch, "npm_pro", module, feeds)
    assert compiled("npm_pro", module, feeds).program == plain.program


def layer(nem: str, source: str, quant: Quant | None = None) -> Layer:
    """Rows of 64 elements that are converted and leave."""
    axes: Axes = ("rows", 64)
    access = Access(0, axes, (64, 1), "i8")
    step = Step(nem, (Operand(0),), Operand(1, quant))
    return Layer(
        "last", "map", (), rows=512, columns=64, locals=(Local(axes, source), Local(axes, "i8")),
        steps=(step,), results=(Result(1, 1, access),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nem", "quant"), [("cast", Quant((1.0,), (0,))), ("quantize", Quant((0.5,), (3,)))]
)
def test_the_destination_has_the_scale_of_the_step(nem: str, quant: Quant) -> None:
    options = Options(target_of("npm4k").device, "i8")
    store = quantising_store(layer(nem, "f16", Quant((0.5,), (3,))), options)
    assert store is not None
    assert store.quant == quant


def test_only_a_last_step_whose_result_leaves_is_taken_over() -> None:
    options = Options(target_of("npm4k").device, "i8")
    lite = Options(target_of("npm_lite").device, "i8")
    assert quantising_store(layer("cast", "f16"), options) is not None
    assert quantising_store(layer("cast", "f16"), lite) is None
    assert quantising_store(layer("cast", "i32"), options) is None
    assert quantising_store(layer("relu", "f16"), options) is None
    assert quantising_store(Layer("empty", "copy", ()), options) is None

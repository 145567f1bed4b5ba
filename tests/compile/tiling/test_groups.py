"""Layers that run together tile by tile: the same numbers, whichever groups are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.compile import pipeline
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.estimate.bounds import model_bounds
from nacre.compile.estimate.text import estimate_text
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.placement.stage import Placement
from nacre.compile.target import target_of
from nacre.compile.tiling import depth_first, fusing
from nacre.compile.tiling.depth_first import _Run
from nacre.compile.tiling.stage import Tilings
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.run.timing.profile import timing_profile
from tests.compile.models import inputs_of, require_any_order, values
from tests.compile.tiling.test_tiling_strips import require_right
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

Step = tuple[str, int, int, bool]  # what, channels, stride, an activation


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group of products that has a form is made, however long it takes."""
    group_always(monkeypatch)
    monkeypatch.setattr(fusing, "fuses_transpose", lambda *_: False)


def group_always(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pipeline._place_tiles

    def preferring(layers: Partition, options: Options) -> tuple[Partition, Tilings, Placement]:
        layers, tilings, placement = own(layers, options)
        is_grouped = any(layer.members for layer in layers.layers)
        return (
            layers,
            replace(tilings, cycles_of=(-1.0 if is_grouped else 0.0,), weights=0.0),
            placement,
        )

    monkeypatch.setattr(pipeline, "_place_tiles", preferring)
    monkeypatch.setattr(depth_first, "_GAIN", float("inf"))
    monkeypatch.setattr(depth_first, "_best", longest)
    monkeypatch.setattr(depth_first._GroupSearch, "_overflows_l2", lambda *_: False)


def longest(runs: Sequence[Sequence[_Run]]) -> list[_Run]:
    """Every run as long as it has a form, whatever that takes."""
    found, at = list[_Run](), 0
    while at < len(runs):
        found.append(runs[at][-1])
        at += len(runs[at])
    return found


def network(x: tuple[int, ...], steps: list[Step], *, residual: bool = False) -> Module:
    """Convolutions one after the other: `1x1`, `3x3`, or `deep` for one of each channel."""
    builder = Builder()
    made = builder.input("x", "f32", x)
    for seed, (kind, channels, stride, has_activation) in enumerate(steps):
        before, cin = made, builder.type_of(made).shape[1]
        size = 1 if kind == "1x1" else 3
        channels = cin if kind == "deep" else channels
        shape = (channels, 1 if kind == "deep" else cin, size, size)
        weights = builder.constant(values(shape, seed, float(np.prod(shape[1:])) ** -0.5))
        made = builder.add(
            "Conv", made, weights, builder.constant(values((channels,), seed + 50)),
            pads=(size // 2,) * 4, strides=(stride, stride), groups=cin if kind == "deep" else 1,
        )  # fmt: skip
        if has_activation:
            made = builder.add("ReluNan", made)
        if residual and builder.type_of(made).shape == builder.type_of(before).shape:
            made = builder.add("BinOp", made, before, op="Add")
    return builder.module(made)


def members(bundle: CompiledModel) -> list[int]:
    """How many layers each group has, without transpositions at the border."""
    groups = (layer.members for layer in bundle.manifest.layers if layer.members)
    counts = (sum(not is_turn(name) for name in names) for names in groups)
    return [count for count in counts if count > 1]


def is_turn(name: str) -> bool:
    """Whether a layer is a transposition."""
    return name.startswith("transpose")


CASES: dict[str, tuple[tuple[int, ...], list[Step], list[int]]] = {
    "a product behind a window": (
        (1, 4, 12, 10), [("3x3", 8, 1, True), ("1x1", 6, 1, True)], [2],
    ),
    "products behind products": (
        (1, 8, 9, 7), [("1x1", 16, 1, True), ("1x1", 4, 1, True), ("1x1", 6, 1, False)], [3],
    ),
    "a product before a window": (
        (1, 4, 12, 10), [("1x1", 8, 1, True), ("3x3", 6, 1, True)], [2],
    ),
    "an inverted residual": (
        (1, 6, 12, 10), [("1x1", 24, 1, True), ("deep", 0, 1, True), ("1x1", 6, 1, False)], [3],
    ),
    "with strides": (
        (1, 6, 13, 11), [("1x1", 24, 1, True), ("deep", 0, 2, True), ("1x1", 6, 1, False)], [3],
    ),
    "of several pictures": (
        (3, 6, 12, 10), [("1x1", 12, 1, True), ("deep", 0, 2, True), ("1x1", 8, 1, False)], [3],
    ),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_groups_compute_what_their_layers_do(name: str, precision: str) -> None:
    x, steps, wanted = CASES[name]
    bundle = require_right(network(x, steps), precision)
    assert members(bundle) == wanted


@pytest.mark.usefixtures("always")
def test_a_group_in_f32_adds_its_biases_apart() -> None:
    x, steps, wanted = CASES["an inverted residual"]
    bundle = require_right(network(x, steps), "f32", "nem_reference")
    assert members(bundle) == wanted


@pytest.mark.usefixtures("always")
def test_what_others_read_too_is_stored() -> None:
    module = network((1, 8, 10, 10), [("3x3", 8, 1, True), ("1x1", 8, 1, True)], residual=True)
    bundle = require_right(module, "f16")
    assert members(bundle) == []  # the sum reads what the first layer makes


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["1x1", "3x3", "deep"]),
        st.sampled_from([3, 4, 8]),
        st.sampled_from([1, 1, 2]),
        st.booleans(),
    ),
    min_size=2,
    max_size=4,
)


@settings(max_examples=scaled(40) // 4)
@given(_STEPS, st.integers(1, 2), st.integers(5, 12), st.sampled_from(["f16", "i8"]))
def test_random_chains(steps: list[Step], pictures: int, size: int, precision: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        group_always(monkeypatch)
        require_right(network((pictures, 4, size, size), steps), precision)


@pytest.mark.usefixtures("always")
def test_any_schedule_of_a_group_gives_the_same_bytes() -> None:
    x, steps, _ = CASES["an inverted residual"]
    module = network(x, steps)
    require_any_order(require_right(module, "f16"), inputs_of(module), 20)


def test_groups_are_made_where_they_save_time() -> None:
    """Planes that no L1 holds: what lies between need not travel."""
    steps: list[Step] = [("3x3", 16, 1, True), ("1x1", 16, 1, True)]
    module, target = network((1, 16, 160, 160), steps), target_of("npm4k")
    cycles = []
    for disabled in (frozenset[str](), frozenset({"groups"})):
        options = Options(target.device, "f16", disabled=disabled)
        bundle = pipeline.compile_module(module, target, options)
        assert members(bundle) == ([] if disabled else [2])
        cycles.append(bundle.time().cycles)
    assert cycles[0] < 0.95 * cycles[1]


def test_a_product_goes_with_the_neighbour_that_saves_more() -> None:
    """The window behind it halves the rows of four times as many channels."""
    steps: list[Step] = [("deep", 0, 1, True), ("1x1", 64, 1, True), ("deep", 0, 2, True)]
    module, target = network((1, 16, 160, 160), steps), target_of("npm4k")
    made = pipeline.run_stages(module, target, Options(target.device, "f16"))
    first, second, third = (layer.name for layer in made.partition.layers if layer.macs)
    groups = [tuple(name for name in layer.members if not is_turn(name))
              for layer in made.cut.layers if layer.macs]  # fmt: skip
    assert groups[-1] == (second, third)
    assert groups[0] in ((), (first,))
    assert first not in (second, third)


def ways(count: int, lengths: Sequence[int], at: int = 0) -> Iterator[list[tuple[int, int]]]:
    """Every way to cover layers by runs of at most the lengths that begin there."""
    if at == count:
        yield []
    for length in range(1, lengths[at] + 1) if at < count else ():
        for rest in ways(count, lengths, at + length):
            yield [(at, length), *rest]


@given(st.data())
def test_no_other_way_to_group_saves_more(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    lengths = [data.draw(st.integers(1, min(3, count - at))) for at in range(count)]
    saved = {
        (at, n): float(data.draw(st.integers(-5, 20))) if n > 1 else 0.0
        for at in range(count)
        for n in range(1, lengths[at] + 1)
    }
    layers = {key: object() for key in saved}
    runs = [
        [_Run(cast("Layer", layers[at, n]), saved[at, n], {}) for n in range(1, lengths[at] + 1)]
        for at in range(count)
    ]
    found = depth_first._best(runs)
    covers = [[layers[key] for key in way] for way in ways(count, lengths)]
    assert [run.layer for run in found] in covers
    most = max(sum(saved[key] for key in way) for way in ways(count, lengths))
    assert sum(run.saved for run in found) == most


def test_bounds_do_not_depend_on_groups() -> None:
    steps: list[Step] = [("3x3", 16, 1, True), ("1x1", 16, 1, True)]
    module, target = network((1, 16, 160, 160), steps), target_of("npm4k")
    made = pipeline.run_stages(module, target, Options(target.device, "f16"))
    (names,) = (layer.members for layer in made.cut.layers if layer.members)
    bounds = model_bounds(
        made.legal.module, made.partition.layers, target.device, timing_profile(target.device)
    )
    assert [bound.name for bound in bounds.layers] == [x.name for x in made.partition.layers]
    estimate = nacre.estimate(module, "npm4k")
    assert estimate.plan is not None
    (group,) = (row for row in estimate.plan.layers if row.macs)
    assert group.bound is not None
    assert group.macs == group.bound.macs == sum(bound.macs for bound in bounds.layers)
    assert group.members == names
    shown = estimate_text("net.core", {"npm4k": estimate})
    assert f"{group.name} runs {', '.join(group.members)} depth first" in shown

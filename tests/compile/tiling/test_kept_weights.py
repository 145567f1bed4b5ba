"""Weights that layers keep for each other in L1: the same numbers, apart from all else, and faster.

The tiny device has 16 KiB of L1 in each of two engines, which share out columns: of square weights
in f16 it can keep all of 104 columns, npm4k with its 1 MiB a part of 1,024.
"""

from __future__ import annotations

import re
from importlib import import_module
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.pipeline import Compiled, compile_module, run_stages
from nacre.compile.target import target_of
from nacre.compile.tiling.residency import lifetimes
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, require_any_order, values
from tests.compile.placement.test_staging import recurrence
from tests.compile.test_random_graphs import examples
from tests.compile.tiling.test_tiling_strips import TINY, require_right

pytestmark = pytest.mark.sampled(2)  # together they take long

CELLS = ("after each other", "by turns")


def two_recurrences(sizes: tuple[int, int], rows: int, steps: int, order: str) -> Module:
    """Two cells behind wide products, whose steps come after each other or by turns."""
    builder = Builder()
    given = [builder.input(f"x{number}", "f32", (rows, 200)) for number in range(2)]
    states, weights = [], []
    for number, (x, size) in enumerate(zip(given, sizes, strict=True)):
        wide = builder.constant(values((size, 200), number, 0.07))
        states.append(builder.add("Linear", x, wide))
        weights.append(builder.constant(values((size, size), 5 + number, size**-0.5)))
    turns = [0] * steps + [1] * steps if order == CELLS[0] else [0, 1] * steps
    for cell in turns:
        product = builder.add("Linear", states[cell], weights[cell])
        total = builder.add("BinOp", product, states[cell], op="Add")
        states[cell] = builder.add("Unary", total, op="Tanh")
    return builder.module(*states)


def stages(module: Module, device: str = str(TINY)) -> Compiled:
    target = target_of(device)
    return run_stages(module, target, Options(target.device, "f16"))


def kept_layers(made: Compiled) -> list[Layer]:
    return [x for x in made.cut.layers if x.packed is not None and x.packed.stays]


@pytest.mark.heavy("compiles a recurrent network")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("precision", ["f16", "i8", "f32"])
@pytest.mark.parametrize("size", [48, 72, 80, 97, 160])
def test_a_recurrence_is_right(size: int, precision: str) -> None:
    device = TINY if precision != "f32" else "nem_reference"
    require_right(recurrence(size), precision, device)


@pytest.mark.full
def test_all_columns_stay_where_they_fit_and_else_some_of_them() -> None:
    small = stages(recurrence(72))
    assert {x.columns for x in kept_layers(small)} == {72}
    bringer = kept_layers(small)[0].name
    taken = small.tilings.resident.begin(kept_layers(small)[0])
    assert small.tilings.describe(small.cut).endswith(f"weights of {bringer}, {taken} bytes\n")
    made = stages(recurrence(1024, 1), "npm4k")
    (kept,) = {x.columns for x in kept_layers(made)}
    parts = [x for x in made.cut.layers if x.part_of]
    assert 256 <= kept < 512
    assert {x.columns for x in parts} == {kept, 1024 - kept}
    assert sum(x.macs for x in parts) == sum(x.macs for x in made.partition.layers)


def test_what_stays_is_brought_once() -> None:
    bundle = require_right(recurrence(72), "f16")
    loads = re.findall(r"= transfer[^)]*region\(weights, \d+, (\d+)\)", bundle.program)
    assert sum(map(int, loads)) < 1.1 * len(bundle.weights)


@pytest.mark.parametrize(("size", "columns"), [(72, 48), (104, 64)])
def test_each_engine_keeps_some_columns(size: int, columns: int) -> None:
    made = stages(recurrence(size))
    tilings = dict(zip(made.cut.layers, made.tilings.layers, strict=True))
    assert kept_layers(made)
    for layer in kept_layers(made):
        assert (tilings[layer].columns, tilings[layer].abreast) == (columns, 2)
        assert tilings[layer].engines == 2
    brought = re.findall(r"transfer[^)]*region\((tiles_L1\w*), \d+, (\d+)\)", made.text)
    least = 2 * size * columns  # bytes of f16
    assert {buffer for buffer, count in brought if int(count) >= least} == {"tiles_L1"}
    assert {buffer for buffer, _ in brought} == {"tiles_L1", "tiles_L1_1"}


@pytest.mark.full
def test_any_schedule_gives_the_same_bytes() -> None:
    module = two_recurrences((96, 72), 2, 4, CELLS[1])
    require_any_order(require_right(module), inputs_of(module), 20)


@pytest.mark.full
@examples(0.1)
@given(
    st.tuples(st.integers(16, 150), st.integers(16, 150)),
    st.integers(1, 3),
    st.integers(3, 5),
    st.sampled_from(CELLS),
)
def test_what_stays_lies_apart_from_all_that_runs(
    sizes: tuple[int, int], rows: int, steps: int, order: str
) -> None:
    module = two_recurrences(sizes, rows, steps, order)
    made = stages(module)
    resident, layers = made.tilings.resident, made.cut.layers
    spans = [
        (resident.offsets[t], resident.offsets[t] + made.cut.tensors[t].bytes, *life)
        for t, life in lifetimes(made.cut).items()
        if t in resident.offsets
    ]
    for key, offset in resident.weights.items():
        users = [i for i, x in enumerate(layers) if x.packed and x.packed.key == key]
        packed = layers[users[0]].packed
        assert packed is not None
        size = packed.block_bytes(made.tilings.layers[users[0]].columns)
        spans.append((offset, offset + size, users[0], users[-1]))
    for (a, b, first, last), (c, d, begun, over) in combinations(spans, 2):
        assert b <= c or d <= a or last < begun or over < first
    for index, layer in enumerate(layers):
        layout = made.placement.l1_layouts.get(layer.name)
        for begin, end, first, last in spans:
            # A layer's first loads come while the one before it runs.
            if layout is not None and first <= index <= last + 1:
                assert end <= layout.start or layout.end <= begin
    require_right(module)


@pytest.mark.full
@pytest.mark.parametrize(
    ("size", "device", "most"), [(512, "npm4k", 0.3), (1024, "npm4k", 0.8), (704, "npm16k", 0.5)]
)
def test_what_stays_saves_time(
    size: int, device: str, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, target = recurrence(size, 1), target_of(device)
    options = Options(target.device, "f16")
    kept = compile_module(module, target, options).time().cycles
    monkeypatch.setattr(import_module("nacre.compile.pipeline"), "PARTS", ())
    assert kept < most * compile_module(module, target, options).time().cycles


@pytest.mark.full
def test_the_table_of_layers_has_the_whole_ones() -> None:
    named = [layer.name for layer in nacre.estimate(recurrence(1024, 1), "npm4k").layers]
    assert len(named) == len(set(named))
    assert not [name for name in named if name.endswith(("n0", "n1"))]


@pytest.mark.parametrize("order", CELLS)
def test_tiles_begin_behind_all_that_is_there(order: str) -> None:
    """Also while the layer before runs: a layer's first loads come then."""
    made = stages(two_recurrences((60, 40), 1, 3, order))
    layers, resident = made.cut.layers, made.tilings.resident
    users: dict[tuple[int, ...], list[int]] = {}
    for index, layer in enumerate(layers):
        if layer.packed is not None and layer.packed.key in resident.weights:
            users.setdefault(layer.packed.key, []).append(index)
    computing = [index for index, layer in enumerate(layers) if layer.main != "copy"]
    kept, all_spans = [], []
    for key, found in users.items():
        packed = layers[found[0]].packed
        assert packed is not None
        begin = resident.weights[key]
        size = packed.block_bytes(made.tilings.layers[found[0]].columns)
        first = max((i for i in computing if i < found[0]), default=0)
        span = (begin + -(-size // 64) * 64, first, found[-1])
        all_spans.append(span)
        kept += [span] if packed.stays else []
    all_spans += [
        (resident.offsets[t] + -(-made.cut.tensors[t].bytes // 64) * 64, *life)
        for t, life in lifetimes(made.cut).items()
        if t in resident.offsets
    ]
    expected, before = {}, 0
    for index in computing:
        if any(first <= index and last >= before for _, first, last in kept):
            there = [end for end, first, last in all_spans if first <= index and last >= before]
            expected[layers[index].name] = max(there)
        before = index
    assert kept
    assert resident.begins == expected

"""Layers of several engines: rows and columns at once, and loads that all their DMAs bring."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.compile.options import Options
from nacre.compile.partition.views import dense, reach
from nacre.compile.pipeline import compile_module, run_stages
from nacre.compile.program import Affine, Region
from nacre.compile.schedule.load_parts import cut_region
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, require_any_order, values
from tests.compile.tiling.test_tiling_strips import require_right

pytestmark = pytest.mark.sampled(2)  # together they take long


def windows(size: int = 20, channels: int = 64) -> Module:
    """Three convolutions one after the other: weights of 72 kB, 20 rows for eight engines."""
    builder = Builder("core-v1")
    x = builder.input("image", "f32", (1, size, size, channels))
    for seed in range(3):
        weights = builder.constant(values((3, 3, channels, channels), seed, 0.05))
        x = builder.add("Conv2d", x, weights, strides=(1, 1), padding="Same")
    return builder.module(x)


def mean_of_planes(height: int = 72, channels: int = 80) -> Module:
    """Means of planes that a product has made, so that they lie on chip."""
    builder = Builder()
    x = builder.input("x", "f32", (1, channels, height, height))
    made = builder.add("Conv", x, builder.constant(values((channels, channels, 1, 1), 1, 0.2)))
    return builder.module(builder.add("AvgPool", made, kernel=(height, height), strides=(1, 1)))


def lookup(rows: int, of: int) -> Module:
    """Rows of a table, by number."""
    builder = Builder()
    numbers = builder.input("numbers", "i32", (rows,))
    table = builder.constant(values((of, 64), 3))
    return builder.module(builder.add("Gather", table, numbers))


def cycles(module: Module) -> int:
    target = target_of("npm64k")
    return compile_module(module, target, Options(target.device, "f16")).time().cycles


def test_engines_share_out_rows_and_columns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module, target = windows(), target_of("npm64k")
    made = run_stages(module, target, Options(target.device, "f16"))
    tiling = made.tilings.layers[1]
    assert tiling.abreast > 1
    assert tiling.row_engines > 1
    assert f"engines: {tiling.row_engines} by rows, {tiling.abreast} by columns" in str(tiling)
    both = cycles(module)
    candidates = import_module("nacre.compile.tiling.candidates")
    candidates.cheapest_tiling.cache_clear()
    monkeypatch.setattr(candidates, "_most_abreast", lambda problem: [1, problem.machine.engines])
    one = cycles(module)
    candidates.cheapest_tiling.cache_clear()
    assert both < one


def test_what_is_shared_out_both_ways_is_right_in_any_order() -> None:
    module = windows(12, 48)
    bundle = require_right(module, "f16", "npm64k")
    assert re.search(r"engines: \d by rows, \d by columns", bundle.program)
    require_any_order(bundle, inputs_of(module), 3)


def test_one_large_load_takes_all_dmas(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mean_of_planes()
    parts = cycles(module)
    bundle = nacre.compile(module, "npm64k")
    assert bundle.validate(inputs_of(module)).first_difference is None
    assert re.search(r"avgpool_\d+_x\w*p3 = transfer", bundle.program)
    monkeypatch.setattr(import_module("nacre.compile.schedule.load_parts"), "LEAST_LOAD", 1 << 40)
    assert parts < 0.9 * cycles(module)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(2, 4),
    st.booleans(),
)
def test_parts_of_a_load_are_all_of_it_once(
    lengths: list[int], gaps: list[int], count: int, is_dense: bool
) -> None:
    """Where every element goes, part by part, beside where it goes in one load."""
    shape = tuple(lengths)
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1] + (0 if is_dense else gaps[axis])
    size = 2 * reach(shape, tuple(strides))
    src = Region("from", Affine(64), size, "f16", shape, strides=tuple(strides))
    dst = Region("to", Affine(128), 2 * int(np.prod(shape)), "f16", shape, "ABCD"[: len(shape)])
    found = [pair for part in cut_region(dst, src, count) for pair in moved(*part)]
    assert len(found) == len(set(found))
    assert set(found) == set(moved(dst, src))
    ends = [(p.offset.constant, p.offset.constant + p.size) for p, _ in cut_region(dst, src, count)]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def moved(dst: Region, src: Region) -> list[tuple[int, int]]:
    """Bytes where each element goes and where it comes from."""
    places = list(product(*map(range, src.shape)))
    sides = []
    for side in (dst, src):
        strides = side.strides or dense(side.shape)
        sides.append(
            [
                side.offset.constant + 2 * sum(n * s for n, s in zip(at, strides, strict=True))
                for at in places
            ]
        )
    return list(zip(*sides, strict=True))


@pytest.mark.parametrize(("of", "buffer"), [(64, "tensors_L2"), (4096, "weights")])
def test_tables_come_to_l2_that_are_smaller_than_what_is_taken(of: int, buffer: str) -> None:
    module = lookup(256, of)
    bundle = nacre.compile(module, "npm64k")
    taken = {"numbers": (np.arange(256) * 7 % of).astype(np.int32)}
    assert bundle.validate(taken).first_difference is None
    tables = re.findall(r"let gather_\w+_T\w+ = region\((\w+),", bundle.program)
    assert set(tables) == {buffer}

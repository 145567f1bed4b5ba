"""Convolutions of several groups, cut into some groups each where the whole is too large."""

from __future__ import annotations

import numpy as np
import pytest

from nacre import core
from nacre.compile.partition.layers import Layer
from nacre.compile.tiling import strips
from nacre.compile.tiling.layer_parts import split_by_groups
from nacre.core.module import Module
from tests.compile.tiling.test_tiling_strips import require_right


def grouped(groups: int, each: int, depth: int) -> Module:
    rng = np.random.default_rng(groups)
    builder = core.Builder("nacre-1")
    x = builder.input("x", "f32", (1, groups * depth, 6, 6))
    weights = rng.normal(size=(groups * each, depth, 3, 3)).astype(np.float32)
    bias = builder.constant(rng.normal(size=groups * each).astype(np.float32))
    weight = builder.constant(weights)
    made = builder.add("Conv", x, weight, bias, pads=(1, 1, 1, 1), groups=groups)
    return builder.module(made)


@pytest.mark.parametrize(("groups", "each", "depth"), [(4, 24, 16), (3, 32, 20), (6, 12, 18)])
def test_parts_of_groups_compute_what_the_whole_does(
    groups: int, each: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []

    def noted(layer: Layer, count: int) -> list[Layer] | None:
        made = split_by_groups(layer, count)
        parts.append(len(made or ()))
        return made

    monkeypatch.setattr(strips, "split_by_groups", noted)
    module = grouped(groups, each, depth)
    require_right(module)  # the bits of the legalised module
    assert max(parts) > 1

"""Transpositions in the tiles of their neighbours: the same bytes, in less time."""

from __future__ import annotations

import pytest

import nacre
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.target import target_of
from tests.compile.models import inputs_of, require_any_order
from tests.compile.tiling.test_groups import Step, group_always, is_turn, network
from tests.compile.tiling.test_tiling_strips import require_right

pytestmark = pytest.mark.sampled(2)  # together they take long

CASES: dict[str, tuple[tuple[int, ...], list[Step]]] = {
    "a window": ((1, 4, 12, 10), [("3x3", 8, 1, True)]),
    "a window with strides": ((1, 3, 15, 13), [("3x3", 8, 2, False)]),
    "a window of each channel": ((1, 6, 12, 10), [("deep", 0, 1, True)]),
    "a window of one row": ((2, 4, 1, 10), [("3x3", 8, 1, True)]),
    "a product": ((1, 8, 9, 7), [("1x1", 16, 1, True)]),
    "several pictures": ((3, 6, 12, 10), [("3x3", 8, 1, True)]),
    "products behind products": ((1, 8, 9, 7), [("1x1", 16, 1, True), ("1x1", 4, 1, True)]),
}


@pytest.mark.parametrize("device", ["npm4k", "npm64k"])
@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(6)
def test_groups_with_transpositions_compute_what_their_layers_do(
    name: str, precision: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_always(monkeypatch)
    bundle = require_right(network(*CASES[name]), precision, device)
    (group,) = (layer.members for layer in bundle.manifest.layers if layer.members)
    assert is_turn(group[0]) or is_turn(group[-1])


def test_any_schedule_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    group_always(monkeypatch)
    module = network(*CASES["a window"])
    require_any_order(require_right(module, "f16"), inputs_of(module), 20)


@pytest.mark.parametrize(
    ("steps", "size", "gain"),
    [([("3x3", 64, 1, True)], 56, 0.75), ([("1x1", 256, 1, True)], 56, 0.85)],
)
def test_the_border_overlaps_with_the_only_layer(steps: list[Step], size: int, gain: float) -> None:
    module, target = network((1, 64, size, size), steps), target_of("npm4k")
    calibration = [inputs_of(module)]
    cycles = []
    for disabled in (frozenset[str](), frozenset({"groups"})):
        options = Options(target.device, "i8", calibration=calibration, disabled=disabled)
        cycles.append(compile_module(module, target, options).time().cycles)
    assert cycles[0] < gain * cycles[1]


def test_no_bound_counts_what_a_group_saves() -> None:
    module = network((1, 64, 56, 56), [("3x3", 64, 1, True)])
    found = nacre.estimate(module, "npm4k", "i8", calibration=[inputs_of(module)])
    assert found.over_whole_bound is not None
    assert 1.0 <= found.over_whole_bound < 1.2

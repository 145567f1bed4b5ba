"""Layers beside other models of time: nacre's side of it, and what is said where none is."""

from __future__ import annotations

import sys

import pytest

from benchmarks import peers_time
from benchmarks.peers_time import LAYERS, PEERS, Layer, own_cycles, python_with

SIXTEEN = 16


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_square_array_pads_channels_and_depth(layer: Layer) -> None:
    """As ZigZag's loops have it: folds of channels by folds of depth, for every place and tap."""
    depth = 1 if layer.depthwise else layer.in_c
    folds = -(-layer.out_c // SIXTEEN) * -(-depth // SIXTEEN)
    steps = folds * layer.out_h * layer.out_w * layer.kernel**2
    zigzag, scale_sim, _ = PEERS
    assert own_cycles(layer, zigzag.figures) == steps
    weights = layer.kernel**2 * depth * layer.out_c
    assert own_cycles(layer, scale_sim.figures) == steps + -(-weights // 6)
    assert layer.macs <= 256 * steps


def test_a_python_without_the_package_is_passed_over() -> None:
    assert python_with("no_such_package_anywhere", [sys.executable]) is None
    assert python_with("json", ["no-such-python", sys.executable]) == sys.executable


def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["peers_time", "--peers", "no-such-python"])
    assert peers_time.main() == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert [line for line in told.err.splitlines() if line] == [
        f"{peer.name}: no Python of --peers has `{peer.package}`" for peer in PEERS
    ]

"""Tiles of a layer fill the array: what a tile has too much of places costs time."""

from __future__ import annotations

from dataclasses import replace

import nacre
from nacre.compile.target import target_of
from nacre.core.module import Module
from nacre.nem.model.devices import Device
from tests.compile.models import convolution_model, linear_model

LATENCY = 50
ROWS = 8  # that are computed together
FIGURES = {"latency": LATENCY, "fp16_macs": 1024, "tile_width": 8, "tile_height": ROWS}


def array_of(height: int) -> Device:
    """An array that computes rows together, beside memory in which no layer is whole."""
    device = target_of("hexagon_v79").device
    assert device.topology is not None
    known = {unit: dict(given) for unit, given in device.characteristics.items()}
    known["NMU"] |= {**FIGURES, "tile_height": height}
    known["sDMA"] |= {"bandwidth": 1024}  # products are what takes time
    small = replace(device.topology, l1_size_bytes=192 * 1024)
    return replace(device, characteristics=known, topology=small)


def convolution() -> Module:
    return convolution_model((1, 56, 56, 32), (3, 3, 32, 32))


def products(model: Module, height: int) -> list[int]:
    """Cycles of each task of an array of eight rows, without latency, as planned for others."""
    timed = nacre.compile(model, array_of(height), "f16").time({"NMU": FIGURES})
    lengths = [task["end"] - task["start"] for task in timed.tasks if "NMU" in task["unit"]]
    return [length - LATENCY for length in lengths]


def test_rows_of_tiles_are_those_of_the_array() -> None:
    found = products(convolution(), ROWS)
    assert len(found) > 1
    assert sum(found) == 56 * 56 * 32 * 9 * 32 // 1024  # seven times 8 rows and places


def test_a_plan_that_knows_no_array_wastes_rows_of_it() -> None:
    assert sum(products(convolution(), 0)) > sum(products(convolution(), ROWS))


def test_products_without_windows_fill_tiles_with_any_rows() -> None:
    assert sum(products(linear_model(256, 64, 96), ROWS)) == 256 * 64 * 96 // 1024

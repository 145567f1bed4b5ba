"""What a plan depends on of a device, and what changes its times alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

import nacre
from nacre.compile.plan_digest import TIMES_ALONE, plan_digest
from nacre.compile.target import target_of
from nacre.core import Builder
from nacre.core.module import Module
from nacre.nem.model.devices import Device
from nacre.nem.spec.figures import PARAMETERS
from tests.compile.models import values

NAMES = {(one.unit, one.key) for one in PARAMETERS}


def with_figures(device: Device, figures: Mapping[tuple[str, str], int]) -> Device:
    known = {unit: dict(given) for unit, given in device.characteristics.items()}
    for (unit, key), value in figures.items():
        known.setdefault(unit, {})[key] = value
    return replace(device, characteristics=known)


def model() -> Module:
    """Windows, a window of each channel, a product, functions and a norm."""
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 16, 30, 30))
    wide = builder.constant(values((32, 16, 3, 3), 1, 0.1))
    y = builder.add("Conv", x, wide, pads=[1, 1, 1, 1])
    own = builder.constant(values((32, 1, 3, 3), 2, 0.3))
    y = builder.add("Conv", builder.add("Relu", y), own, pads=[1, 1, 1, 1], groups=32)
    y = builder.add("Reshape", builder.add("Silu", y), new_shape=[32, 900])
    y = builder.add("MatMul", y, builder.constant(values((900, 96), 3, 0.03)))
    return builder.module(builder.add("Softmax", y, axis=-1))


def plan_text(device: Device) -> str:
    """A program without its device."""
    program = nacre.compile(model(), device, "f16").program
    return program[program.index("\nprogram ") :]


def test_figures_of_times_alone_exist() -> None:
    assert TIMES_ALONE <= NAMES


@pytest.mark.parametrize("factor", [3, 29])
def test_times_alone_change_no_plan(factor: int) -> None:
    device = target_of("hexagon_v79").device
    known = device.characteristics
    figures = {
        (unit, key): factor * known.get(unit, {}).get(key, 7) for unit, key in sorted(TIMES_ALONE)
    }
    other = with_figures(device, figures)
    assert plan_digest(other) == plan_digest(device)
    assert plan_text(other) == plan_text(device)


@pytest.mark.parametrize(("unit", "key"), sorted(NAMES - TIMES_ALONE))
def test_whatever_else_may_change_a_plan_has_another_digest(unit: str, key: str) -> None:
    device = target_of("hexagon_v79").device
    assert plan_digest(with_figures(device, {(unit, key): 77})) != plan_digest(device)


def test_memory_and_operations_belong_to_the_digest_and_names_do_not() -> None:
    device = target_of("hexagon_v79").device
    assert device.topology is not None
    smaller = replace(device.topology, l1_size_bytes=1 << 18)
    assert plan_digest(replace(device, topology=smaller)) != plan_digest(device)
    assert plan_digest(replace(device, extended=())) != plan_digest(device)
    assert plan_digest(replace(device, name="other")) == plan_digest(device)

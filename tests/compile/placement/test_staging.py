"""Weights of several layers: stored once, brought to L2 once, and the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, require_any_order, values
from tests.compile.tiling.test_tiling_strips import TINY, require_right

pytestmark = pytest.mark.sampled(2)  # together they take long

STEPS = 6


def recurrence(size: int, rows: int = 2) -> Module:
    """A state that the same weights go over, step by step."""
    builder = Builder()
    x = builder.input("x", "f32", (STEPS, rows, size))
    state = builder.input("h", "f32", (rows, size))
    weights = builder.constant(values((size, size), 1, size**-0.5))
    bias = builder.constant(values((size,), 2, 0.1))
    for at in range(STEPS):
        part = builder.add(
            "Slice", x, starts=(at, 0, 0), ends=(at + 1, rows, size), steps=(1, 1, 1)
        )
        given = builder.add("Reshape", part, new_shape=(rows, size))
        product = builder.add("Linear", state, weights, bias)
        total = builder.add("BinOp", product, given, op="Add")
        state = builder.add("Unary", total, op="Tanh")
    return builder.module(state)


def brought(bundle: CompiledModel) -> list[str]:
    """Tokens of the transfers that take weights to L2."""
    return re.findall(r"^(\w+_g\d+) = transfer", bundle.program, re.MULTILINE)


@pytest.mark.heavy("compiles a recurrent network")
@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_a_recurrence_has_its_weights_once(precision: str) -> None:
    size = 200 if precision == "i8" else 136  # more than the L1 of both engines keeps
    bundle = require_right(recurrence(size), precision)
    bytes_each = 1 if precision == "i8" else 2
    # Layers that cut them in two ways have them twice; six steps would have them six times.
    assert len(bundle.weights) < 2.5 * size * (size * bytes_each + 4)
    assert brought(bundle)
    assert len(set(brought(bundle))) == len(brought(bundle))


@pytest.mark.full
def test_any_schedule_gives_the_same_bytes() -> None:
    module = recurrence(72)
    require_any_order(require_right(module, "f16"), inputs_of(module), 20)


@pytest.mark.full
def test_weights_in_l2_save_time() -> None:
    module, target = recurrence(1024, 1), target_of("npm4k")
    cycles = []
    for disabled in (frozenset[str](), frozenset({"residency"})):
        options = Options(target.device, "f16", disabled=disabled)
        bundle = compile_module(module, target, options)
        assert bool(brought(bundle)) == (not disabled)
        cycles.append(bundle.time().cycles)
    assert cycles[0] < 0.8 * cycles[1]


@pytest.mark.heavy("compiles networks")
def test_a_device_without_room_loads_them_each_time() -> None:
    bundle = require_right(recurrence(160), "f16", TINY)  # 51 kB, and an L2 of 16 kB
    taken = sum(
        int(size) for size in re.findall(r"_g\d+ = transfer[^)]*region\(tensors_L2, \d+, (\d+)\)",
                                         bundle.program)
    )  # fmt: skip
    assert taken <= 16384
    outputs = bundle.run(inputs_of(recurrence(160)))
    assert all(np.isfinite(array).all() for array in outputs.values())

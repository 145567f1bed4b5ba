"""Weights that travel to L2 early: once for all engines, where there is room, the same numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import nacre
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.program import Affine, Arrived, Copy, Loop, Region, Statement, Wait
from nacre.compile.schedule.tokens import insert_waits
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nem.model.devices import Device
from tests.compile.models import inputs_of, require_any_order, values
from tests.compile.tiling.test_tiling_strips import TINY, require_right

pytestmark = pytest.mark.sampled(2)  # together they take long

SIZE = 96


def stack(layers: int = 5, rows: int = 64, size: int = SIZE) -> Module:
    """Products one after the other, each with a norm behind it, whose factors are constants."""
    builder = Builder()
    x = builder.input("x", "f32", (rows, size))
    for at in range(layers):
        weights = builder.constant(values((size, size), at, size**-0.5))
        made = builder.add("Linear", x, weights, builder.constant(values((size,), at + 50)))
        gamma, beta = (builder.constant(values((size,), at + seed)) for seed in (20, 30))
        x = builder.add("LayerNorm", made, gamma, beta, axis=-1, epsilon=1e-5)
    return builder.module(x)


def brought(bundle: CompiledModel, source: str = "weights") -> int:
    """Bytes that leave DDR's weights, by the program's text; loops have none of these tasks."""
    taken = re.findall(rf"src=region\({source}, \d+, (\d+)\)", bundle.program)
    return sum(map(int, taken))


def test_weights_leave_ddr_once_however_many_engines_want_them() -> None:
    bundle = nacre.compile(stack(rows=512), "npm64k")
    assert re.search(r"engines: \d+ by rows", bundle.program)
    total = 5 * (SIZE * SIZE + 3 * SIZE) * 2  # f16
    assert total <= brought(bundle) <= 1.1 * total  # each begins on a boundary of its own


def test_any_order_of_the_tasks_gives_the_same_bytes() -> None:
    module = stack(4, 32, 40)
    bundle = nacre.compile(module, "npm16k")
    assert "_g0" in bundle.program
    assert bundle.validate(inputs_of(module)).ok
    require_any_order(bundle, inputs_of(module), 10)


@pytest.mark.full
def test_a_plan_without_what_runs_ahead_brings_them_to_every_engine() -> None:
    module, target = stack(3, 512), target_of("npm64k")
    bundles = [
        compile_module(module, target, Options(target.device, disabled=frozenset(disabled)))
        for disabled in ((), ("ahead",))
    ]
    assert brought(bundles[0]) < brought(bundles[1])
    assert bundles[0].time().cycles < bundles[1].time().cycles


def test_weights_that_find_no_gap_in_l2_come_as_they_always_did() -> None:
    bundle = require_right(stack(3, 16, 96), "f16", TINY)  # 18 kB each, and an L2 of 16 kB
    assert bundle.manifest.l2_peak <= 16384
    assert brought(bundle) > 0


def test_weights_that_steps_share_travel_for_a_layer_of_the_bundle(tmp_path: Path) -> None:
    """Their layers are cut by columns: the parts are no layers that a manifest knows."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 1024))
    weights = builder.constant(values((1024, 1024), 1, 1024**-0.5))
    for _ in range(3):
        x = builder.add("Relu", builder.add("Linear", x, weights))
    bundle = nacre.compile(builder.module(x), "npm16k")
    assert re.search(r"\w+n0_g\d+ = transfer", bundle.program)
    bundle.save(tmp_path / "steps")
    inputs = {"x": values((1, 1024), 2)}
    reread = nacre.Bundle.load(tmp_path / "steps")
    assert [out.tobytes() for out in reread.run(inputs).values()] == [
        out.tobytes() for out in bundle.run(inputs).values()
    ]


def short_hop(bandwidth: int) -> Device:
    """One engine, a way from L2 of so many bytes a cycle, and one from DDR of 8."""
    device = target_of("npm4k").device
    known = {unit: dict(figures) for unit, figures in device.characteristics.items()}
    known["DMA"] = {**known.get("DMA", {}), "bandwidth": bandwidth}
    known["sDMA"] = {**known.get("sDMA", {}), "bandwidth": 8}
    known["SEQ"] = {**known.get("SEQ", {}), "max_active_tokens": 512}
    known["NMU"] = {**known.get("NMU", {}), "fp16_macs": 64}
    assert device.topology is not None
    topology = replace(device.topology, l1_size_bytes=192 * 1024, l2_size_bytes=1 << 20)
    return replace(device, characteristics=known, topology=topology)


def test_one_engine_with_a_short_hop_brings_weights_layers_ahead() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (64, 64))
    for at in range(3):
        x = builder.add("Linear", x, builder.constant(values((64, 64), at, 0.1)))
    x = builder.add("Reshape", x, new_shape=[4, 1024])
    module = builder.module(builder.add("Linear", x, builder.constant(values((192, 1024), 9))))
    bundle = nacre.compile(module, short_hop(1024))
    assert bundle.validate(inputs_of(module)).ok
    begun = re.findall(r"^linear_(\d+)_(g|w)", bundle.program, re.MULTILINE)
    assert begun.index(("3", "g")) < begun.index(("2", "w"))  # before those of layer 2 are in L1
    # A hop as long as the way from DDR is no gain.
    assert not re.search(r"_g\d+ = ", nacre.compile(module, short_hop(16)).program)


def test_no_task_waits_for_weights_that_only_layers_further_down_need() -> None:
    """A loop rather has fewer iterations in flight."""
    tasks: list[Statement] = [
        Copy(f"early{n}", "transfer", _region("l2", n), _region("data", n), is_early=True)
        for n in range(4)
    ]
    body = Copy("t", "transfer", _region("tiles_L1", 0, ("i", 64)), _region("data", 9, ("i", 64)))
    first, *_, loop = insert_waits([*tasks, Loop("i", 0, 30, 16, (body,))], 16, {"tiles_L1": 0})
    assert first == tasks[0]
    assert isinstance(loop, Loop)
    assert loop.window == 12
    there = Arrived(tuple(task.token for task in tasks if isinstance(task, Copy)))
    *_, wait, loop = insert_waits(
        [*tasks, there, Loop("i", 0, 30, 16, (body,))], 16, {"tiles_L1": 0}
    )
    assert isinstance(wait, Wait)
    assert isinstance(loop, Loop)
    assert loop.window == 16


def _region(buffer: str, number: int, *terms: tuple[str, int]) -> Region:
    return Region(buffer, Affine(64 * number, terms), 64)


def test_weights_of_later_rounds_travel_behind_the_first_tiles() -> None:
    """Of a layer of many blocks: all at once they would hold the tokens of its tiles."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 256))
    weights = builder.constant(values((8192, 256), 1, 0.05))
    bundle = nacre.compile(builder.module(builder.add("Linear", x, weights)), "npm16k")
    text = bundle.program
    rounds = [
        text.index(f"linear_0_g{n} ") for n in range(text.count("_g") // 2) if f"_g{n} " in text
    ]
    tiles = [match.start() for match in re.finditer(r"^linear_0_c\w+ = ", text, re.MULTILINE)]
    assert len(rounds) > 4
    assert rounds[3] > tiles[0]
    assert bundle.validate({"x": values((1, 256), 2)}).ok
    assert bundle.problems == ()

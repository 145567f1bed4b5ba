"""Engines and units of tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from nacre.base.source import Source
from nacre.nem.model.devices import Device, default_device
from nacre.nem.model.program import Task
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.placement import (
    UnitBinding,
    bind_units,
    eligible_units,
    engine_column,
    fixed_engine,
)
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, program_text, read, sketches

HEAD = """
buffer D : DDR (size=64)
buffer E : DDR (size=64)
buffer M : L2 (size=64)
buffer N : L2 (size=64)
buffer P : L1[1] (size=64)
buffer Q : L1[1] (size=64)
let P_c = region(P, 0, 4) elem=f16, shape=[2], layout=C
let Q_c = region(Q, 0, 4) elem=f16, shape=[2], layout=C
let P_mn = region(P, 0, 8) elem=f16, shape=[2, 2], layout=MN
let Q_mn = region(Q, 0, 8) elem=f16, shape=[2, 2], layout=MN
"""


def plan_of(text: str) -> Plan:
    source = Source("program.nem", text)
    parsed = parse(source)
    assert parsed.diagnostics == ()
    return build_plan(resolve(source, parsed.document).program, 100_000)


def only_task(text: str) -> tuple[Task, Plan]:
    plan = plan_of(HEAD + text)
    (task,) = plan.program.tasks
    return task, plan


def device(num_engines: int = 2, **counts: int) -> Device:
    """The default device with other counts; a count of 0 takes the unit away."""
    base = default_device()
    assert base.topology is not None
    engine = {**base.topology.per_engine, **counts}
    per_engine = {u: n for u, n in engine.items() if n and u not in ("sDMA", "WDM")}
    units = {u: counts.get(u, n) for u, n in base.topology.device_units.items()}
    topology = replace(
        base.topology, num_engines=num_engines, per_engine=per_engine, device_units=units
    )
    return replace(base, topology=topology)


def transfer(dst: str, src: str) -> str:
    return f"transfer.async(dst=region({dst}, 0, 4), src=region({src}, 0, 4))"


RELU = "relu.async in P_c out Q_c"
GEMM = "gemm.async in P_mn, P_mn out Q_mn accum_type=f32"


@pytest.mark.parametrize(
    ("text", "units"),
    [
        (transfer("M", "D"), [("sDMA",)]),
        (transfer("D", "M"), [("sDMA",)]),
        (transfer("E", "D"), [("sDMA",)]),
        (transfer("P", "M"), [("DMA",)]),
        (transfer("N", "M"), [("DMA",)]),
        (transfer("P", "Q"), [("DMA",)]),
        (transfer("P", "D"), [("sDMA", "DMA")]),
        ("store.async(dst=region(M, 0, 4), src=region(P, 0, 4))", [("CSTL",)]),
        (RELU, [("CSTL",), ("VPU",)]),
        (GEMM, [("NMU",), ("VPU",)]),
        ("transpose.async in P_mn out Q_mn perm=[1, 0]", [("CSTL",), ("VPU",), ("DMA",)]),
    ],
)
def test_units_follow_the_path_or_the_registry(text: str, units: list[tuple[str, ...]]) -> None:
    task, _ = only_task(text)
    assert eligible_units(task, device()) == tuple(units)


@pytest.mark.parametrize(
    ("text", "missing", "units"),
    [
        (RELU, "CSTL", [("VPU",)]),
        (GEMM, "NMU", [("VPU",)]),
        ("store.async(dst=region(M, 0, 4), src=region(P, 0, 4))", "CSTL", []),
        (transfer("M", "D"), "sDMA", []),
        (transfer("P", "D"), "sDMA", []),
        (transfer("P", "D"), "DMA", []),
    ],
)
def test_only_units_that_the_device_has_count(
    text: str, missing: str, units: list[tuple[str, ...]]
) -> None:
    task, _ = only_task(text)
    assert eligible_units(task, device(**{missing: 0})) == tuple(units)


def bound(text: str, on: Device) -> UnitBinding:
    plan = plan_of(HEAD + text)
    task = next(iter(plan.program.tasks))
    grid = plan.grid_of(task.loops)
    assert grid is not None
    binding = bind_units(task, on, grid)
    assert binding is not None
    return binding


def test_without_a_resource_any_instance_of_the_preferred_unit_will_do() -> None:
    binding = bound(RELU, device())
    assert (binding.units, binding.match, binding.unit) == (("CSTL",), "free", None)


@pytest.mark.parametrize(
    ("index", "match", "expected"), [(0, "exact", 0), (1, "exact", 1), (5, "remapped", 1)]
)
def test_an_index_beyond_the_count_wraps_around(index: int, match: str, expected: int) -> None:
    binding = bound(f"{RELU} @resource(CSTL[{index}])", device(CSTL=2))
    assert (binding.units, binding.match, binding.index) == (("CSTL",), match, expected)


def test_an_index_may_vary_by_iteration() -> None:
    text = f"loop i in [0..4]:\n{RELU} @resource(CSTL[i])\nendloop"
    binding = bound(text, device(CSTL=2))
    assert binding.match == "remapped"
    np.testing.assert_array_equal(binding.index, [0, 1, 0, 1, 0])


@pytest.mark.parametrize("unit", ["NMU[0]", "DMA[1]"])
def test_a_unit_that_cannot_run_the_task_is_translated(unit: str) -> None:
    binding = bound(f"{RELU} @resource({unit})", device())
    assert (binding.units, binding.match, binding.unit) == (("CSTL",), "translated", None)


def test_a_second_choice_may_be_asked_for() -> None:
    binding = bound(f"{RELU} @resource(VPU[0])", device())
    assert (binding.units, binding.match, binding.index) == (("VPU",), "exact", 0)


def test_a_unit_that_the_device_lacks_is_translated() -> None:
    binding = bound(f"{RELU} @resource(VPU[0])", device(VPU=0))
    assert (binding.units, binding.match) == (("CSTL",), "translated")


def test_an_engine_dma_can_be_asked_for_on_the_long_way() -> None:
    binding = bound(f"{transfer('P', 'D')} @resource(DMA[1])", device())
    assert (binding.units, binding.unit, binding.index) == (("sDMA", "DMA"), "DMA", 1)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (transfer("P", "M"), 1),
        (f"{transfer('M', 'D')} @seq_engine(1)", 1),
        (transfer("M", "D"), None),
        (f"{transfer('M', 'D')} @seq_engine(0)", 0),
    ],
)
def test_an_l1_operand_or_seq_engine_fixes_the_engine(text: str, engine: int | None) -> None:
    task, _ = only_task(text)
    assert fixed_engine(task) == engine


def test_tasks_without_a_place_take_turns_in_program_order() -> None:
    plan = plan_of(
        HEAD
        + f"a = {transfer('M', 'D')}\n"
        + f"loop i in [0..2]:\nb = {transfer('M', 'D')}\nc = {transfer('P', 'M')}\n"
        + f"d = {transfer('E', 'M')}\nendloop\ne = {transfer('M', 'D')}\n"
    )
    columns = engine_column(plan, device(num_engines=3))
    by_token = {task.token: columns[task.position] for task in plan.program.tasks}
    assert (by_token["a"], by_token["c"], by_token["e"]) == (0, 1, 1)
    np.testing.assert_array_equal(by_token["b"], [1, 0, 2])
    np.testing.assert_array_equal(by_token["d"], [2, 1, 0])


@given(sketches())
def test_turns_agree_with_counting_instances(items: tuple[Item, ...]) -> None:
    plan = plan_of(program_text(items).replace(": L1 (", ": L2 ("))
    columns = engine_column(plan, device(num_engines=3))
    counted: dict[int, list[int]] = {}
    for number, instance in enumerate(read(items).instances):
        counted.setdefault(instance.position, []).append(number % 3)
    for position, engines in counted.items():
        assert np.atleast_1d(columns[position]).tolist() == engines, program_text(items)


def test_the_engine_may_vary_by_iteration() -> None:
    plan = plan_of(
        HEAD + "loop i in [0..2]:\nloop j in [0..3]:\n"
        "t = transfer.async(dst=region(M, 0, 4), src=region(D, 0, 4)) @seq_engine((i + j) mod 4)\n"
        "u = transfer.async(dst=region(M, 8, 4), src=region(D, 8, 4))\nendloop\nendloop\n"
    )
    fixed, free = plan.program.tasks
    column = engine_column(plan, device(num_engines=4))
    expected = [(i + j) % 4 for i in range(3) for j in range(4)]
    assert np.asarray(column[fixed.position]).tolist() == expected
    # A task with an engine of its own takes no turn of those that have none.
    assert np.asarray(column[free.position]).tolist() == [n % 4 for n in range(12)]

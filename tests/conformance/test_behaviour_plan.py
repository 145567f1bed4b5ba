"""Promises about order, placement and addresses, shown on the plan of a program.

`test_CODE_...` proves the rule CODE; `test_rule_pages.py` counts on these names.
"""

from __future__ import annotations

import pytest

from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.resolver import resolve
from nacre.nem.model.target import builtin_device
from nacre.nem.plan.footprints import strided_pattern
from nacre.nem.plan.placement import bind_units, engine_column
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.syntax.parser import parse

HEAD = "buffer A : L2 (size=256)\nbuffer B : L1[1] (size=256)\nbuffer C : L2 (size=256)\n"


def plan_of(text: str) -> Plan:
    source = Source("program.nem", HEAD + text)
    parsed = parse(source)
    assert parsed.diagnostics == ()
    return build_plan(resolve(source, parsed.document).program, 100_000)


def codes(text: str) -> list[str]:
    found = check_source(Source("program.nem", HEAD.replace("L1[1]", "L1") + text), CheckOptions())
    return [d.code for d in found.diagnostics if d.severity == "error"]


def loop(window: str) -> str:
    copy = "transfer.async(dst=region(B, i * 8, 8), src=region(A, i * 8, 8))"
    return f"loop i in [0..7]{window}:\n    t = {copy}\n    u = {copy}\nendloop\n"


def is_before(plan: Plan, first: tuple[str, int], second: tuple[str, int]) -> bool:
    tasks = {task.token: task for task in plan.program.tasks}
    u, v = tasks[first[0]], tasks[second[0]]
    return plan.order.before(u, [first[1]], v, [second[1]])


def test_dec07_an_index_in_range_is_the_instance() -> None:
    copy = "transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))"
    plan = plan_of(f"loop i in [0..3]:\n    t = {copy} @resource(DMA[i mod 2])\nendloop\n")
    (task,) = plan.program.tasks
    grid = plan.grid_of(task.loops)
    assert grid is not None
    binding = bind_units(task, builtin_device("npm_mid"), grid)
    assert binding is not None
    assert binding.match == "exact"
    assert binding.unit == "DMA"
    assert list(binding.index) == [0, 1, 0, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "runs"),
    [
        (4, [[0, 1], [4, 5]]),  # half a byte to an element: rows of two are 8 elements apart
        (8, [[0, 2], [8, 10]]),
        (32, [[0, 8], [32, 40]]),
    ],
)
def test_ext09_a_stride_of_one_is_one_element(bits: int, runs: list[list[int]]) -> None:
    assert strided_pattern((2, 2), (8, 1), bits).runs.tolist() == runs


def test_lop04_without_a_window_iterations_follow_each_other() -> None:
    plan = plan_of(loop(""))
    assert is_before(plan, ("u", 0), ("t", 1))
    assert is_before(plan, ("t", 0), ("u", 1))
    assert not is_before(plan, ("t", 0), ("u", 0))


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_lop05_an_iteration_waits_for_all_those_a_window_before(window: int) -> None:
    plan = plan_of(loop(f" @max_in_flight({window})"))
    for later in range(8):
        for earlier in range(later):
            waits = later - earlier >= window
            assert is_before(plan, ("u", earlier), ("t", later)) == waits


def test_plc02_an_l1_operand_chooses_the_engine() -> None:
    plan = plan_of(
        "t = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))\n"
        "s = store.async(dst=region(C, 0, 8), src=region(B, 0, 8), deps=[t])\n"
    )
    assert list(engine_column(plan, builtin_device("npm_mid")).values()) == [1, 1]


def test_plc06_tasks_without_l1_take_the_engines_in_turn() -> None:
    copy = "transfer.async(dst=region(C, 0, 8), src=region(A, 0, 8))"
    plan = plan_of(f"a = {copy}\nb = {copy}\nc = {copy}\n")
    assert list(engine_column(plan, builtin_device("npm_mid")).values()) == [0, 1, 0]


def test_tok03_a_wait_yields_no_token() -> None:
    copy = "transfer.async(dst=region(C, 0, 8), src=region(A, 0, 8))"
    assert codes(f"t = {copy}\nu = wait(t)\n") == ["SIG20"]


FORMS = [
    "t = transfer.sync(dst=region(B, 0, 8), src=region(A, 0, 8))",
    "t = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))\nwait(t)",
]


@pytest.mark.parametrize("form", FORMS, ids=["sync", "async and wait"])
def test_tok04_a_sync_form_waits_at_once(form: str) -> None:
    text = f"{form}\ns = store.async(dst=region(C, 0, 8), src=region(B, 0, 8))\n"
    assert codes(text) == []
    assert is_before(plan_of(text), ("t", 0), ("s", 0))

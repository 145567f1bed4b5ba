"""The critical path: unbroken from 0 to the end, with the causes that a reader would name."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.text import summary
from tests.effort import scaled
from tests.nem.run.timing.cases import BUFFERS, MID, copy, limited, lite, load
from tests.nem.run.timing.oracle import Oracle
from tests.nem.run.timing.sketches import Sketch, program_text, sketches
from tests.nem.run.timing.timed import timed


def path(result: TimedResult) -> list[tuple[str, str]]:
    name = result.timeline.steps.name
    return [(name(link.step), link.cause) for link in result.critical_path]


@settings(max_examples=scaled(60))
@given(sketches())
def test_the_path_is_unbroken(sketch: Sketch) -> None:
    items, machine = sketch
    text = program_text(items, machine)
    result = timed(text, machine.profile)
    links = result.critical_path
    if result.status == "deadlock":
        assert links == []
        return
    oracle = Oracle(items, machine)
    if not oracle.tasks:
        assert links == []
        return
    start, end = result.timeline.start, result.timeline.end
    assert (links[0].cause, start[links[0].step]) == ("start", 0), text
    assert end[links[-1].step] == result.cycles, text
    for before, after in pairwise(links):
        assert end[before.step] == start[after.step], text


@settings(max_examples=scaled(60))
@given(sketches())
def test_a_cause_is_one_that_the_task_waited_for(sketch: Sketch) -> None:
    items, machine = sketch
    result = timed(program_text(items, machine), machine.profile)
    oracle = Oracle(items, machine)
    stalls = {n: oracle.stall(step) for n, step in enumerate(oracle.steps)} if links(result) else {}
    for before, after in pairwise(result.critical_path):
        stall = stalls[after.step]
        step, cause = oracle.steps[after.step], after.cause
        assert step.ready is not None
        if cause == "unit":
            assert stall.unit > 0
            assert {u for u, _ in step.units} & {u for u, _ in oracle.steps[before.step].units}
        elif cause == "token":
            assert (stall.token > 0, stall.unit) == (True, 0)
        else:
            assert stall.unit == stall.token == 0
            assert step.ready == step.start
            if cause == "window":
                assert step.iteration


def links(result: TimedResult) -> bool:
    return result.status == "completed"


def test_a_chain_is_its_own_path() -> None:
    result = lite(
        f"a = {copy('M', 'D', 1024)}",
        f"x = {load(32)}",
        f"b = {load(1024, 'a')}",
        "r = relu.async in X out Y deps=[b, x]",
    )
    assert path(result) == [("a", "start"), ("b", "dependence"), ("r", "dependence")]


def test_the_task_that_held_the_unit_is_on_the_path() -> None:
    result = lite(f"a = {load(1024)}", f"b = {load(640)}", f"c = {load(1024)}")
    # `c` follows `b` on DMA[1] at 24.
    assert path(result) == [("b", "start"), ("c", "unit")]


def test_the_long_way_waits_for_the_unit_that_was_free_last() -> None:
    result = lite(f"a = {copy('M', 'D', 1024)}", f"b = {load(32)}", f"c = {copy('P', 'D', 32)}")
    assert path(result) == [("a", "start"), ("c", "unit")]


def test_a_copy_that_held_the_bandwidth_of_ddr_is_on_the_path() -> None:
    text = MID + BUFFERS + f"a = {copy('M', 'D', 1024)}\nb = {copy('N', 'E', 1024)}\n"
    result = timed(text, {"DDR": {"bandwidth": 64}})
    # `b` begins on another sDMA when `a` has had all of DDR for 1024 / 64 cycles, and not its end.
    assert [(step["start"], step["end"]) for step in result.tasks] == [(0, 48), (16, 64)]
    assert path(result) == [("a", "start"), ("b", "unit")]


def test_a_wait_is_passed_over() -> None:
    result = lite(f"a = {load(1024)}", "wait(a)", "wait(a)", f"b = {load(32)}")
    assert path(result) == [("a", "start"), ("b", "dependence")]


def test_what_a_loop_joins_is_a_dependence() -> None:
    result = lite(
        "loop i in [0..1] @max_in_flight(2):", f"    a = {load('1024 - i * 512')}", "endloop",
        f"b = {load(32)}",
    )  # fmt: skip
    assert path(result) == [("a[0]", "start"), ("b", "dependence")]


def test_what_a_window_holds_back_says_so() -> None:
    result = lite(
        "loop i in [0..2]:", f"    a = {load(1024)}", "    r = relu.async in X out Y deps=[a]",
        "endloop",
    )  # fmt: skip
    assert path(result) == [
        ("a[0]", "start"),
        ("r[0]", "dependence"),
        ("a[1]", "window"),
        ("r[1]", "dependence"),
        ("a[2]", "window"),
        ("r[2]", "dependence"),
    ]


def test_an_inner_loop_that_waits_for_the_outer_window() -> None:
    result = lite(
        "loop i in [0..1]:",
        "    loop j in [0..1] @max_in_flight(2):",
        f"        a = {load('1024 - j * 512')}",
        "    endloop",
        "endloop",
    )
    assert path(result) == [("a[0,0]", "start"), ("a[1,0]", "window")]


def test_a_token_that_was_missing_is_named() -> None:
    result = limited(1, f"a = {load(1024)}", f"b = {load(32)}")
    assert path(result) == [("a", "start"), ("b", "token")]


def test_who_releases_its_own_token_waited_for_the_unit() -> None:
    result = limited(
        1,
        load(1024, on="@resource(DMA[1])"),
        f"a = {load(32, on='@resource(DMA[0])')}",
        f"b = {load(32, 'a', '@resource(DMA[1])')}",
    )
    assert [cause for _, cause in path(result)] == ["start", "unit"]


def test_statements_of_a_model_name_their_nodes() -> None:
    text = """buffer A : L2 (size=64)
buffer B : L1 (size=64)
x = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
y = store.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
"""
    result = timed(text, None)
    lines = summary(result, {"x": "stem", "y": "head"}).splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("Task "))
    assert [line.split()[-1] for line in lines[heading : heading + 3]] == ["Node", "stem", "head"]
    assert lines[-1] == "  by node: stem -> head"
    assert "by node" not in summary(result)

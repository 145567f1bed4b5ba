"""Where waiting cycles go: window, dependence, token, unit, in this order of time."""

from __future__ import annotations

from hypothesis import given, settings

from tests.effort import scaled
from tests.nem.run.timing.cases import limited, lite, load, rows_by_name, stalls
from tests.nem.run.timing.oracle import Oracle, reached_without_waiting
from tests.nem.run.timing.sketches import Sketch, program_text, sketches
from tests.nem.run.timing.timed import timed


@settings(max_examples=scaled(40))
@given(sketches())
def test_all_waiting_has_a_cause(sketch: Sketch) -> None:
    items, machine = sketch
    result = timed(program_text(items, machine), machine.profile)
    if result.status == "deadlock":
        return
    oracle = Oracle(items, machine)
    totals = dict.fromkeys(("window", "dependence", "token", "unit"), 0)
    for task, step in zip(result.tasks, oracle.tasks, strict=True):
        base, _ = reached_without_waiting(step)
        assert all(cycles >= 0 for cycles in task["stall"].values())
        assert base + sum(task["stall"].values()) == task["start"]
        for cause, cycles in task["stall"].items():
            totals[cause] += cycles
    assert result.stall_totals == totals


def test_one_task_can_wait_for_everything() -> None:
    # Window 1; in iteration 1: the wait passes, then a token is missing, then the unit is.
    result = limited(
        2,
        "loop i in [0..1]:",
        f"    a = {load(64, on='@resource(DMA[0])')}",  # 6 cycles
        "    wait(a)",
        f"    b = {load(1024, on='@resource(DMA[1])')}",  # 36
        f"    c = {load(96, on='@resource(DMA[0])')}",  # 7
        f"    {load(2048, on='@resource(DMA[2])')}",  # 68, without token
        f"    d = {load(32, on='@resource(DMA[2])')}",  # 5
        "endloop",
    )
    found = rows_by_name(result)
    # Iteration 0: a 0..6, b 6..42, c 6..13; DMA[2] is busy 6..74; a token is free for d from 13.
    assert found["d[0]"] == (74, 79)
    assert stalls(result)["d[0]"] == (0, 6, 7, 61)
    # Iteration 1 begins at 79 and goes the same way.
    assert found["d[1]"] == (153, 158)
    assert stalls(result)["d[1]"] == (79, 6, 7, 61)


def test_windows_of_nested_loops_add_up() -> None:
    result = lite(
        "loop i in [0..1]:",
        "    loop j in [0..1]:",
        f"        a = {load(1024)}",
        "    endloop",
        "endloop",
    )
    assert [stalls(result)[f"a[{i},{j}]"] for i in (0, 1) for j in (0, 1)] == [
        (0, 0, 0, 0),
        (36, 0, 0, 0),
        (72, 0, 0, 0),
        (108, 0, 0, 0),
    ]


def test_after_a_join_counting_begins_anew() -> None:
    result = lite(
        "loop i in [0..1]:",
        "    loop j in [0..1]:",
        f"        a = {load(1024)}",
        "    endloop",
        f"    b = {load(1024)}",
        "    wait(b)",
        "    r = relu.async in X out Y",
        "endloop",
    )
    assert rows_by_name(result)["b[1]"] == (183, 219)  # 111 + 72
    assert stalls(result)["b[1]"] == (0, 0, 0, 0)
    assert stalls(result)["r[1]"] == (0, 36, 0, 0)


def test_a_moment_without_tokens_is_no_stall() -> None:
    # Until 36 one of two tokens is free and `c` lacks its DMA alone. At 36 `e` takes the last
    # token, the task below `c` releases that of `x`, and the next scan starts `c`, at 36 too.
    result = limited(
        2,
        *(load(1024, on=f"@resource(DMA[{n}])") for n in range(3)),
        "x = relu.async in X out Y",
        f"e = {load(32, on='@resource(DMA[0])')}",
        f"c = {load(32, on='@resource(DMA[1])')}",
        load(32, "x", "@resource(DMA[2])"),
    )
    assert rows_by_name(result)["c"] == (36, 41)
    assert stalls(result)["c"] == (0, 0, 0, 36)


def test_a_token_that_is_given_away_again_is_still_missing() -> None:
    # One token, four loads: each waits for those before it in the order of the text.
    result = limited(1, *(f"{name} = {load(1024)}" for name in "abcd"))
    assert [stalls(result)[name][2] for name in "abcd"] == [0, 36, 72, 108]
    assert result.stall_totals == {"window": 0, "dependence": 0, "token": 216, "unit": 0}

"""Few tokens: who waits, who releases, who is stuck; every time derived by hand."""

from __future__ import annotations

from tests.nem.run.timing.cases import copy, limited, load, row, stalls
from tests.nem.run.timing.sketches import Machine
from tests.nem.run.timing.timed import rows, timed


def test_a_token_limit_holds_a_third_task_back() -> None:
    result = limited(2, *(f"{name} = {load()}" for name in "abc"))
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 36, "DMA[1]"),
        row("c", 36, 72, "DMA[2]"),
    ]
    assert stalls(result)["c"] == (0, 0, 36, 0)


def test_a_task_without_token_needs_none() -> None:
    result = limited(1, f"a = {load()}", load(32), load(64))
    assert [r[2:] for r in rows(result)] == [
        (0, 36, "DMA[0]@0"),
        (0, 5, "DMA[1]@0"),
        (0, 6, "DMA[2]@0"),
    ]


def test_a_task_that_starts_releases_before_it_takes() -> None:
    result = limited(1, f"a = {load()}", f"b = {load(32, 'a')}")
    assert rows(result) == [row("a", 0, 36, "DMA[0]"), row("b", 36, 41, "DMA[1]")]
    assert stalls(result)["b"] == (0, 36, 0, 0)


def test_a_token_lives_until_the_last_that_names_it_has_started() -> None:
    lines = [f"a = {load()}", f"b = {load(32, 'a')}", f"c = {load(64, 'a')}"]
    result = limited(2, *lines)
    # At 36 `b` takes the second token; `c` is the last to name `a` and takes its place.
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 36, 41, "DMA[1]"),
        row("c", 36, 42, "DMA[2]"),
    ]
    stuck = limited(1, *lines)
    assert (stuck.status, stuck.waiting) == ("deadlock", ["b", "c"])
    assert rows(stuck) == [row("a", 0, 36, "DMA[0]"), ("b", [], -1, -1, ""), ("c", [], -1, -1, "")]
    assert stuck.cycles == 36


def test_a_wait_releases_what_it_names() -> None:
    result = limited(1, f"a = {load()}", "wait(a)", f"b = {load(32)}")
    assert rows(result) == [row("a", 0, 36, "DMA[0]"), row("b", 36, 41, "DMA[1]")]
    # `b` is held up by the wait, not by the token.
    assert stalls(result)["b"] == (0, 36, 0, 0)


def test_a_join_of_two_tokens_deadlocks_with_one() -> None:
    result = limited(1, f"a = {load()}", f"b = {load()}", f"c = {load(32, 'a, b')}")
    assert (result.status, result.waiting) == ("deadlock", ["b", "c"])
    assert result.sentence() == "stuck: 2 tasks wait for tokens that nobody releases"
    assert result.critical_path == []


def test_a_scan_goes_on_before_it_begins_again() -> None:
    result = limited(
        2,
        f"a = {load()}",
        f"b = {load()}",
        f"c = {load(32)}",
        "wait(a, b)",
        f"d = {load(64)}",
        f"e = {load(96)}",
    )
    # At 36 the scan finds no token for `c`; the wait passes and releases two; `d` and `e` take
    # them further down; when the scan comes back to `c` there is none left.
    assert rows(result) == [
        row("a", 0, 36, "DMA[0]"),
        row("b", 0, 36, "DMA[1]"),
        row("c", 42, 47, "DMA[1]"),  # when `d` ends; free since 36, DMA[2] since 42
        row("d", 36, 42, "DMA[2]"),
        row("e", 36, 43, "DMA[0]"),
    ]
    assert stalls(result)["c"] == (0, 0, 42, 0)


def test_who_would_release_its_own_token_waits_for_the_unit_alone() -> None:
    # `b` needs no token but that of `a`, which it releases itself: from 5 on the DMA is missing.
    result = limited(
        1,
        load(1024, on="@resource(DMA[1])"),
        f"a = {load(32, on='@resource(DMA[0])')}",
        f"b = {load(32, 'a', '@resource(DMA[1])')}",
    )
    assert rows(result)[1:] == [row("a", 0, 5, "DMA[0]"), row("b", 36, 41, "DMA[1]")]
    assert stalls(result)["b"] == (0, 5, 0, 31)


def test_every_engine_has_tokens_of_its_own() -> None:
    machine = Machine(2, {"DMA": 2}, 1)
    text = machine.text() + (
        "program case:\n"
        "buffer M : L2 (size=4096)\nbuffer P : L1[0] (size=4096)\nbuffer Q : L1[1] (size=4096)\n"
    )
    lines = [
        f"a = {copy('P', 'M', 1024)}",
        f"b = {copy('P', 'M', 32)}",
        f"c = {copy('Q', 'M', 1024)}",
    ]
    assert rows(timed(text + "\n".join(lines) + "\n")) == [
        row("a", 0, 36, "DMA[0]@0"),
        row("b", 36, 41, "DMA[1]@0"),
        row("c", 0, 36, "DMA[0]@1"),
    ]


def test_a_task_that_comes_to_release_a_token_as_they_run_out_never_lacked_one() -> None:
    first = "@resource(DMA[0])"
    result = limited(
        2,
        f"a = {load(32, on='@resource(DMA[1])')}",
        load(1024, on=first),
        f"b = {load(1024, 'a', first)}",
        f"c = {load(32, 'a', first)}",
    )
    # From 5 to 36 there is a token to spare. At 36 `b` takes it, and leaves `c` as the last that
    # names `a`: `c` could take the place of that token. All that it waits for is the unit.
    assert [r[2:4] for r in rows(result)] == [(0, 5), (0, 36), (36, 72), (72, 77)]
    assert stalls(result)["c"] == (0, 5, 0, 67)

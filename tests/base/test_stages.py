"""Stages of long work: announced where somebody watches, and free where nobody does."""

from __future__ import annotations

import sys
import time

import pytest

import nacre
from nacre import core, nac
from nacre.base.stages import Stage, is_watched, stage, watch_stages
from nacre.cli.terminal import progress
from nacre.core.builder import Builder
from nacre.core.passes.runner import PIPELINE
from nacre.nem.api import NemInterpreter
from nacre.nem.run.timing import events

BUFFERS = "buffer A : DDR (size=64)\nbuffer B : L2 (size=64)\n"
TEXT = (
    f"{BUFFERS}loop i in [0..99]:\n"
    "t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))\nendloop\n"
)


def test_a_stage_is_seen_while_it_lasts() -> None:
    with watch_stages() as stages:
        assert is_watched()
        with stage("checking"), stage("timing", "steps", lambda: (1000, 4000)):
            assert [str(s) for s in stages] == ["checking", "timing: 1,000 of 4,000 steps (25 %)"]
        assert stages == []
    assert not is_watched()


def test_a_stage_that_does_not_know_its_length_says_no_share() -> None:
    assert str(Stage("training and timing", "networks", lambda: (0, 0))) == "training and timing"


def test_inside_of_a_whole_stage_nothing_else_is_seen() -> None:
    whole = stage("training and timing", is_whole=True)
    with watch_stages() as stages, whole, stage("scheduling"):
        assert [str(s) for s in stages] == ["training and timing"]
        assert not is_watched()


def test_stages_are_called_by_words_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compiling, building and estimating say names no pass and no step of a compiler."""
    build = Builder()
    x = build.input("x", "f32", (2, 3))
    module = build.module(build.add("Relu", build.add("Neg", x)))
    seen: list[str] = []
    monkeypatch.setattr("nacre.base.stages._STACK", _Fixed(_Noting(seen)))
    nac.build(core.optimise(module))
    nacre.estimate(module, "npm4k")
    said = {text.partition(":")[0] for text in seen}
    assert {"simplifying the model", "writing instructions", "scheduling"} <= said
    passes = {one.name for one in PIPELINE}
    assert not {text for text in seen if any(name in text for name in passes)}
    assert not {"lowering", "legalising", "partitioning", "emitting"} & said


class _Noting(list[Stage]):
    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self._seen = seen

    def append(self, item: Stage) -> None:
        self._seen.append(str(item))
        super().append(item)


@pytest.mark.parametrize(("mode", "expected"), [("functional", "running"), ("timed", "timing")])
def test_checking_timing_and_running_are_stages(
    mode: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    monkeypatch.setattr("nacre.base.stages._STACK", _Fixed(_Noting(seen)))
    interp = NemInterpreter()
    interp.set_mode(mode)
    interp.run(interp.load_string(TEXT), {"A": bytes(64)})
    assert {"reading", "resolving names", "checking", "running", expected} <= {
        text.partition(":")[0] for text in seen
    }


class _Fixed:
    def __init__(self, value: object) -> None:
        self._value = value

    def get(self) -> object:
        return self._value


def test_where_nobody_sits_long_work_says_its_stage_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_UNWATCHED_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_LEAST_WORK", 0)
    with progress.show_stages(), stage("checking", "rules", lambda: (3, 60)):
        time.sleep(0.1)
    captured = capsys.readouterr()
    assert captured.err.startswith("checking: 3 of 60 rules (5 %), 0 s\n")
    assert captured.out == ""


def test_where_nothing_is_done_yet_a_line_does_not_say_so_for_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_UNWATCHED_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_COUNT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_LEAST_WORK", 0)
    done = 0
    with progress.show_stages(), stage("timing", "steps", lambda: (done, 4000)):
        time.sleep(0.05)
        done = 1000
        time.sleep(0.3)
    assert capsys.readouterr().err.splitlines() == [
        "timing, 0 s",
        "timing: 1,000 of 4,000 steps (25 %), 0 s",
    ]


def test_steps_are_counted_as_they_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    finish = events.finish

    def noting(c: events.Columns, step: int) -> None:
        seen.append(str(stages[-1]))
        finish(c, step)

    monkeypatch.setattr(events, "finish", noting)
    interp = NemInterpreter()
    interp.set_mode("timed")
    copies = [
        f"t{i} = transfer.async(dst=region(B, {i}, 1), src=region(A, {i}, 1))" for i in range(4)
    ]
    program = interp.load_string(f"{BUFFERS}{chr(10).join(copies)}\n")
    with watch_stages() as stages:
        interp.run(program, {"A": bytes(64)})
    assert seen[0] == "timing: 1 of 4 steps (25 %)"  # the one DMA engine has taken it


def test_at_a_terminal_the_line_is_taken_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown, latest = "", time.monotonic() + 20
    with progress.show_stages(), stage("checking"):
        while "\rchecking, " not in shown and time.monotonic() < latest:
            time.sleep(0.02)
            shown += capsys.readouterr().err
    shown += capsys.readouterr().err
    assert "\rchecking, " in shown
    assert shown.endswith(" \r")


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.show_stages(), stage("checking"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_is_written_while_stages_are_held_stays_whole(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_QUIET_SECONDS", "_UNWATCHED_SECONDS", "_TICK_SECONDS", "_REPEAT_SECONDS"):
        monkeypatch.setattr(progress, name, 0.01)
    monkeypatch.setattr(progress, "_LEAST_WORK", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)

    def wait_for_line(what: str) -> str:
        shown, latest = "", time.monotonic() + 20
        while what not in shown and time.monotonic() < latest:
            time.sleep(0.02)
            shown += capsys.readouterr().err
        return shown

    with progress.show_stages(), stage("reading"):
        assert "reading" in wait_for_line("reading")
        with progress.hold_stages():
            before = capsys.readouterr().err  # a line at a terminal is gone by now
            assert not is_terminal or before.endswith(" \r")
            with stage("running"):
                time.sleep(0.1)
            assert capsys.readouterr().err == ""
        assert "reading" in wait_for_line("reading")  # and goes on afterwards


def test_nobody_need_be_watching_to_hold_stages(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.hold_stages(), stage("running"):
        sys.stdout.write("text\n")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("text\n", "")

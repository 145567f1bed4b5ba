"""`nacre run --mode timed`: where the time goes, what if, traces and the page."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from neminterp import InputError, NemInterpreter
from tests.cli.runner import Outcome, invoke

Capsys = pytest.CaptureFixture[str]

EXAMPLES = Path(__file__).parents[2] / "examples"
CONV = str(EXAMPLES / "conv2d_relu.nem")
STUCK = """
include "npm_lite.nem"
device "stuck.nem"
program stuck:
buffer A : L2 (size=64)
buffer B : L1 (size=64)
a = transfer.async(dst=region(B, 0, 32), src=region(A, 0, 32))
b = transfer.async(dst=region(B, 32, 32), src=region(A, 32, 32))
c = transfer.async(dst=region(A, 0, 64), src=region(B, 0, 64), deps=[a, b])
"""
STUCK_DEVICE = """
include "npm_lite.nem"
device stuck extends npm_lite {
    unit_characteristics {
        SEQ { max_active_tokens = 1 }
    }
}
"""


def timed(capsys: Capsys, *arguments: str, status: int = 0) -> Outcome:
    """A timed run that ends with a status."""
    outcome = invoke(capsys, "run", "--mode", "timed", *arguments)
    assert outcome.status == status, outcome.text
    return outcome


def test_the_text_names_the_bottleneck_and_what_tasks_waited_for(capsys: Capsys) -> None:
    text = timed(capsys, "--no-values", CONV).out
    assert "ran 17 tasks of conv2d_relu on npm_lite: completed" in text
    assert "cycles: 17315" in text
    assert "NMU@0 is the bottleneck: its work alone needs 14120 cycles (82% busy)" in text
    assert "critical path: tW -> tC[0] -> tC[1]" in text
    for heading in ("Bound", "Unit", "Wait: window", "Wait: dependence", "Wait: token"):
        assert heading in text


def test_json_has_the_promised_keys(capsys: Capsys) -> None:
    report = json.loads(timed(capsys, "--no-values", "--format", "json", CONV).out)
    assert (report["status"], report["cycles"]) == ("completed", 17315)
    assert len(report["tasks"]) == 17
    first = report["tasks"][1]
    assert first == {
        "name": "tX",
        "op": "transfer",
        "iteration": [0],
        "engine": 0,
        "unit": "DMA[1]@0",
        "start": 0,
        "end": 516,
        "stall": {"window": 0, "dependence": 0, "token": 0, "unit": 0},
    }
    assert report["units"]["NMU[0]@0"] == {"busy": 14120, "tasks": 4}
    assert report["bounds"] == {"compute": 14120, "dma": 2186, "ddr": 0, "chain": 11658}
    assert report["critical_path"][-1] == "tS[3]"


def test_a_timed_run_computes_the_same_values(tmp_path: Path, capsys: Capsys) -> None:
    outputs = []
    for mode in ("functional", "timed"):
        out = tmp_path / f"{mode}.npy"
        options = ["--uninitialized", "zero", "--output", f"Y_L2={out}"]
        assert invoke(capsys, "run", "--mode", mode, *options, CONV).status == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


def test_what_if_shows_both_runs_side_by_side(capsys: Capsys) -> None:
    change = "NMU.int8_macs=8192,topology.l1_size_bytes=2M"
    text = timed(capsys, "--no-values", "--what-if", change, CONV).out
    row = next(line for line in text.splitlines() if line.startswith("cycles  "))
    assert row.split() == ["cycles", "17315", "10259", "1.69x"]
    arguments = ["--no-values", "--what-if", change, "--format", "json", CONV]
    assert json.loads(timed(capsys, *arguments).out)["what_if"]["cycles"] == 10259


def test_changes_add_up_over_options_and_no_figure_is_given_twice(capsys: Capsys) -> None:
    changes = ("--what-if", "NMU.int8_macs=8192", "--what-if", "topology.l1_size_bytes=2M")
    told = json.loads(timed(capsys, "--no-values", *changes, "--format", "json", CONV).out)
    assert told["what_if"]["cycles"] == 10259
    assert "NMU.int8_macs=8192" in told["what_if"]["device"]
    assert "topology.l1_size_bytes=2097152" in told["what_if"]["device"]
    twice = timed(capsys, *changes, "--what-if", "NMU.int8_macs=1", CONV, status=2)
    assert "`NMU.int8_macs` is given twice" in twice.err


def test_a_figure_that_is_given_often_is_told_once(capsys: Capsys) -> None:
    changes = [f"NMU.int8_macs={number}" for number in (1, 2, 3, 4)]
    told = timed(capsys, "--what-if", ",".join(changes), CONV, status=2)
    assert told.err.count("is given twice") == 1


def test_a_figure_of_any_name_is_told_without_its_escapes(capsys: Capsys) -> None:
    for change in ("\x1b[31m=1,\x1b[31m=2", "\x1b[31m=1", "\x1b[31m", "DMA.latency=\x1b[31m"):
        assert "\x1b" not in timed(capsys, "--what-if", change, CONV, status=2).err
    long = f"{'x' * 5000}=1"
    told = timed(capsys, "--what-if", f"{long},{long}", CONV, status=2)
    assert "x" * 500 not in told.err


def test_a_figure_that_is_absent_at_zero_is_told_to_be_so(capsys: Capsys) -> None:
    change = ("--what-if", "NMU.clock=0,DMA.write_bandwidth=0,NMU.latency=0")
    said = timed(capsys, "--no-values", *change, CONV).out
    notes = ["NMU.clock=0 is as if nobody gave it: whatever the caller says",
             "DMA.write_bandwidth=0 is as if nobody gave it: bandwidth holds"]  # fmt: skip
    assert said.splitlines()[-2:] == notes  # none about a latency, of which 0 is 0
    told = json.loads(timed(capsys, "--no-values", *change, "--format", "json", CONV).out)
    assert told["what_if"]["notes"] == notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NMU.int8_mac=1", "did you mean `NMU.int8_macs`"),
        ("NMU.int8_macs=0", "expected an integer from 1 to"),
        ("NMU.int8_macs", "is no change; write KEY=NUMBER"),
        ("NMU.int8_macs=", "is no change; write KEY=NUMBER"),
        ("=4", "is no change; write KEY=NUMBER"),
        ("NMU.int8_macs=-3", "`NMU.int8_macs` is `-3`, expected an integer from 1 to"),
        ("topology.l1_size_bytes=-2M", "is `-2097152`, expected an integer from 1 to"),
        ("topology.num_engines=-1", "`topology.num_engines` is `-1`, expected an integer from 1"),
        ("NMU.int8_macs=1.5", "`NMU.int8_macs` is `1.5`, expected a whole number"),
        ("NMU.int8_macs=many", "`NMU.int8_macs` is `many`, expected a whole number"),
        ("NMU.int8_macs=\u0663", "`NMU.int8_macs` is `\u0663`, expected a whole number"),
        ("NMU.int8_macs=4\u212a", "`NMU.int8_macs` is `4\u212a`, expected a whole number"),
        ("NMU.int8_macs=" + "9" * 5000, "expected a whole number"),
        ("topology.NMU=99999999", "expected an integer from 1 to 1024"),
    ],
)
def test_a_change_that_cannot_be_meant_is_wrong_usage(
    text: str, words: str, capsys: Capsys
) -> None:
    assert words in timed(capsys, "--what-if", text, CONV, status=2).err


def test_a_profile_comes_from_a_file(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "fast.toml").write_text("[DMA]\nbandwidth = 64\nlatency = 0\n")
    (tmp_path / "bad.json").write_text('{"DMA": {"bandwidth": 0}, "XMU": {}}')
    fast, bad = str(tmp_path / "fast.toml"), str(tmp_path / "bad.json")
    assert "cycles: 16159" in timed(capsys, "--no-values", "--profile", fast, CONV).out
    message = timed(capsys, "--profile", bad, CONV, status=2).err
    assert "`DMA.bandwidth` is `0`" in message
    assert "no unit `XMU`" in message
    assert (
        invoke(
            capsys, "run", "--mode", "timed", "--profile", str(tmp_path / "none.json"), CONV
        ).status
        == 2
    )


def test_traces_and_the_page_are_written(tmp_path: Path, capsys: Capsys) -> None:
    for name in ("t.json", "t.csv", "t.perfetto-trace"):
        path = str(tmp_path / name)
        assert (
            invoke(capsys, "run", "--mode", "timed", "--no-values", "--trace", path, CONV).status
            == 0
        )
    page = tmp_path / "page.html"
    assert (
        invoke(capsys, "run", "--mode", "timed", "--no-values", "--report", str(page), CONV).status
        == 0
    )
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert list(rows[0])[:7] == ["step", "task", "type", "start", "end", "unit", "engine"]
    assert rows[3]["task"] == "tC[0]"
    trace = json.loads((tmp_path / "t.json").read_text())
    assert (trace["mode"], trace["cycles"], len(trace["tasks"])) == ("timed", 17315, 17)
    assert (tmp_path / "t.perfetto-trace").stat().st_size > 500
    assert "conv2d_relu" in page.read_text()


def test_a_deadlock_is_reported_with_the_waiting_tasks(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "stuck.nem").write_text(STUCK_DEVICE)
    program = tmp_path / "program.nem"
    program.write_text(STUCK)
    for options in ([], ["--no-values"]):
        text = timed(capsys, *options, str(program), status=1).out
        assert "error[RUN10]: at cycle 5 nothing can start: all 1 tokens are taken" in text
        assert "`b`" in text


@pytest.mark.parametrize(
    "options",
    [
        ["--what-if", "NMU.latency=1"],
        ["--no-values"],
        ["--report", "x.html"],
        ["--profile", "x.json"],
        ["--trace", "x.perfetto-trace"],
        ["--mode", "timed", "--report", "x.txt"],
        ["--mode", "timed", "--trace", "x.vcd"],
        ["--mode", "timed", "--no-values", "--output", "Y_L2=y.npy"],
        ["--mode", "timed", "--no-values", "--detect-races"],
        ["--mode", "timed", "--no-values", "--input", "X_L2=x.npy"],
        ["--mode", "timed", "--replay", "x.json"],
        ["--mode", "timed", "--schedule", "random"],
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = invoke(capsys, "run", *options, CONV)
    assert outcome.status == 2
    assert outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("topology.num_engines=1", "BUF05"),
        ("topology.sDMA=0", "PLC07"),
        ("topology.l1_size_bytes=1K", "BUF07"),
    ],
)
def test_a_program_that_does_not_fit_the_changed_device_is_told_so(
    change: str, code: str, capsys: Capsys
) -> None:
    program = str(EXAMPLES / "two_engines.nem")
    text = timed(capsys, "--no-values", "--what-if", change, program, status=1).out
    assert f"error[{code}]" in text
    assert f"npm_mid with {change.replace('1K', '1024')}" in text


def test_a_changed_device_that_deadlocks_has_no_total(capsys: Capsys) -> None:
    change = "SEQ.max_active_tokens=1"
    text = timed(capsys, "--no-values", "--what-if", change, CONV).out
    row = next(line for line in text.splitlines() if line.startswith("cycles  "))
    assert row.split() == ["cycles", "17315", "deadlock", "-"]


def test_profile_tags_gather_cycles(tmp_path: Path, capsys: Capsys) -> None:
    program = tmp_path / "tags.nem"
    program.write_text(
        "buffer A : L2 (size=64)\nbuffer B : L1 (size=64)\n"
        "loop i in [0..3] @profile(all):\n"
        "    t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @profile(load)\n"
        "    wait(t)\n"
        "endloop\n"
    )
    report = json.loads(timed(capsys, "--no-values", "--format", "json", str(program)).out)
    gathered = {"tasks": 4, "busy": 24, "waits": 36, "first": 0, "last": 24}
    assert report["profile"] == {"load": gathered, "all": gathered}
    assert "load" in timed(capsys, "--no-values", str(program)).out


def test_a_timed_run_that_stops_tells_only_what_ran(tmp_path: Path, capsys: Capsys) -> None:
    program = tmp_path / "divide.nem"
    program.write_text(
        "buffer X : L1 (size=4)\nbuffer Y : L1 (size=4)\nbuffer M : L2 (size=4)\n"
        "let x = region(X, 0, 4) elem=i8, shape=[4], layout=C\n"
        "let y = region(Y, 0, 4) elem=i8, shape=[4], layout=C\n"
        "a = relu.sync in x out x\nb = div.sync in x, x out y\n"
        "c = store.sync(dst=region(M, 0, 4), src=region(Y, 0, 4))\n"
    )
    trace, page = tmp_path / "t.json", tmp_path / "p.html"
    options = ["--uninitialized", "zero", "--trace", str(trace), "--report", str(page)]
    text = timed(capsys, *options, str(program), status=1).out
    assert "error[RUN02]" in text
    assert "stopped by an error" in text
    assert "cycles:" not in text
    assert f"did not write {page}" in text
    assert not page.exists()
    told = json.loads(trace.read_text())
    assert (told["status"], [row["task"] for row in told["tasks"]]) == ("error", ["a"])


def test_what_is_read_is_not_overwritten(tmp_path: Path, capsys: Capsys) -> None:
    program = tmp_path / "own.nem"
    program.write_text("buffer X : L2 (size=4)\n")
    outcome = invoke(capsys, "run", "--output", f"X={program}", str(program))
    assert outcome.status == 2
    assert "is read, and would be written over" in outcome.err
    assert program.read_text() == "buffer X : L2 (size=4)\n"


def test_what_a_program_includes_is_not_written_over(tmp_path: Path, capsys: Capsys) -> None:
    part = tmp_path / "part.nem"
    text = 'include "npm4k.nem"\ndevice own extends npm4k {\n}\n'
    part.write_text(text)
    program = tmp_path / "own.nem"
    program.write_text('include "part.nem"\ndevice own\nprogram p:\nbuffer X : L2 (size=4)\n')
    trace = tmp_path / "trace.json"
    for written in (("--output", f"X={part}"), ("--output", f"X={trace}", "--trace", trace)):
        outcome = invoke(capsys, "run", *written, program)
        assert outcome.status == 2
        assert "would be written" in outcome.err
    assert part.read_text() == text
    assert not trace.exists()


@pytest.mark.parametrize("value", [np.int64(8192), np.int32(8192), 8192])
def test_a_change_may_be_an_integer_of_any_library(value: int) -> None:
    interp = NemInterpreter()
    assert interp.time(interp.load(CONV), changes={"NMU.int8_macs": value}).cycles == 10259


@pytest.mark.parametrize("value", [8192.0, True, "3x", None])
def test_a_change_that_is_no_integer_is_refused(value: object) -> None:
    interp = NemInterpreter()
    changes = cast(dict[str, int], {"NMU.int8_macs": value})
    with pytest.raises(InputError, match="RUN11"):
        interp.time(interp.load(CONV), changes=changes)

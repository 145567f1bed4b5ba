"""Traces: what ran, exported as JSON and CSV, and run again from them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nacre.nem.run.sessions.trace import recorded_order
from neminterp import InputError, NemInterpreter, Session
from tests.nem.api.programs import PIPELINE, STEPS, expected, tiles, write_program

X, W = tiles()
COLUMNS = ["step", "task", "type", "status", "token", "deps", "iteration", "line"]


def session(seed: int | None = None) -> Session:
    interp = NemInterpreter(device="npm_lite")
    if seed is not None:
        interp.set_scheduling("random", seed=seed)
    return interp.start(interp.load_string(PIPELINE), inputs={"X_DDR": X, "W_DDR": W})


def test_a_trace_is_exported_as_json(tmp_path: Path) -> None:
    ran = session()
    ran.run()
    ran.export_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert (trace["format"], trace["mode"]) == ("nacre-trace-1", "functional")
    rows = trace["tasks"]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert [row["task"] for row in rows] == ran.order
    assert all(list(row) == COLUMNS for row in rows)
    assert rows[3] == {
        "step": 4,
        "task": "wait@17",
        "type": "wait(tL, tW)",
        "status": "completed",
        "token": None,
        "deps": ["tL", "tW"],
        "iteration": [],
        "line": 17,
    }
    assert rows[5] == {
        "step": 6,
        "task": "tC[0]",
        "type": "gemm.async",
        "status": "completed",
        "token": "tC[0]",
        "deps": ["tX"],
        "iteration": [0],
        "line": 24,
    }


def test_a_trace_is_exported_as_csv(tmp_path: Path) -> None:
    ran = session()
    ran.run()
    ran.export_trace(str(tmp_path / "trace.csv"))
    with (tmp_path / "trace.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == COLUMNS
    assert len(rows) == STEPS + 1
    assert rows[4] == ["4", "wait@17", "wait(tL, tW)", "completed", "", "tL tW", "", "17"]
    assert rows[6] == ["6", "tC[0]", "gemm.async", "completed", "tC[0]", "tX", "0", "24"]


def test_a_trace_before_the_first_step_has_no_rows(tmp_path: Path) -> None:
    fresh = session()
    fresh.export_trace(tmp_path / "trace.json")
    fresh.export_trace(tmp_path / "trace.csv")
    assert json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["tasks"] == []
    assert (tmp_path / "trace.csv").read_text(encoding="utf-8") == ",".join(COLUMNS) + "\n"


def test_a_trace_says_which_program_ran(tmp_path: Path) -> None:
    interp = NemInterpreter(device="npm_lite")
    path = write_program(tmp_path, name='a "quoted" name.nem')
    ran = interp.start(interp.load(path), inputs={"X_DDR": X, "W_DDR": W})
    ran.export_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert trace["program"] == path


def test_a_failed_export_leaves_what_was_there(tmp_path: Path) -> None:
    ran = session()
    for name in ("trace.txt", "trace", "trace.json.bak"):
        with pytest.raises(InputError, match=r"ends in \.json or \.csv"):
            ran.export_trace(tmp_path / name)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        ran.export_trace(tmp_path / "folder.json")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


@pytest.mark.parametrize("seed", range(4))
def test_a_recorded_order_runs_again(seed: int, tmp_path: Path) -> None:
    ran = session(seed)
    ran.run()
    ran.export_trace(tmp_path / "trace.json")
    order = recorded_order((tmp_path / "trace.json").read_text(encoding="utf-8"))
    interp = NemInterpreter(device="npm_lite")
    again = interp.run(interp.load_string(PIPELINE), inputs={"X_DDR": X, "W_DDR": W}, order=order)
    assert again.status == "completed"
    assert again.session is not None
    assert again.session.order == ran.order
    assert again.read_buffer("Y_DDR") == expected(X, W).tobytes()


def test_steps_that_a_recorded_order_leaves_out_follow_in_program_order() -> None:
    interp = NemInterpreter(device="npm_lite")
    program = interp.load_string(PIPELINE)
    result = interp.run(program, inputs={"X_DDR": X, "W_DDR": W}, order=["tV", "tW"])
    assert result.session is not None
    assert result.session.order[:4] == ["tV", "tW", "tL", "wait@17"]
    assert result.read_buffer("Y_DDR") == expected(X, W).tobytes()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tasks": [3]}', '{"tasks": [{"task": 3}]}'])
def test_a_file_that_is_no_trace_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="this is no trace of nacre"):
        recorded_order(text)

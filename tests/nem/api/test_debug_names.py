"""`@debug(name)`: tools call objects by the names that their program gives them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nacre.viz.perfetto import packets
from nacre.viz.report_data import report_data
from neminterp import NemInterpreter, Session
from tests.cli.runner import invoke

TEXT = """\
buffer A : DDR (size=64) @debug(image)
buffer B : L2 (size=64) @debug("the copy")
buffer C : L2 (size=64)
let part = region(B, 0, 32) @debug(half)
a = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64)) @debug(load)
loop i in [0..1] @debug(rows):
    b = transfer.sync(dst=region(C, i * 32, 32), src=region(B, i * 32, 32))
    c = transfer.sync(dst=region(C, i * 32, 32), src=region(B, i * 32, 32)) @debug("again\\\\n")
endloop
d = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
"""
NAMES = ["load", "rows", "again\\n", "rows", "again\\n", None]


def _ran(mode: str) -> Session:
    interp = NemInterpreter()
    interp.set_mode(mode)
    session = interp.start(interp.load_string(TEXT), inputs={"A": bytes(64)})
    session.run()
    return session


@pytest.mark.parametrize("mode", ["functional", "timed"])
def test_traces_carry_the_names(tmp_path: Path, mode: str) -> None:
    session = _ran(mode)
    session.export_trace(tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text())["tasks"]
    assert [row.get("debug") for row in rows] == NAMES
    session.export_trace(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open() as file:
        assert [row["debug"] or None for row in csv.DictReader(file)] == NAMES


def test_perfetto_and_the_report_carry_the_names() -> None:
    timing = _ran("timed").timing
    assert timing is not None
    assert [row.get("debug") for row in timing.tasks] == NAMES
    written = b"".join(packets(timing))
    for name in (b"debug", b"load", b"rows", b"again\\n"):
        assert name in written
    data = report_data(timing)
    assert data["statements"]["debug_names"] == ["load", "rows", "again\\n"]
    buffers = [name for memory in data["memory"] for name in memory["buffers"]["name"]]
    assert "A (image)" in buffers
    assert "B (the copy)" in buffers
    assert "C" in buffers


@pytest.mark.parametrize("mode", ["functional", "timed"])
def test_tables_and_dumps_show_the_names(capsys: pytest.CaptureFixture[str], mode: str) -> None:
    session = _ran(mode)
    session.dump_trace()
    table = capsys.readouterr().out.splitlines()
    assert table[0].endswith("Debug")
    assert table[1].endswith("load")
    assert table[-1].endswith("-")
    session.dump_buffers()
    heading, image, *_ = capsys.readouterr().out.splitlines()
    assert heading.split()[-1] == "Debug"
    assert image.split()[-1] == "image"
    session.dump_region("part")
    dump = capsys.readouterr().out
    assert "Buffer: B @debug(the copy), offset=0" in dump
    assert "Decorators: @debug(half)" in dump


def test_steps_and_findings_carry_the_names() -> None:
    interp = NemInterpreter()
    program = interp.load_string(
        "buffer A : L2 (size=4)\nbuffer P : L1 (size=8)\nloop i in [0..1] @debug(outer):\n"
        "t = transfer.sync(dst=region(P, 0, 4), src=region(A, 0, 4))\n"
        "r = relu.sync in region(P, 0, 4) elem=i8, shape=[4], layout=C\n"
        "    out region(P, 4, 4) elem=i8, shape=[4], layout=C @debug(act)\nendloop\n"
    )
    session = interp.start(program)
    assert session.step().debug == "outer"
    assert session.next_debug_name == "act"
    found = session.step()
    assert found.debug == "act"
    assert "`r` (`act`) in iteration i=0 reads" in found.diagnostics[0].message


def test_a_program_without_names_has_no_such_column(capsys: pytest.CaptureFixture[str]) -> None:
    interp = NemInterpreter()
    program = interp.load_string(
        "buffer A : L2 (size=4)\nbuffer B : L2 (size=4)\n"
        "t = transfer.sync(dst=region(B, 0, 4), src=region(A, 0, 4))\n"
    )
    session = interp.start(program)
    session.run()
    session.dump_trace()
    session.dump_buffers()
    assert "Debug" not in capsys.readouterr().out


def test_the_debugger_and_the_timed_report_show_the_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.nem"
    file.write_text(TEXT.replace("load", '"lo\x1bad"'))
    outcome = invoke(capsys, "debug", file, "--batch", "--command", "print part")
    assert "next is a (@debug lo" in outcome.out
    assert "\x1b" not in outcome.out
    assert "(@debug half) (@debug the copy)" in outcome.out
    outcome = invoke(capsys, "run", file, "--mode", "timed")
    assert "\x1b" not in outcome.out
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("b ")]
    assert row.endswith("rows")

from __future__ import annotations

import csv
import json
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nacre.cli.terminal.progress import Progress
from neminterp import NemInterpreter
from tests.cli.runner import Outcome, environment, invoke, nacre, nacre_here

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(ROOT.glob("examples/*.nem"))

RELU = """
program clip:
buffer X : DDR (size=64)
buffer Y : DDR (size=64)
buffer L : L1 (size=64)
let v = region(L, 0, 64) elem=i8, shape=[64], layout=C
t = transfer.async(dst=v, src=region(X, 0, 64))
u = relu.async in v out v deps=[t]
w = store.async(dst=region(Y, 0, 64), src=v, deps=[u])
"""
COPY = """
buffer X : DDR (size=8)
let x = region(X, 0, 8) {elem}
buffer Y : DDR (size=8)
t = transfer.sync(dst=region(Y, 0, 8), src=x)
"""
# The second copy does not wait for the first.
RACE = """
program race:
buffer X : DDR (size=64)
buffer A : L2 (size=64)
buffer Y : DDR (size=64)
t = transfer.async(dst=region(A, 0, 64), src=region(X, 0, 64))
u = transfer.async(dst=region(Y, 0, 64), src=region(A, 0, 64))
"""
DIVIDE = """
program divide:
buffer X : L1 (size=4)
buffer Y : L1 (size=4)
let x = region(X, 0, 4) elem=i8, shape=[4], layout=C
let y = region(Y, 0, 4) elem=i8, shape=[4], layout=C
a = relu.sync in x out x
b = div.sync in x, x out y
"""
LOOP = """
buffer X : DDR (size=256)
buffer L : L1 (size=128)
loop i in [0..3] @max_in_flight(2):
    t = transfer.async(dst=region(L, (i mod 2) * 64, 64), src=region(X, i * 64, 64))
endloop
"""
BYTES = np.arange(64, dtype=np.uint8)


def saved(folder: Path, text: str, name: str = "p.nem") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def filled(folder: Path, array: np.ndarray[Any, Any] = BYTES, name: str = "x.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def report(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outcome.out)
    return found


# What it does


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_gives_the_bytes_that_the_api_gives(
    capsys: Capsys, tmp_path: Path, path: Path
) -> None:
    interp = NemInterpreter()
    program = interp.load(path)
    rng = np.random.default_rng(7)
    # Every byte below 64: small numbers in every type, and no NaN.
    arrays = {
        b.name: rng.integers(0, 64, b.size or 0, np.uint8)
        for b in program.plan.program.buffers
        if b.level != "L1"
    }
    result = interp.run(program, arrays)
    options = []
    for name, array in arrays.items():
        options += ["--input", f"{name}={filled(tmp_path, array, f'{name}.npy')}"]
        options += ["--output", f"{name}={tmp_path}/{name}_out.npy"]
    outcome = invoke(capsys, "run", path, *options)
    assert (outcome.status, outcome.err) == (0, "")
    assert f"ran {result.tasks} tasks of {path.stem} on {program.device.name}: completed" in (
        outcome.out
    )
    changed = []
    for name, array in arrays.items():
        written = np.load(tmp_path / f"{name}_out.npy", allow_pickle=False)
        assert written.dtype == np.uint8
        assert written.tobytes() == result.read_buffer(name)
        changed += [name] if written.tobytes() != array.tobytes() else []
    assert changed


def test_text_is_a_line_for_the_run_and_one_for_each_file(tmp_path: Path) -> None:
    saved(tmp_path, RELU)
    filled(tmp_path, BYTES.view(np.int8) - np.int8(32))
    outcome = nacre(
        "run", "p.nem", "--input", "X=x.npy", "--output", "Y:i8:8x8=y.npy", "--output", "Y=y.bin",
        "--trace", "t.csv", cwd=tmp_path,
    )  # fmt: skip
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "ran 3 tasks of clip on (no device): completed\n"
        "wrote y.npy: Y as i8 8x8\n"
        "wrote y.bin: Y as u8 64\n"
        "wrote t.csv: the trace\n"
    )
    expected = np.maximum(np.arange(64) - 32, 0).astype(np.int8)
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected.reshape(8, 8))
    assert (tmp_path / "y.bin").read_bytes() == expected.tobytes()
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["task"] for row in rows] == ["t", "u", "w"]


def test_json_has_exactly_the_promised_shape(capsys: Capsys, tmp_path: Path) -> None:
    program, x, y = saved(tmp_path, RELU), filled(tmp_path), tmp_path / "y.npy"
    outcome = invoke(
        capsys, "run", program, "--input", f"X={x}", "--output", f"Y:i8={y}", "--format", "json"
    )
    assert outcome.status == 0
    assert report(outcome) == {
        "status": "completed",
        "program": "clip",
        "device": "(no device)",
        "tasks": 3,
        "diagnostics": [],
        "outputs": {str(y): {"buffer": "Y", "elem": "i8", "shape": [64]}},
    }


def test_the_program_may_come_from_standard_input(tmp_path: Path) -> None:
    outcome = nacre_here("run", "-", "--uninitialized", "zero", cwd=tmp_path, stdin=RELU.encode())
    assert outcome.out == "ran 3 tasks of clip on (no device): completed\n"


def test_parts_of_buffers_and_raw_files_are_inputs(capsys: Capsys, tmp_path: Path) -> None:
    program, y = saved(tmp_path, RELU), tmp_path / "y.bin"
    raw = tmp_path / "x.raw"
    raw.write_bytes(bytes(range(48)))
    part = filled(tmp_path, np.full(4, 0x0101_0101, np.uint32))
    outcome = invoke(
        capsys, "run", program, "--input", f"X={filled(tmp_path, BYTES, 'all.npy')}",
        "--input", f"X@16={raw}", "--input", f"X@0={part}", "--output", f"Y={y}",
    )  # fmt: skip
    assert outcome.status == 0
    assert y.read_bytes() == bytes([1] * 16) + bytes(range(48))


def test_an_option_may_give_device_and_size_of_ddr(capsys: Capsys, tmp_path: Path) -> None:
    program = saved(tmp_path, RELU)
    zero = ("--uninitialized", "zero")
    outcome = invoke(capsys, "run", program, "--device", "npm_lite", "--ddr-size", "1M", *zero)
    assert outcome.out == "ran 3 tasks of clip on npm_lite: completed\n"
    outcome = invoke(capsys, "run", program, "--ddr-size", "64", *zero)
    assert (outcome.status, "error[BUF10]" in outcome.out) == (1, True)


# Types of outputs


@pytest.mark.parametrize(
    ("elem", "asked", "expected"),
    [
        ("", "", np.arange(8, dtype=np.uint8)),
        ("elem=bf16, shape=[4], layout=C", ":u8", np.arange(8, dtype=np.uint8)),
        ("elem=i4, shape=[16], layout=C", ":u8:2x4", np.arange(8, dtype=np.uint8).reshape(2, 4)),
        ("elem=f32, shape=[2], layout=C", ":u16", np.arange(8, dtype=np.uint8).view(np.uint16)),
        ("elem=i8, shape=[8], layout=C", ":f32:1x2", np.arange(8, dtype="u1").view("f4")[None]),
    ],
)
def test_an_output_is_the_bytes_under_the_type_asked_for(
    capsys: Capsys, tmp_path: Path, elem: str, asked: str, expected: np.ndarray[Any, Any]
) -> None:
    program = saved(tmp_path, COPY.format(elem=elem))
    x, y = filled(tmp_path, np.arange(8, dtype=np.uint8)), tmp_path / "y.npy"
    outcome = invoke(capsys, "run", program, "--input", f"X={x}", "--output", f"Y{asked}={y}")
    assert outcome.status == 0, outcome.text
    found = np.load(y)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("buffer", ["X", "Y"])  # typed itself, or copied from what is
def test_bf16_is_written_as_the_f32_values(capsys: Capsys, tmp_path: Path, buffer: str) -> None:
    program = saved(tmp_path, COPY.format(elem="elem=bf16, shape=[4], layout=C"))
    values = np.array([1.5, -2.0, 0.0, 3e38], ml_dtypes.bfloat16)
    x, y = filled(tmp_path, values.view(np.uint8)), tmp_path / "y.npy"
    options = ["--input", f"X={x}", "--output", f"{buffer}:f32:2x2={y}"]
    assert invoke(capsys, "run", program, *options).status == 0
    assert np.array_equal(np.load(y), values.astype(np.float32).reshape(2, 2))


@pytest.mark.parametrize(("shape", "count"), [("", 16), (":16", 16), (":3x5", 15)])
def test_i4_is_written_as_the_i8_values(
    capsys: Capsys, tmp_path: Path, shape: str, count: int
) -> None:
    program = saved(tmp_path, COPY.format(elem="elem=i4, shape=[16], layout=C"))
    packed = np.array([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE], np.uint8)
    x, y = filled(tmp_path, packed), tmp_path / "y.npy"
    options = ["--input", f"X={x}", "--output", f"Y:i8{shape}={y}"]
    assert invoke(capsys, "run", program, *options).status == 0
    values = [*range(8), *range(-8, 0)][:count]
    assert np.load(y).reshape(-1).tolist() == values


# Order


def test_a_recorded_order_is_run_again(capsys: Capsys, tmp_path: Path) -> None:
    program, first, again = saved(tmp_path, LOOP), tmp_path / "a.json", tmp_path / "b.json"
    common = ("run", program, "--uninitialized", "zero")
    for seed in range(20):  # one of them leaves program order
        options = ["--schedule", "random", "--seed", str(seed), "--trace", str(first)]
        assert invoke(capsys, *common, *options).status == 0
        order = [row["task"] for row in json.loads(first.read_text())["tasks"]]
        if order != sorted(order):
            break
    assert order != sorted(order)
    outcome = invoke(capsys, *common, "--replay", first, "--trace", again)
    assert outcome.status == 0
    assert again.read_text() == first.read_text()


def test_an_order_that_is_not_legal_is_an_error(capsys: Capsys, tmp_path: Path) -> None:
    program, trace = saved(tmp_path, LOOP), tmp_path / "t.json"
    names = ["t[0]", "t[3]", "t[1]", "t[2]"]
    trace.write_text(json.dumps({"tasks": [{"task": name} for name in names]}))
    outcome = invoke(capsys, "run", program, "--replay", trace, "--uninitialized", "zero")
    assert outcome.status == 1
    assert "error[RUN08]: step 2 of the order is `t[3]`, which must wait" in outcome.out
    assert "ran 1 task of" in outcome.out


def test_a_program_with_errors_is_refused(capsys: Capsys, tmp_path: Path) -> None:
    program = saved(tmp_path, RACE)
    outcome = invoke(capsys, "run", program)
    assert outcome.status == 1
    checked = invoke(capsys, "check", program)
    assert checked.out.rpartition("checked")[0] == outcome.out.rpartition("did not run")[0]
    assert outcome.out.endswith("did not run race: 1 error\n")
    refused = report(invoke(capsys, "run", program, "--format", "json"))
    assert (refused["status"], refused["tasks"], refused["outputs"]) == ("error", 0, {})
    assert [d["code"] for d in refused["diagnostics"]] == ["HAZ01"]


@pytest.mark.parametrize("code", ["HAZ", "haz01"])
def test_a_race_runs_when_it_is_allowed(capsys: Capsys, tmp_path: Path, code: str) -> None:
    program, x = saved(tmp_path, RACE), filled(tmp_path)
    options = ("--allow", code, "--input", f"X={x}")
    outcome = invoke(capsys, "run", program, *options)
    assert (outcome.status, outcome.out) == (0, "ran 2 tasks of race on (no device): completed\n")
    met = report(invoke(capsys, "run", program, *options, "--detect-races", "--format", "json"))
    assert [(d["severity"], d["code"]) for d in met["diagnostics"]] == [("error", "RUN07")]
    assert met["status"] == "completed"
    allowed = (*options, "--allow", "RUN07", "--detect-races")
    assert invoke(capsys, "run", program, *allowed).status == 0


# What goes wrong while it runs


def test_bytes_that_nobody_wrote_are_warned_about(capsys: Capsys, tmp_path: Path) -> None:
    program, y = saved(tmp_path, RELU), tmp_path / "y.npy"
    outcome = invoke(capsys, "run", program, "--output", f"Y={y}")
    assert outcome.status == 0
    assert "warning[INI02]: `u` reads" in outcome.out
    assert "completed; 1 warning\n" in outcome.out
    strict = report(invoke(capsys, "run", program, "--strict", "--format", "json"))
    assert strict["status"] == "error"
    assert [(d["severity"], d["code"]) for d in strict["diagnostics"]] == [("error", "INI02")]


def test_an_output_that_nobody_wrote_is_warned_about(capsys: Capsys, tmp_path: Path) -> None:
    program, y = saved(tmp_path, "buffer Y : DDR (size=4)\n"), tmp_path / "y.npy"
    outcome = invoke(capsys, "run", program, "--output", f"Y={y}")
    assert outcome.out.startswith(
        "warning[INI02]: the host reads `Y`, but nothing has written bytes 0..3\n\nran 0 tasks"
    )
    assert outcome.status == 0
    assert np.load(y).tolist() == [255] * 4
    assert invoke(capsys, "run", program, "--strict", "--output", f"Y={y}").status == 1


def test_a_run_that_stops_writes_its_trace_but_no_output(capsys: Capsys, tmp_path: Path) -> None:
    program, y, trace = saved(tmp_path, DIVIDE), tmp_path / "y.npy", tmp_path / "t.json"
    y.write_text("as it was")
    options = ("--uninitialized", "zero", "--output", f"Y={y}", "--trace", trace)
    outcome = invoke(capsys, "run", program, *options, "--allow", "RUN")
    assert outcome.status == 1
    assert "error[RUN02]: `b` " in outcome.out
    assert outcome.out.splitlines()[-3:-1] == [
        "ran 1 task of divide on (no device): stopped by an error; 1 error, 1 warning",
        f"did not write {y}",
    ]
    assert y.read_text() == "as it was"
    assert [row["task"] for row in json.loads(trace.read_text())["tasks"]] == ["a"]
    assert report(invoke(capsys, "run", program, *options, "--format", "json"))["outputs"] == {}


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "X"], "`X` does not have the form BUF=FILE"),
        (["--input", "=x.npy"], "does not have the form"),
        (["--input", "X="], "does not have the form"),
        (["--input", "X@=x.npy"], "`X@` is neither BUF nor BUF@OFFSET"),
        (["--input", "X@-1=x.npy"], "`X@-1` is neither"),
        (["--input", f"X@{'9' * 5000}=x.npy"], "is neither BUF nor BUF@OFFSET"),
        (["--input", "in=x.npy"], "no buffer `in`; the buffers are `X`, `Y`, `L`"),
        (["--input", "X=x.npy", "--input", "X=x.npy"], "`X` is given two inputs"),
        (["--input", "X=missing.npy"], "nacre: missing.npy does not exist"),
        (["--input", "X=missing.bin"], "nacre: missing.bin does not exist"),
        (["--input", "X=."], "nacre: . is a directory, not a file"),
        (["--input", f"X={'a' * 300}.npy"], "cannot be read (file name too long)"),
        (["--output", "Y"], "does not have the form BUF=FILE, BUF:ELEM=FILE"),
        (["--output", "Q=y.npy"], "the program has no buffer `Q`"),
        (["--output", "Y:i7=y.npy"], "`i7` is no element type; there are i8, i16"),
        (["--output", "Y:bf16=y.npy"], "no bf16; `u8` writes the bytes, `f32` the values"),
        (["--output", "Y:i4=y.npy"], "no i4; `u8` writes the bytes, `i8` the values"),
        (["--output", "Y:i8:8=y.npy"], "`Y` has 64 bytes; 8 of i8 takes 8"),
        (["--output", "Y:f32:8x8=y.npy"], "`Y` has 64 bytes; 8x8 of f32 takes 256"),
        (["--output", "Y:i8:8x=y.npy"], "`8x` is no shape such as 4x16"),
        (["--output", f"Y:i8:{'1x' * 64}64=y.npy"], "a shape of 65 axes"),
        (["--output", "Y:i8:8x8:8=y.npy"], "has more parts than BUF:ELEM:SHAPE"),
        (["--output", "Y=no/y.npy"], "nacre: cannot write no/y.npy: no is no folder"),
        (["--output", "Y=."], "nacre: cannot write .: it is a folder"),
        (["--output", f"Y={'a' * 300}"], "File name too long"),
        (["--output", "Y=y", "--output", "X=y"], "`y` would be written twice"),
        (["--trace", "t.txt"], "a trace ends in .json or .csv, found t.txt"),
        (["--trace", "no/t.csv"], "nacre: cannot write no/t.csv"),
        (["--replay", "missing.json"], "nacre: missing.json does not exist"),
        (["--device", "npm_lit"], "no device `npm_lit`; did you mean `npm_lite`?"),
        (["--allow", "HAZZ"], "no rule or group `HAZZ`"),
        (["--backend", "abacus"], "abacus"),
        (["--ddr-size", "12Q"], "`12Q` is no size such as 4096, 512M or 1G"),
        (["--ddr-size", "0"], "`0` is no size"),
        (["--ddr-size", "9999T"], "of this machine"),
        (["--mode", "quick"], "'quick'"),
        (["--max-instances", "0"], "0 is not in the range"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_wrong_usage_has_status_2_and_says_why(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    program = saved(tmp_path, RELU)
    filled(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    outcome = invoke(capsys, "run", program, *options)
    assert (outcome.status, outcome.out) == (2, ""), outcome.text
    assert message in outcome.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_program_is_wrong_usage(capsys: Capsys, tmp_path: Path) -> None:
    outcome = invoke(capsys, "run", tmp_path / "no.nem")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.endswith("no.nem does not exist\n")


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, a=BYTES)


def _pickled(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)


def _huge(path: Path) -> None:
    """A header that promises far more than the file holds."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999,), }"
    header += b" " * (127 - 10 - len(header)) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("x.npy", lambda p: np.save(p, BYTES[:63]), "`X` has 64 bytes, the data 63"),
        ("x.npy", lambda p: np.save(p, BYTES.astype("i2")), "`X` has 64 bytes, the data 128"),
        ("x.npy", lambda p: np.save(p, np.array(["a" * 16])), "holds <U16, expected numbers"),
        ("x.npy", _pickled, "is no .npy file"),
        ("x.npy", lambda p: p.write_bytes(pickle.dumps([1])), "is no .npy file"),
        ("x.npy", _npz, "holds several arrays, expected one"),
        ("x.npy", _huge, "is no .npy file"),
        ("x.npy", lambda p: p.write_bytes(b""), "is no .npy file"),
        ("x.bin", lambda p: p.write_bytes(bytes(63)), "`X` has 64 bytes, the data 63"),
        ("x.bin", lambda p: p.write_bytes(bytes(65)), "`X` has 64 bytes, `"),
    ],
)
def test_an_input_with_wrong_contents_is_an_error(
    capsys: Capsys,
    tmp_path: Path,
    name: str,
    write: Any,  # noqa: ANN401 - functions that return this or that
    message: str,
) -> None:
    program, path, y = saved(tmp_path, RELU), tmp_path / name, tmp_path / "y.npy"
    write(path)
    outcome = invoke(capsys, "run", program, "--input", f"X={path}", "--output", f"Y={y}")
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.startswith("error[RUN05]: ")
    assert message in outcome.out
    assert outcome.out.endswith("did not run clip: 1 error\n")
    assert not y.exists()


def test_a_part_that_reaches_beyond_its_buffer_is_an_error(capsys: Capsys, tmp_path: Path) -> None:
    program, x = saved(tmp_path, RELU), filled(tmp_path)
    outcome = invoke(capsys, "run", program, "--input", f"X@1={x}")
    assert outcome.status == 1
    assert "`X` has 64 bytes; 64 bytes from offset 1 do not fit" in outcome.out


@pytest.mark.parametrize(
    "text", ["", "{}", '{"tasks": 1}', '{"tasks": [{"task": 1}]}', "[" * 100_000, "\udcff"]
)
def test_a_file_that_is_no_trace_cannot_be_replayed(
    capsys: Capsys, tmp_path: Path, text: str
) -> None:
    program, trace = saved(tmp_path, LOOP), tmp_path / "t.json"
    trace.write_bytes(text.encode("utf-8", "surrogateescape"))
    outcome = invoke(capsys, "run", program, "--replay", trace)
    assert outcome.status == 1
    assert "this is no trace of nacre" in outcome.out


def test_a_trace_of_another_program_cannot_be_replayed(capsys: Capsys, tmp_path: Path) -> None:
    program, trace = saved(tmp_path, LOOP), tmp_path / "t.json"
    trace.write_text('{"tasks": [{"task": "q[0]"}]}')
    outcome = invoke(capsys, "run", program, "--replay", trace)
    assert outcome.status == 1
    assert "error[RUN08]: the order names `q[0]`" in outcome.out


@pytest.mark.parametrize("text", ["", "device d extends nobody {\n}\n"])
def test_a_document_without_a_program_does_not_run(
    capsys: Capsys, tmp_path: Path, text: str
) -> None:
    assert invoke(capsys, "run", saved(tmp_path, text)).status == 1


def test_a_file_that_is_no_text_is_an_error(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "p.nem"
    path.write_bytes(b"\xff\xfe\x00")
    outcome = invoke(capsys, "run", path, "--format", "json")
    assert outcome.status == 1
    assert (report(outcome)["device"], report(outcome)["status"]) == (None, "error")
    assert [d["code"] for d in report(outcome)["diagnostics"]] == ["LEX10"]


def test_a_disk_that_is_full_is_reported(capsys: Capsys, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    program = saved(tmp_path, RELU)
    outcome = invoke(capsys, "run", program, "--uninitialized", "zero", "--output", "Y=/dev/full")
    assert (outcome.status, outcome.err) == (
        1,
        "nacre: cannot write /dev/full: No space left on device\n",
    )


# Start-up and progress


@pytest.mark.parametrize("verb", ["run", "debug"])
def test_help_loads_nothing_heavy(verb: str) -> None:
    code = (
        "import sys\nfrom nacre.cli import main\n"
        f"try:\n    main.run(['{verb}', '--help'])\n"
        "except SystemExit:\n    print([m for m in ('rich', 'readline') if m in sys.modules])\n"
    )
    outcome = nacre(command=("-c", code))
    assert outcome.out.startswith(f"Usage: nacre {verb} [OPTIONS] FILE\n")
    assert outcome.out.endswith("[]\n")


class Terminal:
    """A standard error that somebody watches."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_progress_shows_after_half_a_second_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now, terminal = [100.0], Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress()
    assert progress.is_wanted
    for seconds, taken in ((0.4, 1000), (0.6, 2000), (0.65, 2500), (0.8, 3000)):
        now[0] = 100 + seconds
        progress(taken, 4000)
    progress.clear()
    first, second = "2,000 of 4,000 steps (50 %)", "3,000 of 4,000 steps (75 %)"
    assert terminal.text == f"\r{first}\r{second}\r{' ' * len(first)}\r"


@pytest.mark.heavy("processes of their own")
def test_a_pipe_is_silent_on_demand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NACRE_PROGRESS", "never")
    text = (
        LOOP.replace("[0..3]", "[0..60000]").replace("i * 64", "0").replace("(i mod 2) * 64", "0")
    )
    text = text.replace("(2)", "(1)")
    outcome = nacre("run", saved(tmp_path, text), "--uninitialized", "zero", "--schedule", "random")
    assert (outcome.status, outcome.err) == (0, "")
    assert re.search(r"ran 60001 tasks of .*: completed", outcome.out)


@pytest.mark.heavy("processes of their own")
def test_an_interrupt_stops_a_run_and_writes_nothing(tmp_path: Path) -> None:
    program, y = saved(tmp_path, RELU), tmp_path / "y.npy"
    # The run interrupts itself, as Ctrl-C would in the midst of it.
    code = (
        "import os, signal\n"
        "from nacre.cli import main\nfrom nacre.nem.run.sessions.session import Session\n"
        "Session.run = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "main.run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", str(program), "--output", f"Y={y}"],
        capture_output=True,
        env=environment(),
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"stopped\n")
    assert not y.exists()

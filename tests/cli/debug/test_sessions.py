from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.cli.debug.commands import COMMANDS, find_command, split_command
from nacre.cli.debug.completion import completions
from nacre.cli.debug.debugger import Debugger
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.cli.runner import Outcome, invoke, nacre, nacre_here

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]

# Two tiles: doubled, clipped, stored. Lines matter to what is shown.
PROGRAM = """\
program tiles:
buffer X : DDR (size=8)
buffer Y : DDR (size=8)
buffer L : L1 (size=4)
loop i in [0..1]:
    let x_i = region(X, i * 4, 4) elem=i8, shape=[2, 2], layout=MN
    let y_i = region(Y, i * 4, 4) elem=i8, shape=[2, 2], layout=MN
    let v = region(L, 0, 4) elem=i8, shape=[2, 2], layout=MN

    tX = transfer.async(dst=v, src=x_i)
    tA = add.async in v, v out v deps=[tX]
    tR = relu.async in v out v deps=[tA]
    tS = store.async(dst=y_i, src=v, deps=[tR])
    wait(tS)
endloop
"""
DATA = np.array([1, -2, 3, -4, 5, 6, -7, 8], np.int8)


def prepared(folder: Path, text: str = PROGRAM) -> Path:
    path = folder / "tiles.nem"
    path.write_text(text, encoding="utf-8")
    np.save(folder / "x.npy", DATA)
    return path


def debugged(
    capsys: Capsys, folder: Path, *commands: str, options: tuple[str, ...] = ()
) -> Outcome:
    path = prepared(folder)
    given = [part for command in commands for part in ("--command", command)]
    x = ("--input", f"X={folder}/x.npy")
    return invoke(capsys, "debug", path, *x, "--batch", *options, *given)


def test_the_least_integer_is_read_wherever_a_number_is(tmp_path: Path, capsys: Capsys) -> None:
    least = -(1 << 63)
    said = debugged(
        capsys, tmp_path, f"print {least}", f"break iter {least}", f"print v[{least}]"
    ).out
    assert f"{least} = {least}" in said
    assert f"breakpoint 1: iteration {least}" in said
    assert "selects nothing" not in said


def test_digits_of_other_scripts_are_no_numbers(tmp_path: Path, capsys: Capsys) -> None:
    for command in ("print \u0663", "break \u0663", "list \u0663", "step \u00b2", "back \u0663"):
        assert "error: " in debugged(capsys, tmp_path, command).text, command


@pytest.fixture
def session() -> Session:
    interp = NemInterpreter()
    return interp.start(interp.load_string(PROGRAM), {"X": DATA})


@pytest.fixture
def debugger(capsys: Capsys) -> Debugger:
    interp = NemInterpreter()
    program = interp.load_string(PROGRAM)
    return Debugger(program.source, lambda: NemInterpreter().start(program, {"X": DATA}))


# Whole sessions

FORWARDS = """
help
help break
# a comment, and an empty line

where
step
s 2
tasks
tokens tA
break tS if i == 1
break iter 1
b 12
watch L[0:2] read
watch token tX
stops
c
c
c
delete 2 3 4 5
stops
continue
p y_0
print x_i
print/x Y
who Y
list
until tS
iteration
trace 3
run
step
quit
where
"""

BACKWARDS = """
buffers
break tR
watch v
c
c
back 2
back-until 10
iteration
back-until region y_0
restart
stops
c
delete all
run
back
back-until tA[1]
where
"""

MISTAKES = """
frobnicate
/x v
bac
b
stpe
step x
step 0
step -1
back
break nowhere
break 1
break tA[7]
break if
break tA if spam
watch
watch nothing
delete 9
delete x
print
print nothing
print/q v
print X[4:99]
print y_i[99]
print layer x
stats layer x
break tR if q == 1
stats X
who
who z
until
until tQ
set
set X
set Q=x.npy
set X=missing.npy
set Y=tiles.nem
set X@9=x.npy
list 999
trace t.txt
trace no/t.json
quit now
tokens tQ
back-until
back-until region v if i == 1
help frobnicate
"""


@pytest.mark.heavy("processes of their own")
@pytest.mark.parametrize("name", ["forwards", "backwards", "mistakes"])
def test_a_session_reads_like_this(tmp_path: Path, golden: Callable[..., None], name: str) -> None:
    prepared(tmp_path)
    script = {"forwards": FORWARDS, "backwards": BACKWARDS, "mistakes": MISTAKES}[name]
    outcome = nacre_here(
        "debug", "tiles.nem", "--input", "X=x.npy", cwd=tmp_path, stdin=script[1:].encode()
    )
    assert (outcome.status, outcome.err) == (int(name == "mistakes"), "")
    golden(outcome.out)


def test_what_the_run_finds_is_shown_once_and_again_after_going_back(
    capsys: Capsys, tmp_path: Path
) -> None:
    path = prepared(tmp_path)
    commands = ["step", "step", "step", "back 2", "step 2"]
    given = [part for command in commands for part in ("--command", command)]
    outcome = invoke(capsys, "debug", path, "--batch", *given)
    assert outcome.status == 0
    parts = re.split(r"^\(.*\) (?:step|back).*\n", outcome.out, flags=re.MULTILINE)[1:]
    assert [part.count("warning[INI02]") for part in parts] == [0, 2, 0, 0, 2]


def test_an_input_that_is_set_is_used_and_taken_back(capsys: Capsys, tmp_path: Path) -> None:
    np.save(tmp_path / "two.npy", np.full(2, 0x0202, np.int16))
    commands = [f"set X@0={tmp_path}/two.npy", "print X[0:8]", "iteration", "print y_i"]
    outcome = debugged(capsys, tmp_path, *commands, "back-until tX", "print x_i")
    assert outcome.status == 0
    assert f"X@0 filled from {tmp_path}/two.npy" in outcome.out
    assert "[  2   2   2   2   5   6 249   8]" in outcome.out
    assert "y_i at i=0: i8 [2, 2] in Y[0:4]\n[[4 4]\n [4 4]]" in outcome.out
    assert "x_i at i=0: i8 [2, 2] in X[0:4]\n[[2 2]\n [2 2]]" in outcome.out


def test_a_restart_finds_memory_as_it_was_at_first(capsys: Capsys, tmp_path: Path) -> None:
    outcome = debugged(capsys, tmp_path, "run", "who Y", "restart", "who Y", "who X")
    assert outcome.out.count("bytes 0..7: nobody") == 1
    assert "bytes 0..3: tS[0], line 13, step 4" in outcome.out
    assert outcome.out.endswith("bytes 0..7: host\n")


def test_a_trace_is_written(capsys: Capsys, tmp_path: Path) -> None:
    outcome = debugged(capsys, tmp_path, "run", f"trace {tmp_path}/t.json")
    assert outcome.status == 0
    tasks = json.loads((tmp_path / "t.json").read_text())["tasks"]
    assert [row["task"] for row in tasks][:4] == ["tX[0]", "tA[0]", "tR[0]", "tS[0]"]


def test_types_that_numpy_lacks_are_printed(capsys: Capsys, tmp_path: Path) -> None:
    text = (
        "buffer X : DDR (size=8)\nbuffer Y : DDR (size=4)\n"
        "let a = region(X, 0, 8) elem=bf16, shape=[4], layout=C\n"
        "let b = region(Y, 0, 4) elem=i4, shape=[8], layout=C\n"
        "t = transfer.sync(dst=region(Y, 0, 4), src=region(X, 0, 4))\n"
    )
    path = prepared(tmp_path, text)
    np.array([0x3FC0, 0xC000, 0, 0xFFFF], np.uint16).tofile(tmp_path / "x.bin")
    options = ("--input", f"X={tmp_path}/x.bin", "--command", "print a", "--command", "run")
    outcome = invoke(capsys, "debug", path, *options, "--command", "print b", "--batch")
    assert "a: bf16 [4] in X[0:8]\n[ 1.5 -2.   0.   nan]\n" in outcome.out
    assert "b: i4 [8] in Y[0:4]\n[ 0 -4 -1  3  0  0  0 -4]\n" in outcome.out


QUANTISED = """\
program q:
buffer X : DDR (size=8)
buffer Y : DDR (size=8)
let x = region(X, 0, 8) elem=i8, shape=[2, 4], layout=MN, quant=per_tensor(scale=0.5, zero_point=1)
let f = region(Y, 0, 8) elem=f16, shape=[4], layout=C
t = transfer.sync(dst=region(Y, 0, 8), src=region(X, 0, 8))
"""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("print x[0, 1:3]", "x[0, 1:3]: i8 [2] in X[1:3]\n[-2  3]\n"),
        ("print/d x[0]", "x[0]: i8 [4] in X[0:4], dequantised\n[ 0.  -1.5  1.  -2.5]\n"),
        ("print/x x[:, 1]", "x[:, 1]: i8 [2] in X[1:2, 5:6]\n00000001  fe\n00000005  06\n"),
        ("print max(x) - 1", "max(x) - 1 = 126\n"),
        ("stats x", "min -128, max 127, mean 1, 2 of 8 saturated (25.0%)\n"
                    "dequantised: min -64.5, max 63, mean 0\n"),
        ("stats f", "none of 4 elements has been written\n"),
        ("compare x=same.npy", "same.npy: all 8 elements are equal\n"),
        ("compare x real.npy", "x: i8 [2, 4] in X[0:8], dequantised\nreal.npy: 1 of 8 elements "
         "differ; the first at [1, 2] is -64.5, expected -64; the largest error is 0.5 at [1, 2]"),
        ("compare x = real.npy within 0.5", "real.npy: all 8 elements are within the tolerance; "
                                            "the largest error is 0.5 at [1, 2]\n"),
    ],
)  # fmt: skip
def test_values_are_shown_in_many_ways(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    shown: str,
) -> None:
    outcome = look_at_values(capsys, tmp_path, monkeypatch, command)
    assert (outcome.status, outcome.err) == (0, "")
    assert shown in outcome.out


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("print/d f", "`f` has no `quant`"), ("print/x 3 + 4", "`/x` goes with a region"),
        ("print nothing[0", "is no expression"), ("print f +", "is no expression"),
        ("compare x=missing.npy", "missing.npy does not exist"),
        ("compare x", "the form REGION=FILE"),
        ("compare x=tiles.nem", "is no .npy file"), ("compare f=same.npy", "has shape [2, 4]"),
        ("compare x=same.npy within x", "the tolerance is `x`"),
        ("compare x=text.npy", "expected numbers"),
        ("compare x=real.npy within 0.1", "1 of 8 elements differ"), ("stats", "needs a region"),
        ("watch x if max >", "is no condition"), ("watch x[0, 9]", "axis 1 of `x` has 4 elements"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    says: str,
) -> None:
    outcome = look_at_values(capsys, tmp_path, monkeypatch, command)
    assert (outcome.status, outcome.err) == (1, "")
    assert says in outcome.out


def look_at_values(
    capsys: Capsys, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> Outcome:
    monkeypatch.chdir(folder)
    path = prepared(folder, QUANTISED)
    data = np.array([1, -2, 3, -4, 5, 6, -128, 127], np.int8).reshape(2, 4)
    real = (data.astype(np.float32) - 1) * 0.5
    real[1, 2] = -64
    np.save("same.npy", data)
    np.save("real.npy", real)
    np.save("text.npy", np.array(["a"] * 8))
    data.tofile("x.bin")
    return invoke(capsys, "debug", path, "--batch", "--input", "X=x.bin", "--command", command)


def test_a_watch_with_a_condition_survives_a_restart(capsys: Capsys, tmp_path: Path) -> None:
    commands = ["watch v if max > 12", "c", "restart", "stops", "c"]
    outcome = debugged(capsys, tmp_path, *commands)
    label = "watchpoint 1: write of v at i=0, bytes L[0:4] if max > 12"
    assert outcome.out.count(f"{label} by tA[1]; next is tR[1]") == 2
    assert outcome.status == 0


# Status


@pytest.mark.parametrize(
    ("commands", "status"),
    [(["step"], 0), (["run"], 0), (["step", "nonsense", "run"], 1), (["break 99"], 1)],
)
def test_the_status_of_a_batch_says_whether_a_command_failed(
    capsys: Capsys, tmp_path: Path, commands: list[str], status: int
) -> None:
    assert debugged(capsys, tmp_path, *commands).status == status


def test_a_run_that_ends_in_an_error_says_so(capsys: Capsys, tmp_path: Path) -> None:
    path = prepared(tmp_path, PROGRAM)
    options = ("--strict", "--batch", "--command", "run", "--command", "step")
    outcome = invoke(capsys, "debug", path, *options)
    assert outcome.status == 1
    assert "error after 1 of 10 steps\nerror[INI02]" in outcome.out
    assert "\n(error) step\nerror after 1 of 10 steps\n" in outcome.out
    outcome = invoke(capsys, "debug", path, *options, "--command", "back")
    assert outcome.status == 0
    assert outcome.out.endswith(
        "took back tX[0]; next is tX[0]\n    10 |     tX = transfer.async(dst=v, src=x_i)\n"
    )


def test_a_program_with_errors_is_refused(capsys: Capsys, tmp_path: Path) -> None:
    path = prepared(tmp_path, PROGRAM.replace("deps=[tA]", ""))
    outcome = invoke(capsys, "debug", path, "--batch")
    assert outcome.status == 1
    assert "error[HAZ" in outcome.out
    assert outcome.out.splitlines()[-1].startswith(f"did not start {path}: ")
    assert invoke(capsys, "debug", path, "--batch", "--allow", "HAZ").status == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "Q=x.npy"], "the program has no buffer `Q`"),
        (["--ddr-size", "9999T"], "of this machine"),
        (["--device", "npm_lit"], "no device `npm_lit`"),
        (["--mode", "timed", "--schedule", "random"], "both decide the order"),
        (["--mode", "timed", "--replay", "trace.json"], "--replay gives an order"),
    ],
)
def test_wrong_usage_has_status_2(
    capsys: Capsys, tmp_path: Path, options: list[str], message: str
) -> None:
    outcome = invoke(capsys, "debug", prepared(tmp_path), "--batch", *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_commands_that_are_no_text_are_mistakes(tmp_path: Path) -> None:
    prepared(tmp_path)
    script = b"\xff\xfe\nprint \x1b[2J\n" + b"x" * 200_000 + b"\nstep\n"
    outcome = nacre("debug", "tiles.nem", "--input", "X=x.npy", cwd=tmp_path, stdin=script)
    assert (outcome.status, outcome.err) == (1, "")
    assert "\x1b" not in outcome.out
    assert "tX[0] completed; next is tA[0]" in outcome.out


def test_a_timed_run_goes_past_steps_that_have_only_started(capsys: Capsys, tmp_path: Path) -> None:
    outcome = debugged(capsys, tmp_path, "step", "run", options=("--mode", "timed"))
    assert outcome.status == 0
    assert "tX[0] waiting; next is tA[0]" in outcome.out
    assert outcome.out.endswith("finished after 10 of 10 steps\n")


def test_a_closed_standard_input_ends_the_session(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    code = (
        "import os, sys; os.close(0); "
        f"os.execv(sys.executable, [sys.executable, '-m', 'nacre', 'debug', {str(path)!r}])"
    )
    outcome = nacre(command=("-c", code))
    assert (outcome.status, outcome.err) == (0, "")


# Commands


def test_names_and_letters_of_commands_are_distinct() -> None:
    names = [name for c in COMMANDS for name in (c.name, c.alias) if name is not None]
    assert len(names) == len(set(names))
    assert all(
        find_command(name).name == c.name for c in COMMANDS for name in (c.name, c.alias or c.name)
    )


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("ste", "step"), ("cont", "continue"), ("bac", None), ("back", "back"), ("st", None),
        ("t", "trace"), ("to", "tokens"), ("sto", "stops"), ("back-", "back-until"), ("z", None),
    ],
)  # fmt: skip
def test_a_command_may_be_cut_short(word: str, name: str | None) -> None:
    if name is not None:
        assert find_command(word).name == name
        return
    with pytest.raises(InputError):
        find_command(word)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("", ("", "")),
        ("  step  3 ", ("step", "3")),
        ("print/x A[0:4]", ("print", "/x A[0:4]")),
        ("set A=/b", ("set", "A=/b")),
    ],
)
def test_a_line_is_a_command_and_its_argument(line: str, parts: tuple[str, str]) -> None:
    assert split_command(line) == parts


# Completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("st", ["step ", "stops ", "stats "]),
        ("  back-", ["back-until "]),
        ("zz", []),
        ("break t", ["tX", "tA", "tR", "tS"]),
        ("break tA i", ["iter ", "if "]),
        ("b wait", ["wait@14"]),
        ("print ", ["x_i", "y_i", "v", "X", "Y", "L", "i"]),
        ("break tA if x", ["x_i"]),
        ("watch v if m", ["min", "max", "mean"]),
        ("compare y_i=s", ["sub/"]),
        ("print/x x", ["x_i"]),
        ("p Y", ["Y"]),
        ("watch to", ["token "]),
        ("watch token tX", ["tX"]),
        ("who L", ["L"]),
        ("help qu", ["quit"]),
        ("delete a", ["all "]),
        ("step ", []),
        ("zzz t", []),
        ("st t", []),
        ("set X", ["X"]),
        ("set X=s", ["sub/"]),
        ("set X=sub/", ["sub/a.npy", "sub/b.bin"]),
        ("trace s", ["sub/"]),
        ("trace [", []),
    ],
)
def test_the_tab_key_offers_what_fits(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.npy").touch()
    (tmp_path / "sub/b.bin").touch()
    monkeypatch.chdir(tmp_path)
    word = re.split(r"[\s=]", line)[-1]
    assert completions(line, word, session) == offered

"""What if for windows, rings, constants and engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.diagnostics import InputError
from nacre.nem.api.program_changes import change_source
from neminterp import NemInterpreter
from tests.cli.runner import invoke

RING = """\
program ring:
const T = 8
buffer X : L2 (size=8 * 64)
buffer Y : L2 (size=8 * 64)
buffer R : L1 (size=2 * 64)
loop i in [0..T - 1] @max_in_flight({window}):
    let s = region(R, (i mod {slots}) * 64, 64) elem=i8, shape=[64], layout=C
    tX = transfer.async(dst=s, src=region(X, i * 64, 64))
    tR = relu.async in s out s deps=[tX]
    tS = store.async(dst=region(Y, i * 64, 64), src=s, deps=[tR])
endloop
"""


def written(window: int, slots: int, size: int = 0) -> str:
    text = RING.replace("{window}", str(window)).replace("{slots}", str(slots))
    return text.replace("size=2 * 64", f"size={(size or slots) * 64}")


def cycles(text: str, changes: dict[str, int] | None = None) -> int:
    interpreter = NemInterpreter()
    return interpreter.time(interpreter.load_string(text), changes=changes).cycles


@pytest.mark.parametrize(
    ("changes", "same_as"),
    [
        ({"loop.i.max_in_flight": 1}, written(1, 2)),
        ({"loop.i.max_in_flight": 4, "ring.R": 4}, written(4, 4)),
        ({"const.T": 4}, written(2, 2).replace("const T = 8", "const T = 4")),
        ({"buffer.R.size": 4096}, written(2, 2, 64)),
    ],
)
def test_a_change_is_what_writing_it_would_be(changes: dict[str, int], same_as: str) -> None:
    assert cycles(written(2, 2), changes) == cycles(same_as)


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_packed_program_is_changed_as_its_text_is(
    is_beside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dev.nem").write_text('include "npm4k.nem"\ndevice mine extends npm4k {}\n')
    text = 'include "dev.nem"\ndevice mine\n' + written(2, 2)
    text = text.replace(", ", " ,").replace(" @max_in_flight(2)", "  ")
    (tmp_path / "p.nem").write_text(text)
    away = tmp_path / "away/p.nemb" if not is_beside else tmp_path / "p.nemb"
    away.parent.mkdir(exist_ok=True)
    assert invoke(capsys, "pack", tmp_path / "p.nem", "-o", away).status == 0
    if not is_beside:
        (tmp_path / "dev.nem").rename(tmp_path / "other.nem")
    interpreter = NemInterpreter()
    program = interpreter.load(away)
    for changes in ({"loop.i.max_in_flight": 1}, {"const.T": 4}, {"buffer.R.size": 4096}):
        plain = cycles(
            text.replace('include "dev.nem"\ndevice mine\n', 'include "npm4k.nem"\ndevice npm4k\n'),
            changes,
        )
        assert interpreter.time(program, changes=changes).cycles == plain


def test_a_loop_without_a_window_gets_one() -> None:
    plain = written(2, 2).replace(" @max_in_flight(2)", "")
    assert cycles(plain, {"loop.i.max_in_flight": 2}) == cycles(written(2, 2)) < cycles(plain)


def test_a_window_that_the_ring_does_not_hold_is_a_race() -> None:
    with pytest.raises(InputError) as caught:
        cycles(written(2, 2), {"loop.i.max_in_flight": 3})
    assert {d.code for d in caught.value.diagnostics} == {"HAZ06"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"loop.j.max_in_flight": 2}, "did you mean `loop.i.max_in_flight`?"),
        ({"ring.X": 2}, "the offsets in `X` have no one number of slots"),
        ({"const.t": 2}, "did you mean `const.T`?"),
        ({"loop.i.max_in_flight": -1}, "expected an integer from 0 on"),
        ({"ring.R": 0}, "is no ring of 2 slots"),
    ],
)
def test_what_cannot_be_changed_is_said(changes: dict[str, int], says: str) -> None:
    with pytest.raises(InputError) as caught:
        cycles(written(2, 2), changes)
    assert says in caught.value.diagnostics[0].message


ENGINES = """\
device "nem_reference"
buffer A : DDR (size=65536)
buffer B : L2 (size=65536)
t = transfer.async(dst=region(B, 0, 16384), src=region(A, 0, 16384)){t}
u = transfer.async(dst=region(B, 16384, 16384), src=region(A, 16384, 16384)){u}
"""
VECTORS = """\
device "nem_reference"
buffer L : L2 (size=64)
let X = region(L, 0, 64) elem=i8, shape=[64], layout=C
v = relu.async in X out X @seq_engine(0)
"""


@pytest.mark.parametrize(("before", "engine"), [("", 0), ("", 1), (" @seq_engine(0)", 1)])
def test_a_task_may_run_on_another_engine(before: str, engine: int) -> None:
    text = ENGINES.format(t=" @seq_engine(0)", u=before)
    changed = ENGINES.format(t=" @seq_engine(0)", u=f" @seq_engine({engine})")
    assert cycles(text, {"task.u.seq_engine": engine}) == cycles(changed)


def test_a_decorator_behind_the_last_operand_is_replaced_not_doubled() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(VECTORS).plan.program
    changed = change_source(program, {"task.v.seq_engine": 1}).text
    assert changed == VECTORS.replace("@seq_engine(0)", "@seq_engine(1)")


@pytest.mark.parametrize("engine", [99, -1])
def test_an_engine_that_the_device_lacks_is_found(engine: int) -> None:
    with pytest.raises(InputError):
        cycles(ENGINES.format(t="", u=""), {"task.u.seq_engine": engine})

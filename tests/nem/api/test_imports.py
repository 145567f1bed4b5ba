"""Imported buffers: their contents belong to the host, which says what may be done with them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import Diagnostic
from neminterp import InputError, NemInterpreter
from tests.cli.runner import invoke

COPY = """\
buffer W : DDR (size=8)
buffer Y : L2 (size=8)
t = transfer.sync(dst=region(Y, 0, 4), src=region(W, 0, 4))
u = transfer.sync(dst=region(Y, 4, 4), src=region(W, 4, 4))
"""
BACK = COPY + "v = transfer.sync(dst=region(W, 0, 8), src=region(Y, 0, 8))\n"
DATA = np.arange(8, dtype=np.uint8)


def _codes(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [d.code for d in error.value.diagnostics]


@pytest.mark.parametrize("imports", [["W"], "W", {"W": ""}])
def test_a_read_only_import_may_be_read_and_not_written(imports: object) -> None:
    assert nacre.nem.check(COPY, imports=imports) == []  # type: ignore[arg-type]
    found = nacre.nem.check(BACK, imports=imports)  # type: ignore[arg-type]
    assert [(d.code, d.location.line) for d in found] == [("BUF11", 5)]
    interp = NemInterpreter()
    with pytest.raises(InputError) as caught:
        interp.run(interp.load_string(BACK), {"W": DATA}, imports=imports)  # type: ignore[arg-type]
    assert _codes(caught) == ["BUF11"]


@pytest.mark.parametrize("imports", [["W:mutable"], {"W": "mutable"}, ["W", "W:mutable"]])
def test_a_mutable_import_may_be_written(imports: object) -> None:
    assert nacre.nem.check(BACK, imports=imports) == []  # type: ignore[arg-type]
    interp = NemInterpreter()
    program = interp.load_string(BACK, imports=imports)  # type: ignore[arg-type]
    assert interp.validate(program) == []
    result = interp.run(program, {"W": DATA})
    assert result.read_buffer("W") == DATA.tobytes()


def test_an_import_must_hold_something_when_the_run_starts() -> None:
    interp = NemInterpreter()
    program = interp.load_string(COPY, imports=["W"])
    for inputs, missing in (({}, "0..7"), ({"W@0": DATA[:4]}, "4..7")):
        with pytest.raises(InputError) as caught:
            interp.run(program, inputs)
        assert _codes(caught) == ["RUN05"]
        assert f"bytes {missing}" in caught.value.diagnostics[0].message
    interp.ddr_write(0, DATA.tobytes())  # the other way to give it
    assert interp.run(program).status == "completed"


def test_a_read_only_import_does_not_change_while_the_program_runs() -> None:
    interp = NemInterpreter()
    session = interp.start(interp.load_string(COPY, imports=["W"]), {"W": DATA})
    session.write_buffer("W", DATA[::-1])  # before the first step
    session.step()
    with pytest.raises(InputError) as caught:
        session.write_buffer("W@4", DATA[:4])
    assert _codes(caught) == ["RUN05"]
    session.run()
    assert session.read_buffer("Y") == DATA[::-1].tobytes()
    session.write_buffer("W", DATA)  # it is the host's again


DDR_COPY = """buffer D : DDR (size=8)
buffer Z : DDR (size=8)
buffer Y : L2 (size=8)
t0 = transfer.sync(dst=region(Y, 0, 4), src=region(D, 0, 4))
t1 = transfer.sync(dst=region(Y, 4, 4), src=region(D, 4, 4))
"""


def test_ddr_of_a_read_only_import_does_not_change_by_any_way() -> None:
    interp = NemInterpreter()
    session = interp.start(interp.load_string(DDR_COPY, imports=["D"]), {"D": b"\1" * 8})
    interp.ddr_write(0, b"\2" * 8)  # before the first step
    session.step()
    for offset, data in ((0, b"\7"), (7, b"\7\7"), (0, bytes(16))):
        with pytest.raises(InputError) as caught:
            interp.ddr_write(offset, data)
        assert _codes(caught) == ["RUN05"]
    with pytest.raises(InputError):
        interp.ddr_write_tensor(4, np.zeros(1, np.int8))
    interp.ddr_write(8, b"\3" * 8)  # beside it
    session.run()
    assert session.read_buffer("Y") == b"\2" * 8
    interp.ddr_write(0, b"\4" * 8)  # it is the host's again
    other = interp.start(interp.load_string(DDR_COPY, imports=["D"]))
    other.step()
    other.close()
    interp.ddr_write(0, b"\5" * 8)


def test_ddr_of_a_mutable_import_may_change() -> None:
    interp = NemInterpreter()
    session = interp.start(interp.load_string(DDR_COPY, imports=["D:mutable"]), {"D": b"\1" * 8})
    session.step()
    interp.ddr_write(4, b"\7" * 4)
    session.run()
    assert session.read_buffer("Y") == b"\1" * 4 + b"\7" * 4


def test_l1_that_the_host_imports_holds_something() -> None:
    text = "buffer P : L1 (size=4)\nbuffer Y : L2 (size=4)\n" \
        "s = store.sync(dst=region(Y, 0, 4), src=region(P, 0, 4))\n"  # fmt: skip
    assert [d.code for d in nacre.nem.check(text)] == ["INI01"]
    assert nacre.nem.check(text, imports=["P"]) == []


@pytest.mark.parametrize("wrong", ["W:shared", ":mutable", "", "W:mutable:mutable"])
def test_an_import_that_means_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: str
) -> None:
    with pytest.raises(InputError) as caught:
        nacre.nem.check(COPY, imports=[wrong])
    assert _codes(caught) == ["RUN05"]
    file = tmp_path / "p.nem"
    file.write_text(COPY)
    assert invoke(capsys, "check", file, "--import", wrong).status == 2


def test_the_command_line_marks_imports(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, data = tmp_path / "p.nem", tmp_path / "w.npy"
    file.write_text(BACK)
    np.save(data, DATA)
    given = ("--input", f"W={data}")
    assert "error[BUF11]" in invoke(capsys, "check", file, "--import", "W").out
    assert "error[BUF11]" in invoke(capsys, "run", file, "--import", "W", *given).out
    assert invoke(capsys, "run", file, "--import", "W:mutable", *given).status == 0
    assert "error[RUN05]" in invoke(capsys, "run", file, "--import", "W:mutable").out
    shown = invoke(
        capsys, "debug", file, "--import", "W:mutable", *given, "--batch", "--command", "buffers"
    )
    assert "imported" in shown.out


def _random_body(chance: random.Random) -> str:
    lines = ["buffer A : L2 (size=64)", "buffer B : L2 (size=64)", "buffer M : L2 (size=4096)"]
    names: list[str] = []
    for number in range(chance.randrange(2, 7)):
        buffer, name = chance.choice("AB"), f"t{number}"
        region, other = f"region({buffer}, 0, 4)", f"region(M, {64 * number}, 4)"
        dst, src = (region, other) if chance.random() < 0.6 else (other, region)
        deps = [n for n in names if chance.random() < 0.5]
        lines.append(f"{name} = transfer.async(dst={dst}, src={src}, deps=[{', '.join(deps)}])")
        names.append(name)
    return "\n".join(lines) + "\n"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(20))
def test_imports_that_alias_are_found_as_one_buffer_would_be(seed: int) -> None:
    """Two imports against one buffer in their place: the pairs across are hazards of that one."""
    text = _random_body(random.Random(seed))
    assert "HAZ08" not in {d.code for d in nacre.nem.check(text)}
    found = nacre.nem.check(text, imports=["A:mutable", "B:mutable"])
    across = _pairs([d for d in found if d.code == "HAZ08"])
    one = _pairs(nacre.nem.check(text.replace("region(B,", "region(A,")))
    assert across >= one - _pairs(nacre.nem.check(text))
    for pair in across:
        touched = " ".join(text.split("\n")[line - 1] for line in pair)
        assert "region(A" in touched
        assert "region(B" in touched


def _pairs(found: list[Diagnostic]) -> set[tuple[int, int]]:
    hazards = [d for d in found if d.code.startswith("HAZ")]
    return {(d.location.line, d.related[0].span.location.line) for d in hazards}

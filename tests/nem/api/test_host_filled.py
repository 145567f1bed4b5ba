"""L1 that the host fills holds something: INI01 is about the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.nem.api import NemInterpreter
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]

TEXT = """
buffer A : L2 (size=64)
buffer B : L1 (size=64)
buffer C : L1 (size=64)
let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
r = relu.sync in X out X
s = store.sync(dst=region(A, 0, 64), src=X)
"""
OTHER = TEXT + "u = store.sync(dst=region(A, 0, 64), src=region(C, 0, 64))\n"
VALUES = np.arange(-32, 32, dtype=np.int8)


def codes(found: list[str] | tuple[object, ...]) -> list[str]:
    return [str(getattr(d, "code", d)) for d in found]


def test_without_host_an_operation_in_place_reads_nothing() -> None:
    interp = NemInterpreter()
    assert codes(tuple(interp.validate(interp.load_string(TEXT)))) == ["INI01"]


@pytest.mark.parametrize("name", ["B", "B@0"])
def test_a_buffer_that_the_host_fills_is_no_finding(name: str) -> None:
    interp = NemInterpreter(strict=True)
    program = interp.load_string(TEXT)
    with pytest.raises(InputError) as refused:
        interp.run(program)
    assert codes(tuple(refused.value.diagnostics)) == ["INI01"]
    result = interp.run(program, {name: VALUES})
    assert (result.status, list(result.diagnostics)) == ("completed", [])
    assert np.array_equal(np.frombuffer(result.read_buffer("A"), np.int8), np.maximum(VALUES, 0))


def test_other_buffers_stay_findings() -> None:
    interp = NemInterpreter(strict=True)
    with pytest.raises(InputError) as refused:
        interp.run(interp.load_string(OTHER), {"B": VALUES})
    (found,) = refused.value.diagnostics
    assert found.code == "INI01"
    assert "`C`" in found.message


def test_the_command_line_knows_what_it_fills(capsys: Capsys, tmp_path: Path) -> None:
    program, x, y = tmp_path / "p.nem", tmp_path / "x.npy", tmp_path / "y.npy"
    program.write_text(TEXT)
    np.save(x, VALUES)
    asked = ("run", program, "--strict", "--output", f"A:i8={y}")
    refused = invoke(capsys, *asked)
    assert refused.status == 1
    assert "INI01" in refused.text
    done = invoke(capsys, *asked, "--input", f"B={x}")
    assert done.status == 0
    assert "INI01" not in done.text
    assert np.array_equal(np.load(y), np.maximum(VALUES, 0))

"""Elements of 4 bits between bytes: strides that begin at odd ones, parts, files without a type."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.kernels.interface.call import Array
from neminterp import NemInterpreter
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]
seeds = st.integers(0, 1 << 32)


def nibble(data: bytes, number: int) -> int:
    """The element of that number, counted from the first byte."""
    found = data[number // 2] >> 4 * (number % 2) & 15
    return found - 16 if found > 7 else found


# Products with weights that lie between bytes

PRODUCT = """
buffer W : L1 (size=64)
buffer X : L1 (size=64)
buffer Y : L1 (size=64)
let A = region(X, 0, 8) elem=i8, shape=[2, 4], layout=MK,
    quant=per_tensor(scale=1.0, zero_point=0)
let B = region(W, {offset}, {extent}) elem=i4, shape=[4, 3], strides={strides},
    quant=per_tensor(scale=1.0, zero_point=0)
let C = region(Y, 0, 6) elem=i8, shape=[2, 3], layout=MN,
    quant=per_tensor(scale=2.0, zero_point=0)
t = gemm.sync in A, B out C accum_type=i32
"""


@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("strides", [(3, 1), (5, 1), (7, 2), (1, 5), (1, 4), (9, 3)])
def test_weights_of_4_bits_are_found_at_odd_elements(strides: tuple[int, int], offset: int) -> None:
    extent = (3 * strides[0] + 2 * strides[1]) // 2 + 1
    draw = np.random.default_rng(7)
    x, w = draw.integers(-9, 9, 64).astype(np.int8), draw.bytes(64)
    interp = NemInterpreter(device="nem_reference")
    text = PRODUCT.format(offset=offset, extent=extent, strides=list(strides))
    result = interp.run(interp.load_string(text), {"X": x, "W": w, "Y": bytes(64)})
    assert result.status == "completed", result.diagnostics
    found = np.frombuffer(result.read_buffer("Y"), np.int8)[:6]
    for row, column in product(range(2), range(3)):
        total = sum(
            int(x[4 * row + k]) * nibble(w[offset:], k * strides[0] + column * strides[1])
            for k in range(4)
        )
        half = total / 2
        assert abs(int(found[3 * row + column]) - max(-128, min(127, half))) <= 0.5


# What the host gives for a part of a buffer

COPY = """
buffer A : L2 (size=8)
buffer B : L1 (size=8)
let X = region(A, 0, 8) elem=i4, shape=[16], layout=C
let Y = region(B, 0, 8) elem=i4, shape=[16], layout=C
t = transfer.sync(dst=Y, src=X)
"""
VALUES = np.array([1, -2, 3, -4], np.int8)


def copied(inputs: dict[str, object]) -> list[int]:
    interp = NemInterpreter()
    given: dict[str, Any] = {"A": bytes(8), **inputs}
    result = interp.run(interp.load_string(COPY), given)
    assert result.status == "completed", result.diagnostics
    return [int(value) for value in np.asarray(result.read_region("Y"))]


@pytest.mark.parametrize("offset", [0, 1, 5])
@pytest.mark.parametrize("route", ["int4", "file", "bytes", "uint8"])
def test_a_part_holds_the_elements_that_were_given(route: str, offset: int) -> None:
    packed = bytes([0xE1, 0xC3])
    data: dict[str, object] = {
        "int4": VALUES.astype(ml_dtypes.int4),
        "file": VALUES.astype(ml_dtypes.int4).view("V1"),
        "bytes": packed,
        "uint8": np.frombuffer(packed, np.uint8),
    }
    wanted = [0] * (2 * offset) + [1, -2, 3, -4] + [0] * (12 - 2 * offset)
    assert copied({f"A@{offset}": data[route]}) == wanted


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint16", "bool"])
def test_a_part_in_integers_of_whole_bytes_is_refused(dtype: str) -> None:
    """They could be bytes, or elements: nobody can tell which."""
    with pytest.raises(InputError) as caught:
        copied({"A@1": np.abs(VALUES[:2]).astype(dtype)})
    (found,) = caught.value.diagnostics
    assert found.code == "RUN05"
    assert found.message == f"`A` holds i4, and a part of it is given as {dtype}"
    assert "`ml_dtypes.int4`" in (found.help or "")


def test_a_part_of_another_type_takes_the_bytes_of_any_array() -> None:
    text = COPY.replace("elem=i4, shape=[16]", "elem=i8, shape=[8]")
    interp = NemInterpreter()
    result = interp.run(interp.load_string(text), {"A": bytes(8), "A@2": VALUES})
    assert np.asarray(result.read_region("Y")).tolist() == [0, 0, 1, -2, 3, -4, 0, 0]


def test_a_file_part_whose_bytes_are_no_nibbles_is_refused() -> None:
    with pytest.raises(InputError, match="does not fit: a byte of int4 is 0 to 15, found 31"):
        copied({"A@1": np.full(2, 31, np.uint8).view("V1")})


# DDR


def test_ddr_refuses_elements_whose_type_a_file_lost(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES.astype(ml_dtypes.int4))
    interp = NemInterpreter(ddr_size=64)
    array = np.load(tmp_path / "x.npy")
    calls: list[Callable[[], None]] = [
        lambda: interp.ddr_load_npy(0, tmp_path / "x.npy"),
        lambda: interp.ddr_load_file(0, tmp_path / "x.npy"),
        lambda: interp.ddr_write_tensor(0, array),
        lambda: interp.ddr_write(0, array),
    ]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        (found,) = caught.value.diagnostics
        assert (found.code, "type is lost" in found.message) == ("RUN05", True)
        assert "view(ml_dtypes.int4)" in (found.help or "")
    interp.ddr_write_tensor(1, array.view(ml_dtypes.int4))
    assert interp.ddr_read(0, 4)[1:3] == bytes([0xE1, 0xC3])


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("step", [1, 2, 3, -1])
def test_ddr_packs_arrays_that_are_views_of_others(dtype: str, step: int) -> None:
    whole: Array = np.arange(15).astype(np.int8).astype(getattr(ml_dtypes, dtype)).reshape(3, 5)
    view = whole.T[::step]
    interp = NemInterpreter(ddr_size=64)
    interp.ddr_write_tensor(3, view)
    found = interp.ddr_read_tensor(3, view.shape, view.dtype)
    assert found.astype(int).tolist() == view.astype(int).tolist()


# What people see


@given(st.integers(0, 15), st.integers(1, 16), st.integers(1, 3), seeds)
def test_a_selection_begins_at_any_element(low: int, count: int, step: int, seed: int) -> None:
    high = min(low + count, 16)
    data = np.random.default_rng(seed).bytes(8)
    interp = NemInterpreter()
    session = interp.start(interp.load_string(COPY), {"A": data})
    session.run()
    found = session.select(f"Y[{low}:{high}:{step}]")
    wanted = [nibble(data, number) for number in range(low, high, step)]
    assert np.asarray(session.read_selection(found)).tolist() == wanted
    touched = {byte for first, last in found.runs for byte in range(first, last)}
    assert touched == {number // 2 for number in range(low, high, step)}


def test_the_debugger_shows_elements_of_4_bits(capsys: Capsys, tmp_path: Path) -> None:
    text = COPY.replace("region(B, 0, 8) elem=i4, shape=[16], layout=C",
                        "region(B, 0, 8) elem=i4, shape=[3, 3], strides=[5, 1]")  # fmt: skip
    text = text.replace("transfer.sync(dst=Y, src=X)",
                        "transfer.sync(dst=region(B, 0, 8), src=region(A, 0, 8))")  # fmt: skip
    (tmp_path / "p.nem").write_text(text)
    np.save(tmp_path / "a.npy", (np.arange(16) - 8).astype(ml_dtypes.int4))
    asked = ["run", "print Y", "print Y[1, 1:3]", "print /x Y[1, 1:3]", "stats Y"]
    options = [part for command in asked for part in ("--command", command)]
    done = invoke(capsys, "debug", tmp_path / "p.nem", "--input", f"A={tmp_path / 'a.npy'}",
                  *options, "--batch")  # fmt: skip
    assert done.status == 0, done.text
    rows = [[number - 8 for number in range(5 * row, 5 * row + 3)] for row in range(3)]
    shown = "\n".join(line.strip() for line in done.out.splitlines())
    assert "\n".join(str(np.array(rows)).replace("\n ", "\n").splitlines()) in shown
    assert "Y[1, 1:3]: i4 [2] in B[3:4]\n[-2 -1]" in done.out
    assert "00000003  fe" in done.out
    assert "min -8, max 4" in done.out

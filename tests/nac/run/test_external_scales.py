"""Scales of weights beside the file, where they are too many to stand as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.format.file import to_bytes
from nacre.nac.program.assembly import Assembler
from nacre.nac.quantise.apply import quantise

ROWS, COLUMNS = 160, 8  # more rows than scales that stand as text in any file
KEY = "nac_quant_meta"
SCALED = ("int8_channel", "block_fp8", "int4_group")
X = np.linspace(-1, 1, 2 * COLUMNS, dtype=np.float32).reshape(2, COLUMNS)


def two_linears(rows: int, columns: int) -> Module:
    rng = np.random.default_rng(3)
    build = Builder()
    value = build.input("x", "f32", (2, columns))
    for shape in ((rows, columns), (columns, rows)):
        weight = build.constant(rng.standard_normal(shape, np.float32))
        value = build.add("Relu", build.add("Linear", value, weight))
    return build.module(value)


@pytest.fixture
def are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is small: lists that are not short stand as tensors."""
    monkeypatch.setattr("nacre.nac.format.external_scales._MOST_AS_TEXT", 0)


def entries(path: Path) -> dict[str, dict[str, Any]]:
    header = read_header(path)
    found: dict[str, dict[str, Any]] = json.loads(header["__metadata__"][KEY])
    return found


def read_header(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    header: dict[str, Any] = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    return header


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Another header, of the rows and the entries that a change leaves."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, own = read_header(path), entries(path)
    change(header, own)
    header["__metadata__"][KEY] = json.dumps(own)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])


@pytest.mark.usefixtures("are_many")
@pytest.mark.parametrize("quant", SCALED)
def test_scales_that_are_tensors_come_back(quant: str, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    model = nac.build(two_linears(ROWS, COLUMNS * 32), quant)
    x = np.tile(X, 32)
    nac.save(model, tmp_path / "m.nac", "external")
    assert nac.verify(tmp_path / "m.nac") == []
    found = entries(tmp_path / "m.safetensors")
    arrays = load_file(tmp_path / "m.safetensors")
    beside = {row["scales_tensor"] for row in found.values() if "scales_tensor" in row}
    assert beside
    for name in beside:
        assert arrays[name].dtype == (np.float16 if quant == "int4_group" else np.float32)
    assert all(len(row["scales"]) <= 64 for row in found.values())
    moved = nac.load(tmp_path / "m.nac")
    np.testing.assert_array_equal(moved.run({"x": x})[0], model.run({"x": x})[0])
    nac.save(moved, tmp_path / "inside.nac")
    assert (tmp_path / "inside.nac").read_bytes() == to_bytes(model.file)


@pytest.mark.parametrize("quant", SCALED)
def test_files_with_few_scales_have_them_as_text(quant: str, tmp_path: Path) -> None:
    nac.save(nac.build(two_linears(ROWS, COLUMNS), quant), tmp_path / "m.nac", "external")
    rows = entries(tmp_path / "m.safetensors").values()
    assert not any("scales_tensor" in row for row in rows)
    assert any(len(row["scales"]) > 64 for row in rows) or quant == "block_fp8"


def test_text_has_a_bound(tmp_path: Path) -> None:
    nac.save(nac.build(two_linears(1100, 1024), "int4_group"), tmp_path / "m.nac", "external")
    raw = (tmp_path / "m.safetensors").read_bytes()
    assert int.from_bytes(raw[:8], "little") < 2_000
    assert nac.verify(tmp_path / "m.nac") == []


@pytest.mark.usefixtures("are_many")
def test_names_of_scales_are_free(tmp_path: Path) -> None:
    made = Assembler()
    x = made.input("x")
    rng = np.random.default_rng(4)
    weight = made.parameter(made.weight("w", rng.standard_normal((ROWS, COLUMNS), np.float32)))
    bias = made.parameter(made.weight("w.scales", rng.standard_normal(ROWS, np.float32)))
    made.output(made.call("aten.linear.default", x, weight, bias))
    model, _ = quantise(nac.load(to_bytes(made.file())), "int8_channel")
    nac.save(model, tmp_path / "m.nac", "external")
    assert nac.verify(tmp_path / "m.nac") == []
    assert entries(tmp_path / "m.safetensors")["w"]["scales_tensor"] == "w.scales_"
    moved = nac.load(tmp_path / "m.nac")
    np.testing.assert_array_equal(moved.run({"x": X})[0], model.run({"x": X})[0])


def _first(own: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in own.values() if "scales_tensor" in row)
    return found


def _scales_row(header: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = header[_first(own)["scales_tensor"]]
    return found


DAMAGE: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = {
    "no such tensor": (
        lambda header, own: _first(own).update(scales_tensor="lost"),
        "of its scales, `lost`: the weights have no tensor of that name",
    ),
    "twice": (lambda header, own: _first(own).update(scales=[1.0]), f"in `{KEY}` and in"),
    "integers": (lambda header, own: _scales_row(header, own).update(dtype="I32"), "are i32"),
    "other code": (
        lambda header, own: _first(own).update(quant_code=0),
        "which has no scales, and it has some",
    ),
    "shape": (lambda header, own: _scales_row(header, own).update(shape=[3]), "of its scales"),
    "offsets": (
        lambda header, own: _scales_row(header, own).update(data_offsets=[0, 1 << 60]),
        "of its scales",
    ),
    "no text": (lambda header, own: _first(own).update(scales_tensor=7), "malformed"),
    "others": (
        lambda header, own: _first(own).update(
            scales_tensor=next(row["scales_tensor"] for row in [*own.values()][::-1])
        ),
        "scales",
    ),
}


@pytest.mark.usefixtures("are_many")
@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_scales_are_refused(what: str, tmp_path: Path) -> None:
    module = two_linears(2 * ROWS, ROWS)
    nac.save(nac.build(module, "int8_channel"), tmp_path / "m.nac", "external")
    change, expected = DAMAGE[what]
    rewrite(tmp_path / "m.safetensors", change)
    errors = [d for d in nac.verify(tmp_path / "m.nac") if d.severity == "error"]
    assert {d.code for d in errors} == {"NAC39"}
    assert expected in errors[0].message
    with pytest.raises(InputError, match="NAC39"):
        nac.load(tmp_path / "m.nac")

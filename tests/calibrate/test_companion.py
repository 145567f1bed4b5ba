"""The calibration beside a device's file: written, read back, and refused where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.calibration import (
    FORMAT,
    Calibration,
    ErrorBand,
    FigureRecord,
    calibration_of,
    companion_path,
    read_calibration,
)
from nacre.nem.model.target import builtin_device
from tests.effort import scaled

BAND = ErrorBand(40, 0.04, 0.1, 0.99, 0.9, 1.1, 0.8)
WHOLE = Calibration(
    FORMAT,
    "board",
    "0123456789abcdef",
    "our board",
    40,
    8,
    True,
    BAND,
    {"conv2d": BAND},
    (FigureRecord("NMU.latency", 137, "fitted", "to 40 rows", 4.5, 0, 5000),),
)


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "board.calibration.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    assert read_calibration(written(tmp_path, WHOLE.as_json())) == WHOLE
    assert companion_path(tmp_path / "board.nem") == tmp_path / "board.calibration.json"
    assert WHOLE.band("conv2d") is WHOLE.classes["conv2d"]
    assert WHOLE.band("gemm") is WHOLE.band() is WHOLE.overall


def test_a_built_in_device_without_measurements_has_none() -> None:
    ideal = [name for name in builtin_names() if name.startswith("npm")]
    assert [name for name in ideal if calibration_of(builtin_device(name)) is not None] == []


def edited(**changes: object) -> str:
    return json.dumps({**json.loads(WHOLE.as_json()), **changes})


def band(**changes: object) -> str:
    found = json.loads(WHOLE.as_json())
    return edited(overall={**found["overall"], **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no calibration"),
        ("[" * 100_000, "is no calibration"),
        (b"\xff\xfe", "is no calibration"),
        ("{}", "missing required field `format`"),
        (edited(more=1), "unknown field `more`"),
        (edited(format=2), "has format 2, expected 1"),
        (edited(rows="many"), "Expected `int`"),
        (band(low=-1), "that are no shares"),
        (band(low=2), "has a band of `all rows` from 2 to 1.1"),
        (band(inside=3), "that is none"),
        (band(rank=3), "that is none"),
        (band(median=float("inf")), "is no calibration"),
        (" " * (1 << 20) + "{}", "the limit is 1,048,576"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_calibration(written(tmp_path, text))
    (found,) = error.value.diagnostics
    assert found.code == "CAL15"
    assert message in found.message


@settings(max_examples=scaled(200), deadline=None)
@given(place=st.integers(0, 2000), byte=st.binary(min_size=1, max_size=3))
def test_damage_anywhere_ends_in_a_code_or_in_sound_numbers(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: bytes
) -> None:
    raw = WHOLE.as_json().encode()
    place %= len(raw)
    path = written(tmp_path_factory.mktemp("c"), raw[:place] + byte + raw[place + 1 :])
    try:
        codes = ["CAL15"] if read_calibration(path).overall.low > 0 else []
    except InputError as error:
        codes = [d.code for d in error.diagnostics]
    assert codes == ["CAL15"]

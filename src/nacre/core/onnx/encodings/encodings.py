"""AIMET's encodings: the scales of tensors beside a float model, read with care.

Both layouts are taken: 0.6.1, a mapping by name, and 1.0.0, a list with names inside. An encoding
says `real = (stored + offset) * scale` with stored integers from 0 on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.onnx.findings import refusal
from nacre.core.rules.onnx import ONX11
from nacre.core.values import Array

_MOST_BYTES = 256 << 20
BITS = (4, 8, 16)
_MADE = "export them again with AIMET, in the layout 0.6.1 or 1.0.0"


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a tensor is stored: scales and offsets, one or one for each channel."""

    name: str
    bits: int
    scales: Array
    offsets: Array

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 is in the middle, so that signed integers hold it without a zero point."""
        return bool((self.offsets == -(1 << (self.bits - 1))).all())

    @property
    def zeros(self) -> Array:
        """Zero points of the integers of `stored_type`."""
        shift = 1 << (self.bits - 1) if self.is_symmetric else 0
        made: Array = -self.offsets - shift
        return made


@dataclass(frozen=True)
class Encodings:
    """Those of a model's activations and of its parameters, by the names of tensors."""

    activations: Mapping[str, Encoding]
    parameters: Mapping[str, Encoding]
    file: str


def read_encodings(path: Path) -> Encodings:
    """The encodings of a file; InputError says what is wrong with them."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise refusal(ONX11, file, f"the file has more than {_MOST_BYTES:,} bytes", _MADE)
        given = json.loads(raw)
    except (OSError, ValueError, RecursionError) as error:
        raise refusal(ONX11, file, f"these are no encodings: {error}"[:200], _MADE) from None
    if not isinstance(given, dict):
        raise refusal(ONX11, file, "these are no encodings: no object of JSON", _MADE)
    parts = [_part(given.get(name), name, file) for name in _PARTS]
    if not any(parts):
        raise refusal(ONX11, file, "the file has no encoding", _MADE)
    return Encodings(parts[0], parts[1], file)


_PARTS = ("activation_encodings", "param_encodings")


def _part(given: object, part: str, file: str) -> dict[str, Encoding]:
    found: dict[str, Encoding] = {}
    for name, entry in _entries(given, part, file):
        try:
            encoding = _encoding(name, entry)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            why = f"`{part}` of {backquote(name)}: {error}"[:300]
            raise refusal(ONX11, file, why, _MADE) from None
        if encoding is not None:
            found[name] = encoding
    return found


def _entries(given: object, part: str, file: str) -> Iterator[tuple[str, Any]]:
    """Pairs of a tensor's name and its entry, in either layout."""
    if isinstance(given, dict):  # 0.6.1
        yield from given.items()
        return
    if given is not None and not isinstance(given, list):
        raise refusal(ONX11, file, f"`{part}` is neither an object nor a list", _MADE)
    for entry in given or ():  # 1.0.0
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise refusal(ONX11, file, f"`{part}` has an entry without a name", _MADE)
        yield name, entry


def _encoding(name: str, entry: Any) -> Encoding | None:  # noqa: ANN401 - of JSON
    """One tensor's; None where it stays a float."""
    rows = entry if isinstance(entry, list) else [entry]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError("no encoding")
    first = rows[0]
    bits = int(first["bw"] if "bw" in first else first["bitwidth"])
    if str(first.get("dtype", "int")).lower() == "float" or bits == 32:
        return None
    if bits not in BITS:
        raise ValueError(f"{bits} bits, expected one of {', '.join(map(str, BITS))}")
    kind = str(first.get("enc_type", "PER_TENSOR")).upper()
    if kind not in ("PER_TENSOR", "PER_CHANNEL"):
        raise ValueError(f"the kind {kind}, expected PER_TENSOR or PER_CHANNEL")
    scales = np.array([s for row in rows for s in np.atleast_1d(row["scale"])], np.float32)
    offsets = np.array([o for row in rows for o in np.atleast_1d(row["offset"])], np.float64)
    if scales.shape != offsets.shape or not scales.size:
        raise ValueError(f"{scales.size} scales for {offsets.size} offsets")
    if not all(isfinite(s) and s > 0 for s in scales.tolist()):
        raise ValueError("a scale that is no positive number")
    if not ((offsets == np.rint(offsets)) & (offsets <= 0) & (offsets > -(1 << bits))).all():
        raise ValueError(f"an offset that is no integer from {1 - (1 << bits)} to 0")
    return Encoding(name, bits, scales, offsets.astype(np.int64))

"""Weights beside the file: a `.safetensors` of the same name, mapped.

Quantised tensors are stored as they would be in DATA; their scales are in `external_scales`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType

import msgspec

from nacre.base.excerpt import backquote
from nacre.base.files import hashed_name
from nacre.nac.format.cursor import Broken
from nacre.nac.format.external_scales import (
    QUANT_KEY,
    ScaleEntry,
    decode_entry,
    encode_entries,
    scale_element_type,
)
from nacre.nac.format.packing import pack
from nacre.nac.format.pages import mapped_pages, parts_of
from nacre.nac.format.positions import Position
from nacre.nac.format.scales import is_scaled, scale_problem, scaled_types
from nacre.nac.format.values import Bytes, NacFile, Resource, Tensor
from nacre.nac.rules.program import NAC39
from nacre.nac.spec.elements import (
    DTYPE_CODES,
    DTYPES,
    MOST_AXES,
    QUANTIZATIONS,
)

SUFFIX = ".safetensors"
WRITTEN = "nacre.weights.json"  # a resource, which other readers pass over
_DIGEST = re.compile(r"[0-9a-f]{64}")
_METADATA = "__metadata__"  # the entry of a header that is no tensor
_LENGTH_BYTES = 8
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "F32": "f32", "F64": "f64", "F16": "f16", "BF16": "bf16", "I32": "i32", "I64": "i64",
        "I16": "i16", "I8": "i8", "U8": "u8", "BOOL": "bool",
    }
)  # fmt: skip
_WORDS: Mapping[str, str] = MappingProxyType({v: k for k, v in _NAMES.items()})
_WIDTHS: Mapping[str, int] = MappingProxyType(
    {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "i16": 2, "i8": 1, "u8": 1,
     "bool": 1}
)  # fmt: skip


class _Row(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class External:
    """The tensors of a file; each is looked at when it is asked for."""

    def __init__(
        self,
        whole: memoryview,
        start: int,
        rows: Mapping[str, msgspec.Raw],
        quants: Mapping[str, ScaleEntry],
    ) -> None:
        self._whole = whole
        self._view = whole[start:]  # behind the header
        self._rows = rows
        self._quants = quants

    @property
    def size(self) -> int:
        """The bytes of all tensors."""
        return len(self._view)

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors, and of those that are said to be quantised; not of scales."""
        scales = {entry.tensor for entry in self._quants.values()}
        return frozenset({*self._rows, *self._quants} - scales)

    def sha256(self) -> str:
        """The hash of the whole file, which is read for it; no more than a part stays in memory."""
        found = hashlib.sha256()
        pages = mapped_pages(self._whole)
        for part in parts_of(len(self._whole), 1):
            found.update(self._whole[part])
            if pages is not None:
                pages.give_back(part.start, part.stop)
        return found.hexdigest()

    def problem(self, name: str, quant: int) -> str | None:
        """Why a tensor of a file of that quantisation cannot be had; None where it can."""
        tensor = self._find_tensor(name, 0)
        if isinstance(tensor, str):
            return tensor
        if tensor.dtype in scaled_types(quant) and name not in self._quants:
            type_, kind = DTYPES[tensor.dtype], QUANTIZATIONS[quant].name
            return f"it has elements of {type_} in a file of {kind}, and no scales in `{QUANT_KEY}`"
        return None

    def layout_problem(self) -> str | None:
        """Why the tensors do not fill the file, one behind the other; None where they do."""
        at = 0
        spans: list[tuple[int, int, str]] = []
        for name, raw in self._rows.items():
            row = _row(raw)
            if row is None:
                return f"the row of {backquote(name)} in the weights is malformed"
            spans.append((*row.data_offsets, name))
        for start, end, name in sorted(spans):
            if start != at or end < start:
                return f"{backquote(name)} begins at byte {start:,} of the weights, expected {at:,}"
            at = end
        if at != self.size:
            return f"the weights have {self.size:,} bytes, {at:,} of which are of tensors"
        return None

    def tensor(self, name: str, id_: int) -> Tensor:
        """A tensor as DATA would have it."""
        found = self._find_tensor(name, id_)
        if isinstance(found, str):
            raise Broken(NAC39, Position(0, "DATA"), found)
        return found

    def _find_tensor(self, name: str, id_: int) -> Tensor | str:
        found = self._find_elements(name)
        if isinstance(found, str):
            return found
        dtype, shape, data = found
        entry = self._quants.get(name)
        if entry is None:
            return Tensor(id_, dtype, shape, data)
        if entry.code not in QUANTIZATIONS:
            return f"its quantisation is {entry.code}, expected 0 to {max(QUANTIZATIONS)}"
        if not is_scaled(entry.code) and (entry.scales or entry.tensor):
            return f"its quantisation is {entry.code}, which has no scales, and it has some"
        scales = self._find_scales(entry)
        if isinstance(scales, str):
            return scales
        if len(entry.shape) > MOST_AXES:
            return f"its own shape has {len(entry.shape)} axes, at most {MOST_AXES}"
        stored = (entry.code, scales, entry.axis, entry.block, entry.shape)
        tensor = Tensor(id_, dtype, shape, data, *stored)
        return scale_problem(tensor) or tensor

    def _find_elements(self, name: str) -> tuple[int, tuple[int, ...], memoryview] | str:
        """The type, the shape and the bytes of a tensor, or why they cannot be had."""
        raw = self._rows.get(name)
        if raw is None:
            return "the weights have no tensor of that name"
        row = _row(raw)
        if row is None:
            return "its row in the weights is malformed"
        dtype = _NAMES.get(row.dtype)
        if dtype is None:
            return f"its element type in the weights is {row.dtype[:20]}, which NAC does not have"
        start, end = row.data_offsets
        if len(row.shape) > MOST_AXES:
            return f"its shape in the weights has {len(row.shape)} axes, at most {MOST_AXES}"
        if any(dim < 0 for dim in row.shape):
            return "its shape in the weights has a dimension below 0"
        size = prod(row.shape) * _WIDTHS[dtype]
        if not 0 <= start <= end <= len(self._view) or end - start != size:
            return (
                f"it lies at [{start}, {end}) of the weights, expected {size:,} bytes of the file"
            )
        return DTYPE_CODES[dtype], row.shape, self._view[start:end]

    def _find_scales(self, entry: ScaleEntry) -> Bytes | str:
        if entry.scales is None:
            return "a scale is outside of the range of its type"
        if not entry.tensor:
            return entry.scales
        if entry.scales:
            return f"it has scales in `{QUANT_KEY}` and in {backquote(entry.tensor)}"
        found = self._find_elements(entry.tensor)
        if isinstance(found, str):
            return f"of its scales, {backquote(entry.tensor)}: {found}"
        dtype, _, data = found
        expected = scale_element_type(entry.code)
        if dtype != expected:
            wanted = "none" if expected is None else DTYPES[expected]
            return f"its scales, {backquote(entry.tensor)}, are {DTYPES[dtype]}, expected {wanted}"
        return data


def _row(raw: msgspec.Raw) -> _Row | None:
    try:
        return msgspec.json.decode(raw, type=_Row)
    except (msgspec.DecodeError, RecursionError):
        return None


class _WeightsDigest(msgspec.Struct, frozen=True):
    """The resource `nacre.weights.json`: the weights that a file was written with."""

    sha256: str


def external_path(path: Path) -> Path:
    """Where the weights of a file lie: the same name beside it."""
    return path.with_suffix(SUFFIX)


def weights_digest(file: NacFile) -> str | None:
    """The SHA-256 of the weights that a file was written with; None where it does not say."""
    raw = file.resource(WRITTEN)
    try:
        digest = None if raw is None else msgspec.json.decode(bytes(raw), type=_WeightsDigest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if digest is None or _DIGEST.fullmatch(digest.sha256) is None:
        return None
    return digest.sha256


def staged_path(path: Path, file: NacFile) -> Path | None:
    """Where the weights of a file lie until they get their name; None where it does not say.

    They are written under a name with their hash, then the file that has the hash, then they move.
    Whoever reads a file whose writer was interrupted between the two finds them here.
    """
    digest = weights_digest(file)
    if digest is None:
        return None
    return path.with_name(hashed_name(external_path(path).name, digest))


def weights_path(path: Path, file: NacFile) -> Path:
    """Where the weights of a file lie now."""
    staged = staged_path(path, file)
    return staged if staged is not None and staged.is_file() else external_path(path)


def with_weights_digest(file: NacFile, digest: str | None) -> NacFile:
    """The file that names its weights by their hash; None takes the hash out."""
    resources = tuple(r for r in file.resources if r.name != WRITTEN)
    if digest is not None:
        resources += (Resource(WRITTEN, msgspec.json.encode(_WeightsDigest(digest))),)
    sections = {**file.sections, "RSRC": resources}
    if not resources and file.resources:
        del sections["RSRC"]
    return file if resources == file.resources else NacFile(file.header, sections, file.gaps)


def read_external(view: memoryview) -> External:
    """The tensors of a file whose header is sound."""
    length = int.from_bytes(view[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if len(view) < _LENGTH_BYTES or start > len(view):
        message = f"the weights have {len(view):,} bytes, their header says {start:,} or more"
        raise Broken(NAC39, Position(0, "DATA"), message)
    try:
        header = bytes(view[_LENGTH_BYTES:start])
        rows = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        _require_distinct_keys(header.decode())
        quants = _quants(rows.get(_METADATA))
    except (msgspec.DecodeError, ValueError, RecursionError, OverflowError):
        message = "the header of the weights is malformed"
        raise Broken(NAC39, Position(0, "DATA"), message) from None
    read = mapped_pages(view[:start])
    if read is not None:
        read.give_back()
    # Scales may be most of the header, which a row that looks at it would keep.
    own = {name: row.copy() for name, row in rows.items() if name != _METADATA}
    return External(view, start, own, quants)


def _quants(raw: msgspec.Raw | None) -> dict[str, ScaleEntry]:
    if raw is None:
        return {}
    text = msgspec.json.decode(raw, type=dict[str, str]).get(QUANT_KEY)
    if text is None:
        return {}
    rows = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    _require_distinct_keys(text)
    return {name: decode_entry(row) for name, row in rows.items()}


def _require_distinct_keys(text: str) -> None:
    """Refuse a key that stands twice: readers differ in which of them they take."""

    def refuse_repeated(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                message = f"the header of the weights has {backquote(key)} twice"
                raise Broken(NAC39, Position(0, "DATA"), message)
            seen.add(key)

    # Numbers are not looked at here, and there may be millions.
    json.loads(text, object_pairs_hook=refuse_repeated, parse_float=_forget)


def _forget(number: str) -> None:
    return None


def external_parts(named: Sequence[tuple[str, Tensor]], quant: int = 0) -> Iterator[Bytes]:
    """The bytes of a file with these tensors of a model so quantised, in parts: not copied."""
    text, scales = encode_entries(named, quant)
    stored = [*named, *scales]
    rows: dict[str, object] = {} if text is None else {_METADATA: {QUANT_KEY: text}}
    at = 0
    for name, tensor in stored:
        end = at + len(tensor.data)
        rows[name] = _Row(_WORDS[DTYPES[tensor.dtype]], tensor.shape, (at, end))
        at = end
    header = msgspec.json.encode(rows)
    header += b" " * (-len(header) % _LENGTH_BYTES)
    yield pack("Q", "length", len(header))
    yield header
    for _, tensor in stored:
        yield tensor.data

"""Scales of weights beside the file: numbers in its metadata, or tensors of their own.

What the metadata of a quantised tensor would say stands in the entry `nac_quant_meta` of a
`.safetensors`, as JSON by the name of the tensor: `{"quant_code": 3, "axis": 0, "scales": [..]}`,
for blocks `{"quant_code": 4, "block_size": 64, "original_shape": [..], "scales": [..]}`, where
minimums stand among the scales if there are such. In a file that is quantised to integers,
integers of the model's own have the entry `{"quant_code": 0}`: nothing else tells them from those
without scales.

Text is read whole when a file is opened, and takes ten times as much as what it says. Where a file
has many scales, long lists are tensors behind the weights, f32 or f16 as in DATA, and an entry says
`"scales_tensor": NAME` for the numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from nacre.nac.format.scales import scaled_types
from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import DTYPE_CODES, QUANTIZATIONS

QUANT_KEY = "nac_quant_meta"
_MOST_AS_TEXT = 1 << 16  # scales of a file that all stand as numbers
_SHORT = 64  # so many of a tensor do so in any file
_ELEMENT_TYPES: Mapping[str, str] = MappingProxyType({"f": "f32", "e": "f16"})


class _Row(msgspec.Struct, frozen=True):
    """An entry as it is written."""

    quant_code: int
    scales: tuple[float, ...] = ()
    axis: int = 0
    block_size: int = 0
    original_shape: tuple[int, ...] = ()
    scales_tensor: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class ScaleEntry:
    """The same with scales as DATA has them: a list of numbers takes eight times as much."""

    code: int
    scales: bytes | None  # None: one is outside of the range of its type
    axis: int
    block: int
    shape: tuple[int, ...]
    tensor: str  # whose elements are the scales; empty where they stand here


def scale_element_type(code: int) -> int | None:
    """The code of the type of a quantisation's scales; None where it has none."""
    layout = QUANTIZATIONS.get(code)
    if layout is None or not layout.is_scaled:
        return None
    return DTYPE_CODES[_ELEMENT_TYPES[layout.scale]]


def decode_entry(row: msgspec.Raw) -> ScaleEntry:
    """The entry of a tensor; msgspec.DecodeError where it is malformed."""
    entry = msgspec.json.decode(row, type=_Row)
    layout = QUANTIZATIONS.get(entry.quant_code)
    letter = "f" if layout is None else layout.scale
    try:
        scales = struct.pack(f"<{len(entry.scales)}{letter}", *entry.scales)
    except OverflowError:
        scales = None
    beside = "" if entry.scales_tensor is msgspec.UNSET else entry.scales_tensor
    own = (entry.axis, entry.block_size, entry.original_shape, beside)
    return ScaleEntry(entry.quant_code, scales, *own)


def encode_entries(
    named: Sequence[tuple[str, Tensor]], quant: int
) -> tuple[str | None, list[tuple[str, Tensor]]]:
    """The JSON of the entries of tensors, None where they need none, and tensors of scales."""
    wanted = [(n, t) for n, t in named if t.quant or t.dtype in scaled_types(quant)]
    counts = [len(t.scales) // QUANTIZATIONS[t.quant].scale_bytes for _, t in wanted]
    are_few = sum(counts) <= _MOST_AS_TEXT
    rows: dict[str, _Row] = {}
    added: dict[str, Tensor] = {}
    names = {name for name, _ in named}
    for (name, tensor), count in zip(wanted, counts, strict=True):
        scales: tuple[float, ...] = ()
        beside: str | msgspec.UnsetType = msgspec.UNSET
        if are_few or count <= _SHORT:
            scales = struct.unpack(f"<{count}{QUANTIZATIONS[tensor.quant].scale}", tensor.scales)
        else:
            beside = _free_name(f"{name}.scales", names)
            names.add(beside)
            type_ = scale_element_type(tensor.quant)
            assert type_ is not None  # it has scales
            added[beside] = Tensor(0, type_, (count,), tensor.scales)
        own = (tensor.axis, tensor.block, tensor.true_shape, beside)
        rows[name] = _Row(tensor.quant, scales, *own)
    text = msgspec.json.encode(rows).decode() if rows else None
    return text, list(added.items())


def _free_name(wanted: str, taken: Collection[str]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted

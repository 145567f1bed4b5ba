"""Arrays that know which region they show: NumPy arrays with a type, a quantisation, a name."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.base.packing import pack_i4, unpack_i4
from nacre.kernels.interface.call import Array, Quantization, TensorType

_MOST_ROWS, _MOST_COLUMNS = 16, 16


class RegionView(np.ndarray[Any, np.dtype[Any]]):
    """The elements of a region. What is computed from it is a plain array again."""

    elem: ElementType | None
    quant: Quantization | None
    region: str | None

    @classmethod
    def of(cls, values: Array, type_: TensorType, region: str | None = None) -> RegionView:
        """A view of an array under the name of a region."""
        view = values.view(cls)
        view.elem, view.quant, view.region = type_.elem, type_.quant, region
        return view

    def __array_finalize__(self, origin: object) -> None:
        self.elem = getattr(origin, "elem", None)
        self.quant = getattr(origin, "quant", None)
        self.region = getattr(origin, "region", None)

    def __array_wrap__(
        self, array: Array, context: object = None, return_scalar: bool = False
    ) -> Any:  # noqa: ANN401 - an array or a scalar of any type
        # A sum of two regions is no region.
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def read_bytes(self) -> bytes:
        """The bytes as memory holds them: elements of four bits are packed."""
        if self.elem is not None and self.elem.bits < 8:
            return pack_i4(np.asarray(self)).tobytes()
        return np.ascontiguousarray(np.asarray(self)).tobytes()

    def write_bytes(self, data: bytes) -> None:
        """Fill it from bytes as memory holds them."""
        raw = np.frombuffer(data, np.uint8)
        if self.elem is not None and self.elem.bits < 8:
            self[...] = unpack_i4(raw, self.size).reshape(self.shape)
        else:
            self[...] = raw.view(self.dtype).reshape(self.shape)

    def _repr_html_(self) -> str:
        """What a notebook shows: a heading and a table, cut where it grows large."""
        kind = self.elem.name if self.elem is not None else str(self.dtype)
        name = html.escape(self.region) if self.region else "region"
        head = f"<b>{name}</b> {kind} {html.escape(str(list(self.shape)))}"
        plain = np.asarray(self)
        flat = plain.reshape(1, -1) if plain.ndim < 2 else plain.reshape(-1, plain.shape[-1])
        return f"<div>{head}{_table(flat)}</div>"


def _table(values: Array) -> str:
    rows = []
    for row in values[:_MOST_ROWS]:
        cells = "".join(f"<td>{html.escape(str(v))}</td>" for v in row[:_MOST_COLUMNS])
        rows.append(f"<tr>{cells}{'<td>…</td>' if values.shape[1] > _MOST_COLUMNS else ''}</tr>")
    if values.shape[0] > _MOST_ROWS:
        rows.append("<tr><td>…</td></tr>")
    return f"<table>{''.join(rows)}</table>"

"""Elements of f32 in other places, on devices that move f16: in halves, in pieces, side by side."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.mixed_precision.halves import F32Writer
from nacre.compile.legalise.forms.windows.windows import slice_axis

_PIECE = 1 << 16  # elements that are moved at once: by name all of them lie in L1, and the result


def move_f32(writer: F32Writer, *, is_amplitude: bool) -> int | None:
    """A wide operation that only moves elements, in a form that a device has for f32.

    Amplitudes have all their digits in two halves; powers, of which the small ones count, do not.
    """
    opcode = writer.site.op.opcode
    if opcode == "Pad":
        return _pad(writer)
    if opcode in ("Gather", "GatherAxis") and is_amplitude:
        return _gather(writer)
    if opcode == "Transpose":
        return _transpose(writer)
    return _pool(writer) if opcode in ("AvgPool", "MaxPool") else None


def _gather(writer: F32Writer) -> int:
    site = writer.site
    x, indices = site.operands
    divisor, scaled = writer.scale_to_largest(x, 1.0)
    halves = writer.split(scaled)
    picked = [site.add(site.op.opcode, half, indices, **site.op.attributes) for half in halves]
    whole = writer.join(picked[0], picked[1])
    divisor = writer.reshape(divisor, (1,) * max(site.op.type.rank, 1))
    return writer.add("BinOp", whole, divisor, op="Mul")


def _pad(writer: F32Writer) -> int | None:
    """Padding with a constant: what is added stands beside."""
    site = writer.site
    pads: tuple[int, ...] = tuple(site.attributes["pads"])  # type: ignore[arg-type]
    if site.attributes["mode"] != "constant" or min(pads) < 0:
        return None
    number, value = float(str(site.attributes["value"])), site.operands[0]
    rank = site.op.type.rank
    for axis, (before, after) in enumerate(zip(pads[:rank], pads[rank:], strict=True)):
        shape = site.type(value).shape
        parts = [
            site.literal(np.full((*shape[:axis], count, *shape[axis + 1 :]), number), "f32")
            if count
            else None
            for count in (before, after)
        ]
        around = [part for part in (parts[0], value, parts[1]) if part is not None]
        value = writer.add("Concat", *around, axis=axis) if len(around) > 1 else value
    return value


def _transpose(writer: F32Writer) -> int | None:
    """A transposition piece by piece along its longest axis."""
    site = writer.site
    x, order = site.operands[0], site.attributes["permutation"]
    assert isinstance(order, tuple)
    shape = site.type(x).shape
    axis = max(range(len(shape)), key=lambda at: shape[at])
    return _move_in_pieces(writer, axis, order.index(axis))


def _pool(writer: F32Writer) -> int | None:
    """A pooling some channels at a time."""
    return _move_in_pieces(writer, 3, 3) if writer.site.attributes["layout"] == "NHWC" else None


def _move_in_pieces(writer: F32Writer, axis: int, axis_of_result: int) -> int | None:
    site, x = writer.site, writer.site.operands[0]
    shape = site.type(x).shape
    size = max(1, _PIECE * shape[axis] // prod(shape)) if prod(shape) > _PIECE else shape[axis]
    if size == shape[axis]:
        return None
    parts = []
    for first in range(0, shape[axis], size):
        piece = writer.record(slice_axis(site, x, axis, first, min(first + size, shape[axis])))
        parts.append(writer.add(site.op.opcode, piece, **site.op.attributes))
    return writer.add("Concat", *parts, axis=axis_of_result)

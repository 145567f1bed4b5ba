"""Elements of f32 in other places, on devices that move f16: in halves, in pieces, side by side."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.algebra.halves import Halves
from nacre.compile.legalise.forms.windows.windows import slice_axis

_PIECE = 1 << 16  # elements that are moved at once: by name all of them lie in L1, and the result


def move_wide(made: Halves, *, is_amplitude: bool) -> int | None:
    """A wide operation that only moves elements, in a form that a device has for f32.

    Amplitudes have all their digits in two halves; powers, of which the small ones count, do not.
    """
    opcode = made.site.op.opcode
    if opcode == "Pad":
        return _pad(made)
    if opcode in ("Gather", "GatherAxis") and is_amplitude:
        return _gather(made)
    if opcode == "Transpose":
        return _transpose(made)
    return _pool(made) if opcode in ("AvgPool", "MaxPool") else None


def _gather(made: Halves) -> int:
    site = made.site
    x, indices = site.operands
    divisor, scaled = made.scaled(x, 1.0)
    halves = made.split(scaled)
    picked = [site.add(site.op.opcode, half, indices, **site.op.attributes) for half in halves]
    whole = made.joined(picked[0], picked[1])
    divisor = made.reshaped(divisor, (1,) * max(site.op.type.rank, 1))
    return made.add("BinOp", whole, divisor, op="Mul")


def _pad(made: Halves) -> int | None:
    """Padding with a constant: what is added stands beside."""
    site = made.site
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
        value = made.add("Concat", *around, axis=axis) if len(around) > 1 else value
    return value


def _transpose(made: Halves) -> int | None:
    """A transposition piece by piece along its longest axis."""
    site = made.site
    x, order = site.operands[0], site.attributes["permutation"]
    assert isinstance(order, tuple)
    shape = site.type(x).shape
    axis = max(range(len(shape)), key=lambda at: shape[at])
    return _in_pieces(made, axis, order.index(axis))


def _pool(made: Halves) -> int | None:
    """A pooling some channels at a time."""
    return _in_pieces(made, 3, 3) if made.site.attributes["layout"] == "NHWC" else None


def _in_pieces(made: Halves, axis: int, axis_of_result: int) -> int | None:
    site, x = made.site, made.site.operands[0]
    shape = site.type(x).shape
    size = max(1, _PIECE * shape[axis] // prod(shape)) if prod(shape) > _PIECE else shape[axis]
    if size == shape[axis]:
        return None
    parts = []
    for first in range(0, shape[axis], size):
        piece = made.record(slice_axis(site, x, axis, first, min(first + size, shape[axis])))
        parts.append(made.add(site.op.opcode, piece, **site.op.attributes))
    return made.add("Concat", *parts, axis=axis_of_result)

"""Weights that a model brings in groups: taken as they are, wherever they went in the meantime.

On the way to the device they are dequantised and meet rewrites as all weights do. What comes out as
it went in is known by its elements, and gets its integers back; what a rewrite has changed, as by
a scale that went into it, is rounded anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from nacre.compile.quantise.weight_only.groups import RoundedWeights
from nacre.core.constants import constant_array
from nacre.core.grouped_weights import grouped_weights_of
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

_SHIFTS = {"i4": 0, "u4": 8, "i8": 0, "u8": 128}  # to integers around 0
_LEAST_NORMAL = float(np.finfo(np.float16).tiny)


def fingerprint(weights: Array) -> bytes:
    """What tells weights of f16 from others."""
    return blake2b(np.ascontiguousarray(weights).view(np.uint8).data, digest_size=16).digest()


def imported_groups(module: Module) -> Mapping[bytes, RoundedWeights]:
    """Weights in groups that a model brings, by what they are as f16 [columns, depth]."""
    found: dict[bytes, RoundedWeights] = {}
    for op in module.operations:
        for weights in _weights(module, op):
            held = weights.to_rounded()
            if held is not None:
                found[fingerprint(weights.to_f16())] = held
    return found


@dataclass(frozen=True, eq=False)
class _ImportedWeights:
    """Weights [columns, depth] as a model has them; all else is [columns, groups]."""

    integers: Array
    dtype: str
    scales: Array
    zeros: Array | None = None
    minimums: Array | None = None

    def to_f16(self) -> Array:
        """The weights as the compiler meets them: in the type of the scales, then rounded."""
        group = self.integers.shape[1] // self.scales.shape[1]
        moved = self.integers.astype(np.int32)
        if self.zeros is not None:
            moved = moved - self.zeros.astype(np.int32).repeat(group, axis=1)
        scales = self.scales.astype(np.float32).repeat(group, axis=1)
        real = (moved.astype(np.float32) * scales).astype(self.scales.dtype)
        if self.minimums is not None:
            real = real + self.minimums.astype(real.dtype).repeat(group, axis=1)
        with np.errstate(over="ignore"):
            made: Array = real.astype(np.float16)
        return made

    def to_rounded(self) -> RoundedWeights | None:
        """The same as a plan holds them; None where f16 has no such scale or minimum."""
        shift, wide = _SHIFTS[self.dtype], self.scales.astype(np.float64)
        scales, zeros, minimums = wide.astype(np.float16), None, None
        if not (np.isfinite(scales) & ((np.abs(wide) >= _LEAST_NORMAL) | (wide == 0))).all():
            return None
        if self.minimums is not None:  # they take up what integers are moved by
            exact = self.minimums.astype(np.float64) + shift * wide
            if self.zeros is not None or np.abs(exact).max(initial=0) > np.finfo(np.float16).max:
                return None
            minimums = exact.astype(np.float16)
        elif self.zeros is not None or shift:
            given = 0 if self.zeros is None else self.zeros.astype(np.int16)
            moved = np.broadcast_to(np.asarray(given - shift, np.int8), wide.shape)
            zeros = np.ascontiguousarray(moved) if moved.any() else None
        integers = (self.integers.astype(np.int16) - shift).astype(np.int8)
        dtype = "i4" if self.dtype.endswith("4") else "i8"
        return RoundedWeights(integers, scales, dtype, zeros, minimums)


def _weights(module: Module, op: CoreOperation) -> Iterator[_ImportedWeights]:
    """The weights that an operation makes of constants; of one scale for all, both ways round."""
    if op.opcode == "Reshape":
        yield from _with_minimums(module, op)
    if op.opcode != "Dequantize":
        return
    arrays = [constant_array(module.by_id[value]) for value in op.operands]
    dtype, given = (
        module.by_id[op.operands[0]].type.dtype,
        OPS[op.opcode].with_defaults(op.attributes),
    )
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) or dtype not in _SHIFTS or known[0].ndim != 2:
        return
    integers, *parts = known
    for is_turned in _orientations(parts[0], given["axis"] % 2, given["block"]):
        own = integers.T if is_turned else integers
        scales, *zeros = (_scales_by_group(part, len(own), is_turned) for part in parts)
        if own.shape[1] % scales.shape[1] == 0:
            yield _ImportedWeights(own, dtype, scales, *zeros)


def _with_minimums(module: Module, op: CoreOperation) -> Iterator[_ImportedWeights]:
    found = grouped_weights_of(module, op.value_id)
    if found is None or found.minimums is None:
        return
    values = (found.integers, found.scales, found.minimums)
    integers, scales, least = (constant_array(module.by_id[value]) for value in values)
    dtype = module.by_id[found.integers].type.dtype
    if integers is None or scales is None or least is None or found.zeros or dtype not in _SHIFTS:
        return
    yield _ImportedWeights(integers, dtype, scales, None, least[..., 0])


def _orientations(scales: Array, axis: int, block: int) -> Iterator[bool]:
    """Whether weights stand on their side, [depth, columns]."""
    if block:
        yield axis == 0
    elif scales.size == 1:
        yield from (False, True)
    else:
        yield axis == 1


def _scales_by_group(part: Array, columns: int, is_turned: bool) -> Array:
    """Scales or zero points [columns, groups]."""
    if part.ndim == 2:
        return part.T if is_turned else part
    return np.broadcast_to(part.reshape(-1, 1), (columns, 1))

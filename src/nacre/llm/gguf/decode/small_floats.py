"""Ternary blocks, and blocks of floats of four bits."""

from __future__ import annotations

import numpy as np

from nacre.llm.gguf.decode.bits import Blocks, Bytes, Floats, scale, scale_parts, split_bits

# Floats with one bit of mantissa, doubled.
_E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
_POWERS = np.array([1, 3, 9, 27, 81], np.uint8)


def tq1_0(blocks: Blocks) -> Floats:
    """Five digits of base three a byte, four in the last ones, as fractions of 256."""
    qs = blocks["qs"]
    parts = [_digits(qs[:, :32], 5), _digits(qs[:, 32:], 5), _digits(blocks["qh"], 4)]
    q = (np.concatenate(parts, -1).astype(np.uint16) * 3 >> 8).astype(np.int8) - np.int8(1)
    return scale(blocks) * q.astype(np.float32)


def tq2_0(blocks: Blocks) -> Floats:
    """Two bits around 1."""
    q = split_bits(blocks["qs"].reshape(len(blocks), -1, 32), 2).reshape(len(blocks), -1)
    return scale(blocks) * (q.astype(np.int8) - np.int8(1)).astype(np.float32)


def mxfp4(blocks: Blocks) -> Floats:
    """Floats of four bits with a power of two as their scale."""
    exponents = blocks["e"].astype(np.uint32)[:, None]
    # Half of the power, since the values are doubled; the two smallest are subnormal.
    tiny = np.uint32(0x200000) << np.minimum(exponents, np.uint32(1))
    halves = np.where(exponents < 2, tiny, np.maximum(exponents, np.uint32(1)) - 1 << 23)
    q = split_bits(blocks["qs"], 4).reshape(len(blocks), -1)
    return halves.astype(np.uint32).view(np.float32) * _E2M1[q].astype(np.float32)


def nvfp4(blocks: Blocks) -> Floats:
    """Floats of four bits in parts of 16, each with a scale of eight bits without a sign."""
    q = split_bits(blocks["qs"].reshape(len(blocks), 4, 8), 4).reshape(len(blocks), -1)
    return scale_parts(_half_e4m3(blocks["d"]), _E2M1[q])


def _digits(packed: Bytes, count: int) -> Bytes:
    """Bytes times powers of three, modulo 256: the next digit is on top."""
    moved: Bytes = packed[:, None, :] * _POWERS[:count, None]
    return moved.reshape(len(packed), -1)


def _half_e4m3(packed: Bytes) -> Floats:
    exponents = (packed >> np.uint8(3) & np.uint8(15)).astype(np.int32)
    mantissas = (packed & np.uint8(7)).astype(np.float64)
    values = np.where(
        exponents == 0, mantissas * 2.0**-9, (1 + mantissas / 8) * 2.0 ** (exponents - 7)
    )
    # 0x7f stands for no number; as a scale it is 0.
    return np.where(packed == 0x7F, 0, values / 2).astype(np.float32)

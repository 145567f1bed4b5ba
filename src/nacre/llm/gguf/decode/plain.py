"""Blocks of 32 with one scale, and one offset at most."""

from __future__ import annotations

import numpy as np

from nacre.llm.gguf.decode.bits import Blocks, Bytes, Floats, scale, split_bits


def q4_0(blocks: Blocks) -> Floats:
    """Nibbles around 8."""
    return scale(blocks) * (_nibbles(blocks).astype(np.int8) - np.int8(8)).astype(np.float32)


def q4_1(blocks: Blocks) -> Floats:
    """Nibbles above an offset."""
    return scale(blocks) * _nibbles(blocks).astype(np.float32) + scale(blocks, "m")


def q5_0(blocks: Blocks) -> Floats:
    """Five bits around 16."""
    return scale(blocks) * (_five_bits(blocks).astype(np.int8) - np.int8(16)).astype(np.float32)


def q5_1(blocks: Blocks) -> Floats:
    """Five bits above an offset."""
    return scale(blocks) * _five_bits(blocks).astype(np.float32) + scale(blocks, "m")


def q8(blocks: Blocks) -> Floats:
    """Bytes."""
    return blocks["qs"].astype(np.float32) * scale(blocks)


def bf16(blocks: Blocks) -> Floats:
    """The upper half of an f32."""
    return (blocks["x"].astype(np.uint32) << np.uint32(16)).view(np.float32)[:, None]


def number(blocks: Blocks) -> Floats:
    """Floats and integers as the nearest f32."""
    with np.errstate(over="ignore", invalid="ignore"):
        column: Floats = blocks["x"].astype(np.float32)[:, None]
    return column


def _nibbles(blocks: Blocks) -> Bytes:
    return split_bits(blocks["qs"], 4).reshape(len(blocks), -1)


def _five_bits(blocks: Blocks) -> Bytes:
    highest = np.unpackbits(blocks["qh"], axis=-1, bitorder="little")
    return _nibbles(blocks) | highest << np.uint8(4)

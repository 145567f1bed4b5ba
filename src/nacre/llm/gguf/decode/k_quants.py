"""Blocks of 256 whose parts have scales of a few bits."""

from __future__ import annotations

import numpy as np

from nacre.llm.gguf.decode.bits import Blocks, Bytes, Floats, scale, scale_parts, split_bits


def q2_k(blocks: Blocks) -> Floats:
    """Two bits; 16 parts, each with a scale and an offset of four bits."""
    packed = blocks["scales"]
    scales = scale(blocks) * (packed & np.uint8(15)).astype(np.float32)
    offsets = scale(blocks, "dmin") * (packed >> np.uint8(4)).astype(np.float32)
    return scale_parts(scales, _split_chunks(blocks["qs"], 32, 2)) - np.repeat(offsets, 16, -1)


def q3_k(blocks: Blocks) -> Floats:
    """Two bits and a mask of third ones; 16 parts with scales of six bits."""
    packed = blocks["scales"]
    low = split_bits(packed[:, :8], 4).reshape(len(blocks), 16)
    high = split_bits(packed[:, 8:], 2).reshape(len(blocks), 16)
    scales = (low | high << np.uint8(4)).astype(np.int8) - np.int8(32)
    # Where the mask has no bit, 4 is taken away.
    below = (_split_chunks(blocks["hmask"], 32, 1) ^ np.uint8(1)) << np.uint8(2)
    q = _split_chunks(blocks["qs"], 32, 2).astype(np.int8) - below.astype(np.int8)
    return scale_parts(scale(blocks) * scales.astype(np.float32), q)


def q4_k(blocks: Blocks) -> Floats:
    """Four bits; eight parts, each with a scale and an offset of six bits."""
    return _with_offsets(blocks, _split_chunks(blocks["qs"], 32, 4))


def q5_k(blocks: Blocks) -> Floats:
    """The same with a fifth bit."""
    fifth = _split_chunks(blocks["qh"], 32, 1) << np.uint8(4)
    return _with_offsets(blocks, _split_chunks(blocks["qs"], 32, 4) | fifth)


def q6_k(blocks: Blocks) -> Floats:
    """Six bits around 32; 16 parts with scales of eight bits."""
    high = _split_chunks(blocks["qh"], 32, 2) << np.uint8(4)
    q = (_split_chunks(blocks["ql"], 64, 4) | high).astype(np.int8) - np.int8(32)
    return scale_parts(scale(blocks) * blocks["scales"].astype(np.float32), q)


def _split_chunks(packed: Bytes, chunk: int, width: int) -> Bytes:
    """Chunks of bytes, each of which holds the low bits of its elements first, then the next."""
    chunks = packed.reshape(len(packed), -1, chunk)
    return split_bits(chunks, width).reshape(len(packed), -1)


def _with_offsets(blocks: Blocks, q: Bytes) -> Floats:
    scales, offsets = _six_bit_pairs(blocks["scales"])
    offset = scale(blocks, "dmin") * offsets.astype(np.float32)
    return scale_parts(scale(blocks) * scales.astype(np.float32), q) - np.repeat(offset, 32, -1)


def _six_bit_pairs(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Eight scales and eight offsets out of 12 bytes.

    Four of each lie in the low six bits of the first eight bytes, whose top bits are those of the
    others; the low four bits of these share the last four bytes.
    """
    first, second, shared = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    six, top = np.uint8(0x3F), np.uint8(0x30)
    low, high = shared & np.uint8(15), shared >> np.uint8(4)
    scales = [first & six, low | first >> np.uint8(2) & top]
    offsets = [second & six, high | second >> np.uint8(2) & top]
    return np.concatenate(scales, -1), np.concatenate(offsets, -1)

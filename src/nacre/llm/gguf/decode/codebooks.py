"""Blocks whose fields are indices: of sixteen values, or of the points of a lattice."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.llm.gguf.decode.bits import Blocks, Floats, neighbours, scale, scale_parts, split_bits

_SIXTEEN = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8
)
_Indices = npt.NDArray[Any]


def iq4_nl(blocks: Blocks) -> Floats:
    """Nibbles as indices of values that lie closer around 0."""
    q = split_bits(blocks["qs"], 4).reshape(len(blocks), -1)
    return scale(blocks) * _SIXTEEN[q].astype(np.float32)


def iq4_xs(blocks: Blocks) -> Floats:
    """The same in eight parts with scales of six bits."""
    shifts = np.arange(0, 16, 2, dtype=np.uint16)
    high = (blocks["scales_h"].astype(np.uint16)[:, None] >> shifts).astype(np.uint8) & np.uint8(3)
    low = neighbours(blocks["scales_l"], 4)
    scales = (low | high << np.uint8(4)).astype(np.int8) - np.int8(32)
    q = split_bits(blocks["qs"].reshape(len(blocks), -1, 16), 4).reshape(len(blocks), -1)
    return scale_parts(scale(blocks) * scales.astype(np.float32), _SIXTEEN[q])


def iq2_xxs(blocks: Blocks) -> Floats:
    """Points of eight; 32 elements share a word with their signs and a scale of four bits."""
    words = blocks["qs"].astype(np.uint16).reshape(len(blocks), 8, 4)
    points = words[..., :2].astype("<u2").view(np.uint8)
    signs, top = _signs_and_top(words[..., 2:])
    scales = scale(blocks) * (np.float32(0.5) + top) * np.float32(0.25)
    return _scale_with_signs(scales, _grid("iq2_xxs")[points], signs)


def iq2_xs(blocks: Blocks) -> Floats:
    """Points of eight, nine bits each, beside seven of their signs."""
    words = blocks["qs"].astype(np.uint16)
    scales = _scales_of_quarters(blocks)
    points = _grid("iq2_xs")[words & np.uint16(511)]
    return _scale_with_signs(scales, points, _sign_bits(words >> np.uint16(9)))


def iq2_s(blocks: Blocks) -> Floats:
    """Points of eight, ten bits each, and all of their signs."""
    high = neighbours(blocks["qh"], 2).astype(np.uint16) << np.uint16(8)
    points = _grid("iq2_s")[blocks["qs"] | high]
    return _scale_with_signs(_scales_of_quarters(blocks), points, _bits(blocks["signs"]))


def iq3_xxs(blocks: Blocks) -> Floats:
    """Points of four; 32 elements share a word with their signs and a scale of four bits."""
    words = blocks["signs"].astype(np.uint32)
    signs, top = _signs_and_top(words.astype("<u4").view("<u2").reshape(len(blocks), 8, 2))
    scales = scale(blocks) * (np.float32(0.5) + top) * np.float32(0.5)
    return _scale_with_signs(scales, _grid("iq3_xxs")[blocks["qs"]], signs)


def iq3_s(blocks: Blocks) -> Floats:
    """Points of four, nine bits each, and all of their signs."""
    high = _bits(blocks["qh"]).astype(np.uint16) << np.uint16(8)
    scales = scale(blocks) * (1 + 2 * neighbours(blocks["scales"], 4)).astype(np.float32)
    return _scale_with_signs(scales, _grid("iq3_s")[blocks["qs"] | high], _bits(blocks["signs"]))


def iq1_s(blocks: Blocks) -> Floats:
    """Points of eight out of -1, 0 and 1, moved by an eighth."""
    words = blocks["qh"].astype(np.uint16)
    high = (words[..., None] >> np.arange(0, 12, 3, dtype=np.uint16)) & np.uint16(7)
    points = _grid("iq1_s")[blocks["qs"] | high.reshape(len(blocks), -1) << np.uint16(8)]
    scales = scale(blocks) * (2 * (words >> np.uint16(12) & np.uint16(7)) + 1).astype(np.float32)
    return scale_parts(scales, _shift_points(points, np.repeat(words >> np.uint16(15), 4, -1)))


def iq1_m(blocks: Blocks) -> Floats:
    """The same, in parts of 16 with scales of three bits; the block's lies in their top bits."""
    words = blocks["scales"].astype(np.uint16)
    tops = (words & np.uint16(0xF000)) >> np.array([12, 8, 4, 0], np.uint16)
    whole = np.bitwise_or.reduce(tops, -1).view(np.float16).astype(np.float32)[:, None]
    parts = (words[..., None] >> np.arange(0, 12, 3, dtype=np.uint16)) & np.uint16(7)
    scales = whole * (2 * parts.reshape(len(blocks), -1) + 1).astype(np.float32)
    nibbles = neighbours(blocks["qh"], 4)
    high = (nibbles & np.uint8(7)).astype(np.uint16) << np.uint16(8)
    return scale_parts(
        scales, _shift_points(_grid("iq1_s")[blocks["qs"] | high], nibbles >> np.uint8(3))
    )


@cache
def _grid(name: str) -> Floats:
    """The points of a lattice, `[points, elements]`."""
    with files(__package__).joinpath("grids.npz").open("rb") as file:
        points: Floats = np.load(file, allow_pickle=False)[name].astype(np.float32)
    return points


def _bits(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.unpackbits(packed, axis=-1, bitorder="little")


def _sign_bits(seven: _Indices) -> npt.NDArray[np.uint8]:
    """Signs of eight elements out of seven bits: an even number of them is negative."""
    bits = np.unpackbits(seven.astype(np.uint8)[..., None], axis=-1, bitorder="little")
    bits[..., 7] = np.bitwise_xor.reduce(bits[..., :7], -1)
    return bits.reshape(len(seven), -1)


def _signs_and_top(halves: _Indices) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Signs of 32 elements out of the low 28 bits of a word, and its top four."""
    words = halves[..., 0].astype(np.uint32) | halves[..., 1].astype(np.uint32) << np.uint32(16)
    sevens = words[..., None] >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)
    top = (words >> np.uint32(28)).astype(np.float32)
    return _sign_bits(sevens.reshape(len(halves), -1)), top


def _scales_of_quarters(blocks: Blocks) -> Floats:
    fields = neighbours(blocks["scales"], 4).astype(np.float32)
    return scale(blocks) * (np.float32(0.5) + fields) * np.float32(0.25)


def _scale_with_signs(scales: Floats, points: Floats, signs: npt.NDArray[np.uint8]) -> Floats:
    factors = np.where(signs == 0, np.float32(1), np.float32(-1))
    return scale_parts(scales, points.reshape(len(scales), -1)) * factors


def _shift_points(points: Floats, is_down: _Indices) -> Floats:
    eighths = np.where(is_down == 0, np.float32(0.125), np.float32(-0.125))
    return (points + eighths[..., None]).reshape(len(points), -1)

"""Blocks whose weights are integers with a scale: taken as they are, without a second rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.llm.gguf.decode.bits import Blocks, split_bits
from nacre.llm.gguf.file import GgufFile

Integers = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class GroupedBlocks:
    """Weights `integer * scale + minimum` in groups along the rows."""

    integers: Integers  # [rows, columns], in bytes
    dtype: str  # of the integers
    scales: Floats  # [rows, groups], and so are minimums
    minimums: Floats | None = None

    @property
    def group(self) -> int:
        """How many neighbours share a scale."""
        return int(self.integers.shape[1] // self.scales.shape[1])


@dataclass(frozen=True, eq=False)
class KeptBlocks:
    """Rows of a tensor whose blocks can be taken as they are; they are read when asked for."""

    file: GgufFile
    name: str
    places: npt.NDArray[np.int64]  # of the rows, in their order

    def rows(self, some: slice | npt.NDArray[np.int64]) -> KeptBlocks:
        """Some of the rows."""
        return replace(self, places=self.places[some])

    def read(self) -> GroupedBlocks:
        """What they hold."""
        row = self.file.tensors[self.name]
        blocks = self.file.blocks(self.name).reshape(row.shape[0], -1)[self.places]
        return _READERS[row.format.name](blocks)


def kept_blocks(file: GgufFile, name: str) -> KeptBlocks | None:
    """The blocks of a matrix; None where they are of another kind."""
    row = file.tensors[name]
    if row.format.name not in _READERS or len(row.shape) != 2:
        return None
    return KeptBlocks(file, name, np.arange(row.shape[0]))


def _q4_0(blocks: Blocks) -> GroupedBlocks:
    integers = _nibbles(blocks).view(np.int8) - np.int8(8)
    return GroupedBlocks(integers, "i4", _floats(blocks, "d"))


def _q4_1(blocks: Blocks) -> GroupedBlocks:
    return GroupedBlocks(_nibbles(blocks), "u4", _floats(blocks, "d"), _floats(blocks, "m"))


def _q8_0(blocks: Blocks) -> GroupedBlocks:
    integers = np.ascontiguousarray(blocks["qs"]).reshape(len(blocks), -1)
    return GroupedBlocks(integers, "i8", _floats(blocks, "d"))


def _nibbles(blocks: Blocks) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(split_bits(blocks["qs"], 4)).reshape(len(blocks), -1)


def _floats(blocks: Blocks, field: str) -> Floats:
    return np.asarray(blocks[field], np.float32)


_READERS: MappingProxyType[str, Callable[[Blocks], GroupedBlocks]] = MappingProxyType(
    {"Q4_0": _q4_0, "Q4_1": _q4_1, "Q8_0": _q8_0}
)

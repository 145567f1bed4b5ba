"""Weights that are stored compressed, and decompressed on their way from L2 to L1.

Every block is compressed for itself, part by part as several units bring it, in the form that
takes the fewest bytes; what would not get smaller stays as it is. Compressed bytes wait in a part
of L2 that nothing else has, one block behind the other, from the start again where that is full:
what orders tasks sees them meet there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nacre.base.compression_forms import CompressionForm
from nacre.base.weight_compression import best_form, compress
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer, PackedWeights, element_bytes
from nacre.compile.tiling.spaces import align_up
from nacre.compile.tiling.tiling import Tiling
from nacre.core.values import Array
from nacre.nem.plan.decompression import decompression_figure

_LEAST_PART = 4096  # bytes of weights that are worth a task of their own


@dataclass(frozen=True)
class CompressedPart:
    """Some weights of a block."""

    begins: int  # among the compressed bytes of the block
    size: int  # compressed bytes
    first: int  # byte of the block, as it is in L1
    count: int  # elements
    form: CompressionForm


@dataclass(frozen=True)
class CompressedBlock:
    """A block of weights: its parts, what follows them plain, and where in L2 it waits."""

    parts: tuple[CompressedPart, ...]
    rest: int  # compressed bytes, behind which the bias is stored
    waits_at: int
    saved: int  # bytes


class BlockCompressor:
    """Compresses blocks as long as L2 has a place where they can wait."""

    def __init__(self, options: Options, l2_left: int) -> None:
        device = options.device
        self._entries = decompression_figure(device, "palette_entries")
        self._tables = decompression_figure(device, "palette_tables")
        self._has_sparse = decompression_figure(device, "sparse") > 0
        self._device = device
        self._room = max(0, l2_left)
        self._at = 0
        self.l2_bytes = 0  # of what waits

    def compressed_block(
        self, layer: Layer, tiling: Tiling, array: Array
    ) -> tuple[CompressedBlock, list[Array]] | None:
        """A block and its compressed bytes; None where they are not fewer, or have no place."""
        packed = layer.packed
        assert packed is not None
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        width = element_bytes(packed.elem)
        count = flat.size // width
        step = align_up(-(-count // self._parts(tiling, flat.size)))  # whole bytes of masks
        parts: list[CompressedPart] = []
        stored: list[Array] = []
        begins = 0
        for first in range(0, count, step):
            some = min(step, count - first)
            made = self._compress(flat[first * width : (first + some) * width], some, packed)
            if made is None:
                return None
            form, data = made
            parts.append(CompressedPart(begins, data.size, first * width, some, form))
            stored.append(np.pad(data, (0, align_up(data.size) - data.size)))
            begins += stored[-1].size
        if begins >= flat.size or begins > self._room:
            return None
        place, saved = self._place(begins), flat.size - begins
        return CompressedBlock(tuple(parts), begins, place, saved), stored

    def _compress(
        self, plain: Array, count: int, packed: PackedWeights
    ) -> tuple[CompressionForm, Array] | None:
        bits = 8 * element_bytes(packed.elem)
        form = best_form(plain, count, bits, self._entries, self._tables, self._has_sparse)
        data = compress(plain, count, bits, form) if form is not None else None
        return None if form is None or data is None else (form, data)

    def _parts(self, tiling: Tiling, size: int) -> int:
        """As many as units can bring at a time."""
        paths = min(self._device.count("sDMA"), tiling.engines * self._device.count("DMA"))
        return max(1, min(paths // tiling.engines, size // _LEAST_PART))

    def _place(self, size: int) -> int:
        """Where in L2 a block waits."""
        if self._at + size > self._room:
            self._at = 0
        begun, self._at = self._at, self._at + size
        self.l2_bytes = max(self.l2_bytes, self._at)
        return begun


def saved_by_layer(
    layers: tuple[Layer, ...], blocks: Mapping[tuple[str, int], CompressedBlock]
) -> dict[str, int]:
    """Bytes that each layer's weights take less; of weights of several, the first layer's."""
    saved: dict[str, int] = {}
    seen: set[int] = set()
    titles = {layer.name: layer.title for layer in layers}
    for (name, _), block in blocks.items():
        if id(block) not in seen:
            seen.add(id(block))
            saved[titles[name]] = saved.get(titles[name], 0) + block.saved
    return saved

"""L1 for the values of a tile: who lives where, and which values can follow one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nacre.base.term_columns import Column, IntOrColumn
from nacre.compile.partition.layers import Access, Layer, TileCut, element_bytes
from nacre.compile.tiling.costs import TileSizes

ALIGN = 64  # of everything in L1


def align_up(size: IntOrColumn) -> IntOrColumn:
    """A size rounded up to the next boundary."""
    return -(-size // ALIGN) * ALIGN


@dataclass(frozen=True)
class Spaces:
    """The space of every local value; those without one lie among the weights or stay outside."""

    of_local: tuple[int | None, ...]
    count: int
    fixed: tuple[bool, ...]  # by space: loaded once for all tiles
    placed: Mapping[int, Access] = field(default_factory=dict)  # values that are parts of tensors


def spaces_of(layer: Layer, cut: TileCut, resident: frozenset[int]) -> Spaces:
    """Spaces for operands and results of steps; a value may take that of one that is done.

    `resident` are tensors that lie in L1 as they are: they need no space.
    """
    return _SpaceAssignment(layer, cut, resident).spaces()


class _SpaceAssignment:
    def __init__(self, layer: Layer, cut: TileCut, resident: frozenset[int]) -> None:
        self._layer, self._resident = layer, resident
        self._home: list[int | None] = [None] * len(layer.locals)
        self._fixed: list[bool] = []
        self._signature: list[tuple[object, ...]] = []  # of the values in a space
        self._last = self._last_uses()
        self._shared = layer.fixed_locals(cut)

    def _last_uses(self) -> list[int]:
        """The step after which a value is not needed any more."""
        last = [-1] * len(self._layer.locals)
        for number, step in enumerate(self._layer.steps):
            for operand in (*step.inputs, step.output):
                last[operand.local] = number
        for result in self._layer.results:
            last[result.local] = len(self._layer.steps)
        return last

    def spaces(self) -> Spaces:
        layer = self._layer
        placed = {
            local: access
            for local, access in enumerate(layer.operands)
            if access.tensor in self._resident
        }
        for local, access in enumerate(layer.operands):
            if not access.stays and local not in placed:
                self._home[local] = self._add_space(local, local in self._shared)
        for number, step in enumerate(layer.steps):
            if step.output.local in self._shared:
                self._home[step.output.local] = self._add_space(step.output.local, True)
                continue
            self._assign_space(
                number, step.output.local, step.in_place, [i.local for i in step.inputs]
            )
        self._settle_results(placed)
        return Spaces(tuple(self._home), len(self._fixed), tuple(self._fixed), placed)

    def _settle_results(self, placed: dict[int, Access]) -> None:
        """Results that stay in L1 are made in their place, with all that was computed there."""
        for result in self._layer.results:
            if result.access.tensor not in self._resident:
                continue
            space = self._home[result.local]
            first = len(self._layer.operands)
            for local, home in enumerate(self._home):
                if home == space and local >= first and space is not None:
                    placed[local] = result.access
                    self._home[local] = None

    def _assign_space(self, number: int, local: int, in_place: bool, inputs: list[int]) -> None:
        taken = {
            self._home[other]
            for other, home in enumerate(self._home)
            if home is not None and self._last[other] >= number + (in_place and other in inputs)
        }
        for space, signature in enumerate(self._signature):
            if space not in taken and not self._fixed[space] and signature == self._shape(local):
                self._home[local] = space
                return
        self._home[local] = self._add_space(local, False)

    def _add_space(self, local: int, fixed: bool) -> int:
        self._fixed.append(fixed)
        self._signature.append(self._shape(local))
        return len(self._fixed) - 1

    def _shape(self, local: int) -> tuple[object, ...]:
        """Values of one signature have the same size in every tile."""
        value = self._layer.locals[local]
        return (*value.axes, element_bytes(value.elem))


def space_columns(layer: Layer, spaces: Spaces, sizes: TileSizes) -> list[Column]:
    """Bytes of each space for tiles of every size."""
    found = [np.zeros(len(sizes.rows), np.int64) for _ in range(spaces.count)]
    for local, space in enumerate(spaces.of_local):
        if space is not None:
            value = layer.locals[local]
            taken = sizes.elements(value.axes) * element_bytes(value.elem)
            found[space] = np.maximum(found[space], taken)
    return [align_up(size) for size in found]

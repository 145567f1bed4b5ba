"""What is the same in every run: bytes that steps make of constant buffers alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nacre.nem.run.machine.places import Place
from nacre.nem.run.memory.memory import Storage

# Who wrote a byte: the number of an invariant step, or none such.
_VARYING, _UNWRITTEN = -1, -2

Writers = npt.NDArray[np.int32]


class Origin(NamedTuple):
    """Where the bytes of a place come from."""

    steps: frozenset[int]  # invariant ones that wrote some of them
    is_invariant: bool  # nothing else did
    is_unwritten: bool = False  # some are what an earlier run left there


_CONSTANT = Origin(frozenset(), is_invariant=True)
_FROM_HOST = Origin(frozenset(), is_invariant=False)
_LEFT_OVER = Origin(frozenset(), is_invariant=False, is_unwritten=True)


class InvariantBytes:
    """Which bytes are invariant as a run goes on, and the step that wrote each."""

    def __init__(self, constant: Iterable[str]) -> None:
        self._constant = frozenset(constant)
        self._writers: dict[int, Writers] = {}  # by buffer that is written

    def origin(self, place: Place) -> Origin:
        """Where its bytes come from."""
        writers = self._writers.get(place.storage.buffer.index)
        if writers is None:
            return self._origin_of_unwritten(place.storage)
        found = _distinct_writers(writers, place)
        steps = frozenset(found - {_VARYING, _UNWRITTEN})
        is_left = _UNWRITTEN in found and place.storage.buffer.memory != "DDR"
        return Origin(steps, len(steps) == len(found), is_left)

    def note(self, place: Place, step: int | None) -> None:
        """The bytes are what an invariant step made, or (None) what may differ between runs."""
        buffer = place.storage.buffer
        writers = self._writers.get(buffer.index)
        if writers is None:
            writers = np.full(place.storage.data.size, _UNWRITTEN, np.int32)
            self._writers[buffer.index] = writers
        part, mask = writers[place.low : place.high], place.mask
        part[... if mask is None else mask] = _VARYING if step is None else step

    def is_constant(self, place: Place) -> bool:
        """Whether the host says that its bytes never change."""
        return place.storage.buffer.name in self._constant

    def _origin_of_unwritten(self, storage: Storage) -> Origin:
        if storage.buffer.name in self._constant:
            return _CONSTANT
        return _FROM_HOST if storage.buffer.memory == "DDR" else _LEFT_OVER


def _distinct_writers(writers: Writers, place: Place) -> set[int]:
    """All that wrote bytes of a place; mostly one did."""
    part, mask = writers[place.low : place.high], place.mask
    if mask is not None:
        part = part[mask]
    changes = np.flatnonzero(part[1:] != part[:-1])
    return {int(part[0]), *part[changes + 1].tolist()} if part.size else set()

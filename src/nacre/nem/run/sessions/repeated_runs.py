"""Runs of a program again and again: what depends on constant buffers alone is computed once.

The first run is as any other. The second is followed step by step: a step is invariant where all
that it reads is. What others take of those is held beside memory, as far as there is room, and
from the third run on invariant steps that nobody needs are left out. Memories on the chip then do
not hold what only these would have written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.nem.model.program import Buffer
from nacre.nem.run.machine.actions import Action
from nacre.nem.run.machine.places import Place
from nacre.nem.run.memory.memory import host_memory_bytes
from nacre.nem.run.sessions.invariants import InvariantBytes, Origin

# What a session holds beside memory at most: plans of one model are several sessions.
_SHARE_OF_MEMORY, _LEAST_HELD_BYTES = 16, 1 << 28
_MOST_STEPS = 1 << 18  # each has its arrays at hand

PreparedCall = tuple[int, Callable[[], bool]]  # a step, and what it does


def default_held_bytes() -> int:
    """How much a session may hold on this machine."""
    return max(_LEAST_HELD_BYTES, (host_memory_bytes() or 0) // _SHARE_OF_MEMORY)


@dataclass(eq=False)
class _Step:
    """A step as it was followed."""

    action: Action
    row: int
    is_invariant: bool
    sources: frozenset[int]  # invariant steps whose bytes it takes from memory
    held: dict[int, Array] = field(default_factory=dict)  # inputs by their number


class Recording:
    """Follows a run, and makes of it one that leaves invariant steps out."""

    def __init__(self, constant: Iterable[str], held_bytes: int) -> None:
        self._bytes = InvariantBytes(constant)
        self._left = held_bytes
        self._steps: dict[int, _Step] = {}
        self._held: dict[tuple[object, ...], Array] = {}  # several steps may read the same
        self._wide: dict[int, Array] = {}  # the same in f32, by identity
        self.is_possible = True

    def note(self, step: int, action: Action, row: int) -> None:
        """A step that is about to be taken."""
        places = action.places(row)
        if places is None:
            self.is_possible = False
            return
        origins = [self._bytes.origin(place) for place in places.reads]
        is_odd = any(origin.is_unwritten for origin in origins)
        if is_odd or any(self._bytes.is_constant(place) for place in places.writes):
            self.is_possible = False
        # What the host may look at is written in every run.
        is_seen = any(place.storage.buffer.memory == "DDR" for place in places.writes)
        is_invariant = not is_seen and all(origin.is_invariant for origin in origins)
        noted = self._steps[step] = _Step(action, row, is_invariant, frozenset())
        may_hold = not is_invariant and action.can_hold(row)
        for number, (place, origin) in enumerate(zip(places.reads, origins, strict=True)):
            array = self._hold_elements(place, origin) if may_hold and origin.is_invariant else None
            if array is None:
                noted.sources |= origin.steps
            else:
                noted.held[number] = array
        for place in places.writes:
            self._bytes.note(place, step if is_invariant else None)

    def _hold_elements(self, place: Place, origin: Origin) -> Array | None:
        """Elements that invariant steps made; None where there is no need or no room."""
        if not origin.steps:
            return None
        key = (place.storage.buffer.index, place.low, place.layout, origin.steps)
        if key not in self._held:
            held = place.copy()
            size = max(held.nbytes, place.high - place.low)
            if size > self._left:
                return None
            self._left -= size
            self._held[key] = held
        return self._held[key]

    def calls(self) -> list[PreparedCall]:
        """What is left to do in a run, in order."""
        needed = self._needed_steps()
        return [
            (step, noted.action.prepare(noted.row, self._inputs(noted)))
            for step, noted in self._steps.items()
            if not noted.is_invariant or step in needed
        ]

    def _inputs(self, noted: _Step) -> dict[int, Array]:
        """What is held for a step: f32 where it would make that of halves, and all find room."""
        if not (self._may_widen and noted.action.widens(noted.row)):
            return noted.held
        return {number: self._widen(array) for number, array in noted.held.items()}

    @cached_property
    def _may_widen(self) -> bool:
        """Whether there is room for f32 in the place of halves."""
        return sum(a.nbytes for a in self._held.values() if a.dtype == np.float16) <= self._left

    def _widen(self, array: Array) -> Array:
        if array.dtype != np.float16:
            return array
        if id(array) not in self._wide:
            self._wide[id(array)] = widen_to_f32(array)
        return self._wide[id(array)]

    def _needed_steps(self) -> set[int]:
        """Invariant steps whose bytes somebody takes from memory."""
        needed: set[int] = set()
        for step in reversed(self._steps):  # sources come before who takes them
            noted = self._steps[step]
            if not noted.is_invariant or step in needed:
                needed |= noted.sources
        return needed


class RepeatedRuns:
    """The runs of a session in program order, whose host never changes some buffers."""

    def __init__(self, constant: Iterable[str], held_bytes: int | None = None) -> None:
        self._constant = frozenset(constant)
        self._held_bytes = default_held_bytes() if held_bytes is None else held_bytes
        self.recording: Recording | None = None
        self.calls: list[PreparedCall] | None = None

    def begin(self, *, was_whole: bool, steps: int) -> None:
        """A run begins after another, which took all its steps or not."""
        recording, self.recording = self.recording, None
        if self.calls is not None or not was_whole or steps > _MOST_STEPS:
            return
        if recording is None:
            self.recording = Recording(self._constant, self._held_bytes)
        elif recording.is_possible:
            self.calls = recording.calls()

    def note(self, step: int, action: Action, row: int) -> None:
        """A step is about to be taken."""
        if self.recording is not None:
            self.recording.note(step, action, row)

    def note_host_write(self, buffer: Buffer, *, is_running: bool) -> None:
        """The host changes a buffer: what was held may be worth nothing."""
        if is_running or buffer.memory != "DDR" or buffer.name in self._constant:
            self.recording, self.calls = None, None

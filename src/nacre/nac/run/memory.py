"""Which results a run holds, how many bytes they take, and when the schedule lets go of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.checks.lifetimes import ends_of
from nacre.nac.format.values import NacFile
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.spec.instructions import PRELOAD


@dataclass(frozen=True)
class Schedule:
    """What happens to memory after each instruction."""

    drops: tuple[tuple[int, ...], ...]  # results that go away
    loads: tuple[tuple[int, ...], ...]  # weights that are fetched, where they are not there
    is_planned: bool = False  # weights come when they are fetched, and not with their instruction


def schedule_of(file: NacFile, program: Sequence[PreparedInstruction]) -> Schedule:
    """The schedule of a file; in one that has none, results go after their last use."""
    drops: list[list[int]] = [[] for _ in program]
    loads: list[list[int]] = [[] for _ in program]
    for result, end in ends_of(file.schedule, len(program)):
        drops[end.tick].append(result)
    for tick in file.schedule:
        preloads = (c.target for c in tick.commands if c.action == PRELOAD)
        loads[tick.tick] += [target for target in preloads if target > tick.tick]
    if not file.schedule:
        last = {ref: index for index, made in enumerate(program) for ref in made.refs}
        for result, index in last.items():
            drops[index].append(result)
    return Schedule(tuple(map(tuple, drops)), tuple(map(tuple, loads)))


def keep_all(count: int) -> Schedule:
    """A schedule of so many instructions that lets go of nothing."""
    nothing: tuple[tuple[int, ...], ...] = ((),) * count
    return Schedule(nothing, nothing)


@dataclass
class Memory:
    """The bytes of the tensors alive; what shares memory counts once."""

    limit: int
    live: int = 0
    peak: int = 0
    value_peak: int = 0  # the same without weights that are kept
    on_free: Callable[[int], None] | None = None  # is told owners that nothing looks at any more
    _kept: int = 0  # bytes of those that are alive
    _kept_owners: set[int] = field(default_factory=set)
    _holders: dict[int, list[int]] = field(default_factory=dict)  # count and bytes by owner

    def hold(self, result: Any, is_kept: bool = False) -> None:  # noqa: ANN401 - see arrays_of
        """A result is kept from now on."""
        for array in arrays_of(result):
            key = id(owner(array))
            entry = self._holders.setdefault(key, [0, array.nbytes])
            if entry[0] == 0:
                self.live += entry[1]
                if is_kept:
                    self._kept += entry[1]
                    self._kept_owners.add(key)
            entry[0] += 1
        self._raise_peak(self.live)

    def _raise_peak(self, bytes_: int) -> None:
        self.peak = max(self.peak, bytes_)
        self.value_peak = max(self.value_peak, bytes_ - self._kept)

    def drop(self, result: Any) -> None:  # noqa: ANN401 - an array, several, a number
        """A result is not needed any more."""
        for array in arrays_of(result):
            key = id(owner(array))
            entry = self._holders[key]
            entry[0] -= 1
            if entry[0] == 0:
                self.live -= entry[1]
                del self._holders[key]
                if self.on_free is not None:
                    self.on_free(key)
                if key in self._kept_owners:
                    self._kept_owners.discard(key)
                    self._kept -= entry[1]

    def has_room(self, bytes_: int) -> bool:
        """Whether so many more bytes may be taken; they count into the peak."""
        if self.live + bytes_ > self.limit:
            return False
        self._raise_peak(self.live + bytes_)
        return True


def arrays_of(result: Any) -> Iterator[Array]:  # noqa: ANN401 - an array, several, a number
    """The tensors of a result."""
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, list):
        for part in result:
            yield from arrays_of(part)


def is_copy(array: Array) -> bool:
    """Whether an array has memory of its own, and does not look at a file."""
    return bool(owner(array).flags.owndata)


def owner(array: Array) -> Array:
    """The array whose memory this one looks at."""
    found = array
    while isinstance(found.base, np.ndarray):
        found = found.base
    return found

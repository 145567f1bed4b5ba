"""Relays: what is used late is handed on before it is out of an operand's reach.

An operand lies at most 32,768 instructions back. A weight can be loaded again; what was computed,
and an input, goes through a `nac.clone` on the way, which is the tensor itself: a run computes the
same, and lifting leaves no trace of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from nacre.core.module import Module
from nacre.nac.program.binding import Ref
from nacre.nac.spec.instructions import MOST_ARGUMENTS, MOST_DISTANCE

RELAY = "nac.clone"
# An operation loads and loads again at most its operands, besides the calls that it becomes.
_MOST_ADDED = 4 * MOST_ARGUMENTS


@dataclass
class Reach:
    """Knows how far back the values of a module lie, and which of them are still used."""

    module: Module
    _carriers: deque[tuple[int, Ref]] = field(default_factory=deque)  # the furthest back first

    def __post_init__(self) -> None:
        operations = self.module.operations
        self._last = {value: at for at, op in enumerate(operations) for value in op.operands}
        kept = (*self.module.outputs, *(state.output for state in self.module.states))
        self._last.update(dict.fromkeys(kept, len(operations)))

    def add_carrier(self, value: int, ref: Ref) -> None:
        """A value is the result of this instruction, the latest of all."""
        self._carriers.append((value, ref))

    def values_out_of_reach(self, here: int, place: int) -> Iterator[tuple[int, Ref]]:
        """Values to relay before the operation at a place, the instructions of which begin here.

        Every relay is an instruction more: the caller adds each before it asks for the next.
        """
        while self._carriers and here - self._carriers[0][1].index > MOST_DISTANCE - _MOST_ADDED:
            value, ref = self._carriers.popleft()
            if self._last.get(value, -1) >= place:
                yield value, ref
                here += 1

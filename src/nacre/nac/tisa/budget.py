"""How much work a text may cause; more is refused, so that no program runs without end."""

from __future__ import annotations

_STEPS_FOR_A_CHARACTER = 256
_STEPS_AT_LEAST = 1 << 20
_GROWTH = 64
_TEXT_AT_LEAST = 1 << 16
FAST = 16  # characters that library code handles in the time of one step of ours


class BudgetError(Exception):
    """A program wants more than it may have."""


class Budget:
    """Steps and characters that are left for one text."""

    def __init__(self, length: int) -> None:
        self.most_steps = _STEPS_AT_LEAST + _STEPS_FOR_A_CHARACTER * length
        self.most_text = _TEXT_AT_LEAST + _GROWTH * length
        self._left = self.most_steps

    @property
    def spent(self) -> int:
        """The steps taken so far."""
        return self.most_steps - self._left

    def spend(self, steps: int) -> None:
        """Take steps; BudgetError where too few are left."""
        self._left -= steps
        if self._left < 0:
            raise BudgetError(f"more than {self.most_steps:,} steps")

    def hold(self, length: int) -> None:
        """Judge the length of a text; BudgetError where it has grown too much."""
        self.spend(length // FAST + 1)
        if length > self.most_text:
            raise BudgetError(f"a text that grows over {self.most_text:,} characters")

    def remember(self, places: int) -> None:
        """Judge how much a scan keeps in mind."""
        if places > self.most_text:
            raise BudgetError(f"more than {self.most_text:,} places to keep in mind")

"""Sets of small numbers counted all at once: in how many of them each number is."""

from __future__ import annotations


class Tally:
    """For every number how many of the sets that were added contain it, in binary digits.

    A set is an integer whose bit n says whether n is in it; so is each digit of the counts.
    """

    __slots__ = ("_digits",)

    def __init__(self) -> None:
        self._digits: list[int] = []

    def add(self, found: int, times: int = 1) -> None:
        """Count the numbers of one more set, or of as many that are alike."""
        for place in range(times.bit_length()):
            if times >> place & 1:
                self._add(found, place)

    def _add(self, carried: int, place: int) -> None:
        while carried:
            if place >= len(self._digits):
                self._digits += [0] * (place - len(self._digits) + 1)
            digit = self._digits[place]
            self._digits[place] = digit ^ carried
            carried &= digit
            place += 1

    def at_least(self, value: int, all_numbers: int) -> int:
        """The set of those among all numbers that are in so many sets."""
        if value <= 0:
            return all_numbers
        if value.bit_length() > len(self._digits):
            return 0
        found = all_numbers
        for place, digit in enumerate(self._digits):  # from the lowest: the last one decides
            found = digit & found if value >> place & 1 else digit | found
        return found

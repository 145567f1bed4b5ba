"""Two sequences side by side: which stretches of them are the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

Run = tuple[int, int, int]  # where it begins in the first and in the second, and how long it is

# Comparing everything with everything else takes the product of the lengths.
_MOST_PAIRS = 16_000_000


def align(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[Run]:
    """Equal stretches in order.

    What is common at both ends is found at once. Where the rest is too long to be compared place by
    place, only what stands at the same distance from the start is.
    """
    shortest = min(len(first), len(second))
    start = next((i for i in range(shortest) if first[i] != second[i]), shortest)
    left = shortest - start
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    inner_a, inner_b = first[start : len(first) - end], second[start : len(second) - end]
    inner = _align_unequal(inner_a, inner_b)
    runs = [
        (0, 0, start),
        *((a + start, b + start, length) for a, b, length in inner),
        (len(first) - end, len(second) - end, end),
    ]
    return _join([run for run in runs if run[2]])


def _align_unequal(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[Run]:
    if not first or not second:
        return []
    if len(first) * len(second) <= _MOST_PAIRS:
        blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
        return [(block.a, block.b, block.size) for block in blocks if block.size]
    same = (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a == b)
    return [(i, i, 1) for i in same]


def _join(runs: list[Run]) -> list[Run]:
    made: list[Run] = []
    for a, b, length in runs:
        if made and made[-1][0] + made[-1][2] == a and made[-1][1] + made[-1][2] == b:
            made[-1] = (*made[-1][:2], made[-1][2] + length)
        else:
            made.append((a, b, length))
    return made

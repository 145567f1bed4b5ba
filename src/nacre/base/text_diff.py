"""Unified diffs of two texts, as `patch` and `git apply` read them."""

from __future__ import annotations

import difflib

# Matching lines costs their product at worst; a longer changed part is shown as one block.
_MOST_MATCHED_LINES = 20_000
_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(before: str, after: str, name: str) -> str:
    """What changes between two texts of a file; empty where nothing does."""
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    head, tail = _common_ends(old, new)
    if max(len(old), len(new)) - head - tail > _MOST_MATCHED_LINES:
        parts = _single_hunk(old, new, head, tail)
    else:
        parts = list(difflib.unified_diff(old, new, n=_CONTEXT))[2:]
    lines = [part if part.endswith("\n") else f"{part}\n{_NO_NEWLINE}" for part in parts]
    return f"--- {name}\n+++ {name}\n{''.join(lines)}"


def _lines(text: str) -> list[str]:
    # Only a line feed ends a line: `splitlines` would also cut at form feeds.
    return [line + "\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the others both end with."""
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    left = most - head
    tail = next((i for i in range(left) if old[-1 - i] != new[-1 - i]), left)
    return head, tail


def _single_hunk(old: list[str], new: list[str], head: int, tail: int) -> list[str]:
    first, last = max(0, head - _CONTEXT), min(tail, _CONTEXT)
    counts = [len(lines) - tail + last - first for lines in (old, new)]
    begin = [first + 1 if count else first for count in counts]
    return [
        f"@@ -{begin[0]},{counts[0]} +{begin[1]},{counts[1]} @@\n",
        *(f" {line}" for line in old[first:head]),
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail : len(old) - tail + last]),
    ]

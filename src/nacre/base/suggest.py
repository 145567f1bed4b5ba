"""Did you mean: the nearest known names to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

# Names longer than this are machine-made; comparing them costs more than the hint is worth.
_LONGEST = 64


def edit_distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) from a to b; `limit` + 1 when more."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    two_back: list[int] = []
    back = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(back[j] + 1, row[j - 1] + 1, back[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, two_back[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        two_back, back = back, row
    return min(back[-1], limit + 1)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely meant, or None when none is near."""
    if len(name) > _LONGEST:
        return None
    limit = max(1, len(name) // 3)
    best, best_distance = None, limit + 1
    for candidate in sorted(set(known)):
        folded = candidate.lower() == name.lower()
        distance = 0 if folded else edit_distance(name, candidate, limit)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line that names the nearest known name, or None."""
    found = nearest(name, known)
    return None if found is None else f"did you mean `{found}`?"

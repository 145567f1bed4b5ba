"""Did you mean: the nearest known names to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

# Names longer than this are machine-made; comparing them costs more than the hint is worth.
_LONGEST = 64
# Of so many known names only those that begin alike are compared.
_MOST_COMPARED = 1000
# So many of a list's mistakes get a hint: who has more has made one mistake many times.
_MOST_HINTS = 8


def edit_distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) from a to b; `limit` + 1 when more."""
    far = limit + 1
    if abs(len(a) - len(b)) > limit:
        return far
    two_back: list[int] = []
    back = [j if j <= limit else far for j in range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        # Further from the diagonal than the limit there is nothing near.
        first, last = max(1, i - limit), min(len(b), i + limit)
        row = [far] * (len(b) + 1)
        row[0] = min(i, far)
        for j in range(first, last + 1):
            y = b[j - 1]
            cost = min(back[j] + 1, row[j - 1] + 1, back[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, two_back[j - 2] + 1)
            row[j] = min(cost, far)
        if min(row) > limit:
            return far
        two_back, back = back, row
    return back[-1]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely meant, or None when none is near."""
    if len(name) > _LONGEST:
        return None
    limit = max(1, len(name) // 3)
    folded, letters, best = name.lower(), set(name), None
    for candidate in _comparable(name, known, limit):
        if candidate.lower() == folded:
            return candidate if limit >= 0 else best  # below 0 the name itself was found
        # An edit brings in or takes away one letter at most.
        if len(letters.difference(candidate)) > limit:
            continue
        distance = edit_distance(name, candidate, limit)
        if distance <= limit:
            best, limit = candidate, distance - 1  # only a nearer one counts from here on
    return best


def _comparable(name: str, known: Iterable[str], limit: int) -> list[str]:
    """The names of about the right length, in order; of very many those that begin alike."""
    size = len(name)
    found = {one for one in known if -limit <= len(one) - size <= limit}
    if len(found) > _MOST_COMPARED:
        head = name[:2].lower()
        found = {one for one in found if one[:2].lower() == head}
    return sorted(found)[:_MOST_COMPARED]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line that names the nearest known name, or None."""
    found = nearest(name, known)
    return None if found is None else f"did you mean `{found}`?"


class Hints:
    """Help lines for the names of one list; the first few that are wrong get one."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = known
        self._left = _MOST_HINTS

    def help(self, name: str) -> str | None:
        """A help line that names the nearest known name, or None."""
        if self._left == 0:
            return None
        self._left -= 1
        return did_you_mean(name, self._known)

    def suffix(self, name: str) -> str:
        """The same behind a message: `; did you mean ..?`, or nothing."""
        found = self.help(name)
        return f"; {found}" if found else ""

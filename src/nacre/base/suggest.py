"""Did you mean: the nearest known names to a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Names longer than this are machine-made; comparing them costs more than the hint is worth.
_LONGEST = 64
# Of so many known names only those that begin alike are compared.
_MOST_COMPARED = 1000
# So many of a list's mistakes get a hint: who has more has made one mistake many times.
_MOST_HINTS = 8
# A name that is sure to be misspelt differs by no more edits, in no word shorter than that.
_MOST_SURE_EDITS = 2
_SHORTEST_SURE = 3
_SHORTEST_SURE_OF_USERS = 4
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


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
    for candidate in _candidates(name, known, limit):
        if candidate.lower() == folded:
            return candidate if limit >= 0 else best  # below 0 the name itself was found
        # An edit brings in or takes away one letter at most.
        if len(letters.difference(candidate)) > limit:
            continue
        distance = edit_distance(name, candidate, limit)
        if distance <= limit:
            best, limit = candidate, distance - 1  # only a nearer one counts from here on
    return best


def _candidates(name: str, known: Iterable[str], limit: int) -> list[str]:
    """The names of about the right length, in order; of very many those that begin alike."""
    size = len(name)
    candidates = {candidate for candidate in known if -limit <= len(candidate) - size <= limit}
    if len(candidates) > _MOST_COMPARED:
        head = name[:2].lower()
        candidates = {candidate for candidate in candidates if candidate[:2].lower() == head}
    return sorted(candidates)[:_MOST_COMPARED]


def intended_name(name: str, known: Iterable[str], *, is_user_chosen: bool = False) -> str | None:
    """The only known name that `name` can be a misspelling of; None where that is not sure.

    Two names that are near, one that differs by a number, or in a word of a few letters, are none.
    Where people chose the names (`is_user_chosen`), `xbuf` and `ybuf` are two, not a misspelling.
    """
    known = set(known)
    if not 2 <= len(name) <= _LONGEST or len(known) >= _MOST_COMPARED:
        return None
    same = [one for one in known if one.lower() == name.lower()]
    if same:
        return same[0] if len(same) == 1 else None
    limit = min(max(1, len(name) // 3), _MOST_SURE_EDITS)
    near = [one for one in known if edit_distance(name, one, limit) <= limit]
    return near[0] if len(near) == 1 and _is_misspelling(name, near[0], is_user_chosen) else None


def _is_misspelling(name: str, meant: str, is_user_chosen: bool) -> bool:
    first, second = _WORD.findall(name), _WORD.findall(meant)
    if [w for w in first if w.isdigit()] != [w for w in second if w.isdigit()]:
        return False
    if len(first) != len(second):
        first, second = ["".join(first)], ["".join(second)]
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    shortest = _SHORTEST_SURE_OF_USERS if is_user_chosen else _SHORTEST_SURE
    if any(max(len(a), len(b)) < shortest for a, b in pairs):
        return False
    return not is_user_chosen or not any(_differs_at_an_end(a, b) for a, b in pairs)


def _differs_at_an_end(a: str, b: str) -> bool:
    """Whether only the first or the last letter is another: `xbuf` and `ybuf`."""
    return len(a) == len(b) and (a[1:] == b[1:] or a[:-1] == b[:-1])


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line that names the nearest known name, or None."""
    near = nearest(name, known)
    return None if near is None else f"did you mean `{near}`?"


class Suggestions:
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
        hint = self.help(name)
        return f"; {hint}" if hint else ""

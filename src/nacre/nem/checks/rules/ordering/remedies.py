"""Which conflict's remedy orders another one too: `t2` waits for `t1`, which lacks `deps=[t0]`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from nacre.nem.model.program import Task
from nacre.nem.plan.conflicts import Conflict

_MOST_VISITED = 1000  # tasks, on the way back along `deps`


class Remedies:
    """The conflicts inside one iteration, which a token in `deps` orders."""

    def __init__(self, conflicts: Iterable[Conflict], task_at: Mapping[int, Task]) -> None:
        self._task_at = task_at
        self._before: dict[int, set[int]] = {}
        self._by_second: dict[int, dict[int, Conflict]] = defaultdict(dict)
        for conflict in conflicts:
            if conflict.loop is None:
                firsts = self._by_second[conflict.second.position]
                firsts.setdefault(conflict.first.position, conflict)

    def remedied_by(self, conflict: Conflict) -> Conflict | None:
        """A conflict whose remedy orders this pair too; None where there is no other."""
        first, second = conflict.first.position, conflict.second.position
        if conflict.loop is not None:
            return None
        for later in sorted(self._ancestors(second) & self._by_second.keys()):
            for earlier, candidate in self._by_second[later].items():
                if (earlier, later) != (first, second) and first in self._ancestors(earlier):
                    return candidate
        return None

    def _ancestors(self, position: int) -> set[int]:
        """A task and those that it waits for."""
        if position not in self._before:
            seen, left = {position}, [position]
            while left and len(seen) < _MOST_VISITED:
                new = [d for d in self._task_at[left.pop()].deps if d not in seen]
                seen.update(new)
                left += new
            self._before[position] = seen
        return self._before[position]

"""How hard the tests try: few examples in the tier that CI runs, all of them in the others.

Which ones CI runs rotates with the commit, so that all of them have their turn.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

PROFILE = os.environ.get("NACRE_HYPOTHESIS_PROFILE", "fast")
_SHARE = {"fast": 0.3, "full": 1.0, "fuzz": 10.0}


def scaled(count: int) -> int:
    """How many examples a property gets for which `count` are enough in the full tier."""
    return max(3, int(count * _SHARE.get(PROFILE, 1.0)))


Case = TypeVar("Case")


def every(nth: int, cases: Sequence[Case]) -> Sequence[Case]:
    """All cases; in the tier of CI every n-th, others with every commit."""
    return cases[commit_number() % nth :: nth] if PROFILE == "fast" else cases


@cache
def commit_number() -> int:
    """A number that changes with the commit; 0 where there is no repository."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def leave_to_full_tier(items: list[pytest.Item]) -> None:
    """Of tests marked `sampled(n)`, mark all but every n-th case `full`."""
    for item in items:
        if any(_is_left_out(item, mark) for mark in item.iter_markers("sampled")):
            item.add_marker(pytest.mark.full)


def _is_left_out(item: pytest.Item, mark: pytest.Mark) -> bool:
    """Cases of a test have their turns one by one; `together`, where what they share takes long."""
    name = item.nodeid.partition("[")[0] if mark.kwargs.get("together") else item.nodeid
    return bool((zlib.crc32(name.encode()) + commit_number()) % mark.args[0])

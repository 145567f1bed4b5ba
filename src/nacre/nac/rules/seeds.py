"""NAC73: seeds of whatever is left to chance: runs, plans, synthesis, searches."""

from __future__ import annotations

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.rules import declare
from nacre.base.source import whole_file

SEEDS = 1 << 64  # there are so many; any other integer stands for one of them

NAC73 = declare(
    "NAC73", "seed", "NAC / Execution process",
    """
    A seed is no integer. Runs, plans, synthesis and searches take any: modulo 2^64 it says which of
    the sequences of random numbers is drawn.
    """, language="NAC")  # fmt: skip


def require_seed(given: object) -> int:
    """A seed, from 0 on; InputError where it is no integer."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given) % SEEDS
    message = f"the seed is a {type(given).__name__}, expected an integer"
    raise InputError([NAC73.at(whole_file("<seed>"), message, help="give one such as `seed=0`")])

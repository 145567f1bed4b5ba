"""How much memory and how much work a run may take.

A file of a few bytes can ask for tensors of any size: one number of a padding is enough. What a run
may take therefore follows from what is there: the file, and the inputs that the caller brings. Who
knows better says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from nacre.core.values import Array
from nacre.kernels.interface.call import Work

# Tensors alone: with copies of outputs, and what kernels need beside their results, a run of a file
# that asks for all of it stays below 64 MB and ten times the file.
_BYTES = 32 * 2**20
_FILE_BYTES = 8  # for each byte of the file
_INPUT_BYTES = 256  # for each byte of the inputs
_PAIR_BYTES = 64  # for each place of the longest axis with each other, as attention needs them
_MOST_PAIRS = 2**30
_STEPS = 2**27
_EACH_STEPS = 4  # for each byte of the file, and element of an input, with each element
_MACS = 8  # multiplications of a product in one step


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take at most."""

    bytes: int  # of tensors that are alive at one time
    work: int  # steps: about one for an element that is computed


class TooManySteps(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A call with which a run takes more steps than it may."""

    def __init__(self, work: int) -> None:
        super().__init__(f"{work:,} steps")
        self.work = work


def limits_for(
    file_bytes: int,
    inputs: Iterable[Array] = (),
    max_bytes: int | None = None,
    max_work: int | None = None,
) -> Limits:
    """The limits of a run on these inputs; those that the caller names stand."""
    given = tuple(inputs)
    elements = sum(array.size for array in given)
    longest = max((dim for array in given for dim in array.shape), default=0)
    bytes_ = _BYTES + _FILE_BYTES * file_bytes + _INPUT_BYTES * sum(a.nbytes for a in given)
    bytes_ += min(_PAIR_BYTES * longest**2, _MOST_PAIRS)
    work = _STEPS + _EACH_STEPS * (file_bytes + elements) * max(elements, 1)
    return Limits(
        min(bytes_, machine_bytes()) if max_bytes is None else max_bytes,
        work if max_work is None else max_work,
    )


def steps_of(work: Work, results: int) -> int:
    """The steps of a kernel that gives so many elements; products go faster than the rest."""
    return work.macs // _MACS + max(work.elements * work.each, results)


def machine_bytes() -> int:
    """The memory of the machine; where the system does not say, whatever can be addressed."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize

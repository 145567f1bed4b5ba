"""Runs as lists of calls on arrays that stay where they are.

A machine that runs a kernel on the same memory again and again has every view of it made once:
what is left of a small operation is a few calls of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.interface.shapes import Dims

FixedCall = Callable[[], object]
# Memory of arbitrary values by what it is for, to be used until the same is asked for again.
Scratch = Callable[[str, Dims, np.dtype[Any]], Array]
# The calls that fill outputs, all of them dense, from inputs; none can go wrong.
Fix = Callable[[Sequence[Array | None], Sequence[Array], Scratch], Iterator[FixedCall]]


@dataclass(frozen=True, slots=True)
class FixableRun:
    """A run of one output that can be fixed to arrays."""

    fix: Fix
    run: Run | None = None  # the same without calls in between, where that is quicker

    def __call__(self, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        """Run on any arrays."""
        if self.run is not None:
            return self.run(inputs, outputs)
        y = outputs[0]
        is_dense = y.flags.c_contiguous and y.flags.aligned
        made = y if is_dense else np.empty(y.shape, y.dtype)
        for call in self.fix(inputs, [made], scratch):
            call()
        if made is not y:
            y[...] = made
        return None

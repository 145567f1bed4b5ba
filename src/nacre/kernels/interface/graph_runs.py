"""How runs of graphs are made from other runs: late, into dense memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nacre.kernels.interface.call import Array, Call, Fault, Run


def bind_at_first_run(bind: Callable[[Call], Run]) -> Callable[[Call], Run]:
    """Bind only when there is something to run.

    For binders that make tables as large as their outputs: a module whose values do not fit into
    the machine is refused before it runs, but after it is bound.
    """

    def bind_late(call: Call) -> Run:
        bound: list[Run] = []

        def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
            if not bound:
                bound.append(bind(call))
            return bound[0](inputs, outputs)

        return run

    return bind_late


def with_dense_output(run: Run) -> Run:
    """A run whose output is dense, so that it can be seen under other shapes without a copy."""

    def run_densely(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        y = outputs[0]
        if y.flags.c_contiguous and y.flags.aligned:
            return run(inputs, outputs)
        dense = np.empty(y.shape, y.dtype)
        fault = run(inputs, [dense])
        if fault is None or not fault.is_fatal:
            y[...] = dense
        return fault

    return run_densely

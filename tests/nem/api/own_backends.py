"""Two backends as users write them, and programs to run on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre.nem.run.memory.arrays import RegionView
from neminterp import InputError, NemInterpreter, RunResult

HEAD = """
buffer A : L2 (size=32)
buffer B : L1 (size=64)
t = transfer.sync(dst=region(B, 0, 32), src=region(A, 0, 32))
let X = region(B, 0, 32) elem=i8, shape=[4, 8], layout=MN
let Y = region(B, 32, 32) elem=i8, shape=[4, 8], layout=MN
"""
RELU = HEAD + "r = relu.sync in X out Y\n"
SPLIT = (
    HEAD
    + """
let P = region(B, 32, 16) elem=i8, shape=[2, 8], layout=MN
let Q = region(B, 48, 16) elem=i8, shape=[2, 8], layout=MN
s = split.sync in X out P, Q axis=0 split_sizes=[2, 2]
"""
)
DATA = np.arange(32, dtype=np.int8).reshape(4, 8) - 16
Attributes = dict[str, Any]


def run(backend: Any, text: str = RELU) -> RunResult:  # noqa: ANN401 - also what is no backend
    """Run a program on a backend."""
    interp = NemInterpreter()
    interp.set_compute_backend(backend)
    return interp.run(interp.load_string(text), inputs={"A": DATA})


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    """Code and message of the one reason for which a call is refused."""
    with pytest.raises(InputError) as caught:
        call()
    (found,) = caught.value.diagnostics
    return found.code, found.message


class Printed:
    """The form that the specification prints: one output, filled in place."""

    def execute(
        self, opcode: str, inputs: list[RegionView], output: RegionView, attrs: Attributes
    ) -> None:
        self.seen = (opcode, [view.shape for view in inputs], attrs)
        output[:] = np.maximum(inputs[0], 1)

    def supports(self, opcode: str) -> bool:
        return opcode in ("relu", "maxpool")


class Listed:
    """The form with a list of outputs."""

    deterministic = True

    def execute(
        self, opcode: str, inputs: list[RegionView], outputs: list[RegionView], attrs: Attributes
    ) -> object:
        size = 0
        for output in outputs:
            output[...] = inputs[0][size : size + len(output)]
            size += len(output)
        return None

    def supports(self, opcode: str) -> bool:
        return True

"""A small pipeline, and running it: what the tests of running programs share."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.nem.api import NemInterpreter
from nacre.nem.run.memory.arrays import RegionView
from neminterp import InputError, RunResult

HEAD = """
buffer A : L2 (size=64)
buffer B : L1 (size=64)
buffer Y : L2 (size=64)
"""
BYTES = np.arange(64, dtype=np.int8) - 32


def pipeline(decorators: str = "", body: str = "") -> str:
    """Four tiles of sixteen bytes: in, ReLU, out."""
    return f"""{HEAD}
loop i in [0..3]{decorators}:
    let X_i = region(B, i * 16, 16) elem=i8, shape=[16], layout=C
    tX = transfer.async(dst=X_i, src=region(A, i * 16, 16))
    tR = relu.async in X_i out X_i @materialized deps=[tX]{body}
    tS = store.async(dst=region(Y, i * 16, 16), src=X_i, deps=[tR])
endloop
"""


def interpreter(text: str, device: str | None = None, seed: int | None = None) -> NemInterpreter:
    made = NemInterpreter(device=device)
    if seed is not None:
        made.set_scheduling("random", seed=seed)
    assert [str(d) for d in made.load_string(text).diagnostics if d.severity == "error"] == []
    return made


def run(text: str, device: str | None = None, seed: int | None = None) -> RunResult:
    interp = interpreter(text, device, seed)
    return interp.run(interp.load_string(text), inputs={"A": BYTES})


def codes(result: RunResult) -> list[str]:
    return [d.code for d in result.diagnostics]


def refusal(text: str, interp: NemInterpreter) -> list[str]:
    with pytest.raises(InputError) as caught:
        interp.run(interp.load_string(text), inputs={"A": BYTES})
    return [d.code for d in caught.value.diagnostics]


class Unsure:
    """A backend that says nothing about determinism."""

    def execute(
        self, opcode: str, inputs: list[RegionView], output: RegionView, attrs: dict[str, object]
    ) -> None:
        output[...] = np.maximum(inputs[0], 0)

    def supports(self, opcode: str) -> bool:
        return opcode == "relu"

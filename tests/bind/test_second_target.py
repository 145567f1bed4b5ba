"""The same plan on another machine: nothing above the binder changes, and outputs are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.tcb.machine.timing import time_image

pytestmark = pytest.mark.sampled(2)  # together they take long

SMALL = Path(__file__).resolve().parents[2] / "examples/uarch/small_npm4k.uarch"
DIGITS = Path(nacre.__file__).parent / "demo/digits.onnx"


@pytest.mark.heavy("compiles a network")
def test_a_plan_runs_on_half_the_banks_without_chains() -> None:
    bundle = nacre.compile(DIGITS, "npm4k")
    port = bundle.manifest.inputs[0]
    image = np.random.default_rng(0).random(port.shape).astype(np.float32)
    inputs = bundle.to_memory({port.name: image})
    expected = bundle.run({port.name: image})
    cycles = {}
    for name in ("ideal", "npm4k", SMALL):
        bound = nacre.bind(bundle, uarch=name, allow_serialise=True)
        assert bound.verify(bundle) == []
        result = bound.run(inputs, seed=3)
        assert result.status == "completed"
        for output in bundle.manifest.outputs:
            found = np.frombuffer(result.read(output.buffer), np.float16)[
                : expected[output.name].size
            ]
            assert (found == expected[output.name].astype(np.float16).reshape(-1)).all()
        cycles[str(name)] = time_image(bound.image).cycles
    assert cycles["ideal"] == bundle.time().cycles
    assert cycles["ideal"] < cycles["npm4k"] < cycles[str(SMALL)]

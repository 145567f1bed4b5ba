"""Runs of a bundle one after the other: none sees what another left in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nacre
from nacre import InputError
from nacre.nem.api.interpreter import NemInterpreter
from tests.compile.models import convolution_model, linear_model

SOURCE = """
device "npm4k.nem"
program p:
buffer A : DDR (size=64)
buffer B : DDR (size=64)
buffer X : L1 (size=64)
t = transfer.async(dst=region(X, 0, 64), src=region(A, 0, 64))
u = transfer.async(dst=region(B, 0, 64), src=region(X, 0, 64), deps=[t])
"""


def test_every_run_gives_what_a_fresh_bundle_gives() -> None:
    """The same plan on other inputs, again and again, equals a plan that never ran before."""
    module = convolution_model((1, 12, 10, 8), (3, 3, 8, 16))
    bundle = nacre.compile(module, "npm4k")
    name, shape = next((n, t.shape) for n, t in module.input_types.items())
    random = np.random.default_rng(1)
    for _ in range(4):
        given = {name: random.standard_normal(shape).astype(np.float32)}
        fresh = nacre.compile(module, "npm4k").run(given)
        for output, array in bundle.run(given).items():
            np.testing.assert_array_equal(array, fresh[output])


def test_runs_on_several_threads_do_not_meet() -> None:
    """Machines are taken and given back: no two runs have one at the same time."""
    module = linear_model(8, 64, 32)
    bundle = nacre.compile(module, "npm4k")
    name, shape = next((n, t.shape) for n, t in module.input_types.items())
    given = [np.full(shape, k / 8, np.float32) for k in range(16)]
    alone = [bundle.run({name: array}) for array in given]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda array: bundle.run({name: array}), given))
    for one, other in zip(alone, together, strict=True):
        for output, array in one.items():
            np.testing.assert_array_equal(array, other[output])


def test_a_session_starts_again_with_other_inputs() -> None:
    """`restart`: no step is taken, memories keep what they hold, wrong inputs are refused."""
    machine = NemInterpreter()
    session = machine.start(machine.load_string(SOURCE), {"A": bytes(range(64))})
    assert session.run().read_buffer("B") == bytes(range(64))
    session.restart({"A": bytes(64)})
    assert session.status == "ready"
    assert session.read_buffer("B") == bytes(range(64))
    assert session.run().read_buffer("B") == bytes(64)
    assert session.step_back() == ["u"]
    with pytest.raises(InputError) as caught:
        session.restart({"C": bytes(64)})
    assert [d.code for d in caught.value.diagnostics] == ["RUN05"]

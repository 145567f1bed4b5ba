"""`@deterministic` and `ordered`: floats accumulated in a fixed order, by task, loop or program."""

from __future__ import annotations

import numpy as np
import pytest

from neminterp import InputError, NemInterpreter
from tests.nem.api.own_backends import Printed

K = 2048
HEAD = f"""\
buffer P : L1 (size={4 * (2 * K + 4)})
let A = region(P, 0, {4 * K}) elem=f32, shape=[1, {K}], layout=MK
let B = region(P, {4 * K}, {4 * K}) elem=f32, shape=[{K}, 1], layout=KN
"""
TAIL = f"out region(P, {8 * K} + i * 4, 4) elem=f32, shape=[1, 1], layout=MN accum_type=f32"
PLAIN = f"loop i in [0..0]:\n    g = gemm.sync in A, B {TAIL}\nendloop\n"
ON_TASK = PLAIN.replace("accum_type=f32", "accum_type=f32 @deterministic")
ON_LOOP = PLAIN.replace("[0..0]:", "[0..0] @deterministic:")
ON_OUTER = f"loop j in [0..0] @deterministic:\n{PLAIN}endloop\n"


def _result(body: str, *, ordered: bool = False) -> bytes:
    interp = NemInterpreter(device="nem_reference", ordered=ordered)
    values = np.random.default_rng(3).standard_normal(2 * K + 4).astype(np.float32)
    result = interp.run(interp.load_string(HEAD + body), inputs={"P": values})
    assert result.status == "completed"
    return result.read_buffer("P")[8 * K : 8 * K + 4]


def _in_sequence() -> bytes:
    """The same sum term by term, which is what `ordered` promises."""
    values = np.random.default_rng(3).standard_normal(2 * K + 4).astype(np.float32)
    total = np.float32(0)
    for a, b in zip(values[:K], values[K : 2 * K], strict=True):
        total = np.float32(total + np.float32(a * b))
    return total.tobytes()


@pytest.mark.parametrize("body", [ON_TASK, ON_LOOP, ON_OUTER], ids=["task", "loop", "outer loop"])
def test_deterministic_selects_the_ordered_kernels(body: str) -> None:
    assert _result(body) == _in_sequence()
    assert _result(PLAIN) != _in_sequence()  # else this test could not fail


def test_an_option_does_so_for_a_whole_program() -> None:
    assert _result(PLAIN, ordered=True) == _in_sequence()


def test_a_whole_program_in_order_needs_a_backend_that_is_deterministic() -> None:
    interp = NemInterpreter(device="nem_reference", ordered=True)
    interp.set_compute_backend(Printed())
    with pytest.raises(InputError) as caught:
        interp.run(interp.load_string(HEAD + "r = relu.sync in A out A\n"))
    (found,) = caught.value.diagnostics
    assert found.code == "RUN09"
    assert "run without `ordered=True`" in (found.help or "")

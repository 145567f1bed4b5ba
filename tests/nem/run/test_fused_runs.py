"""Fused runs: the same outputs under any schedule, and nothing in between."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nem.plan.fusion import byte_classes
from nacre.nem.plan.fusion.chains import find_chains
from nacre.nem.plan.fusion.value_reads import value_reads
from nacre.nem.run.sessions.session import RunResult
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.fusing_programs import GEMM, HEAD, RELU, STORE
from tests.nem.plan.fusing_sketches import INPUTS, Body, draw_body

pytestmark = pytest.mark.sampled(2)  # together they take long

seeds = st.integers(0, 1 << 32)
CHAIN = HEAD + GEMM + RELU + STORE
ARRAYS = {
    "A_L1": np.linspace(-1, 1, 2048, dtype=np.float16),
    "B_L1": np.linspace(-1, 1, 4096, dtype=np.float16),
}


def filled(seed: int) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=size // 2).astype(np.float16).tobytes()
        for name, size in INPUTS.items()
    }


def completed(interpreter: NemInterpreter, body: Body, seed: int, *, fuse: bool) -> RunResult:
    result = interpreter.run(interpreter.load_string(body.text), filled(seed), fuse=fuse)
    assert result.status == "completed", (result.diagnostics, body.text)
    return result


def require_same_outputs(seed: int, schedules: int) -> None:
    body = draw_body(random.Random(seed))
    interpreter = NemInterpreter()
    plain = completed(interpreter, body, seed, fuse=False)
    for number in range(schedules):
        interpreter.set_scheduling("random" if number else "deterministic", seed + number)
        fused = completed(interpreter, body, seed, fuse=True)
        assert fused.read_buffer("O") == plain.read_buffer("O"), body.text
        require_poison(fused, plain, body.text)


def require_poison(fused: RunResult, plain: RunResult, text: str) -> None:
    """What was written is as it would have been; what was not is poison, and is in some chain."""
    assert fused.session is not None
    storage = fused.session.memory.storage(fused.session.memory.buffers["S"])
    written = np.frombuffer(plain.read_buffer("S"), np.uint8)
    assert (storage.data[storage.written] == written[storage.written]).all(), text
    if not storage.written.all():
        program = NemInterpreter().load_string(text)
        assert find_chains(program.plan, program.device).chains, text


@settings(max_examples=scaled(60))
@given(seeds)
def test_random_programs_give_the_same_outputs_in_any_order(seed: int) -> None:
    require_same_outputs(seed, 4)


@pytest.mark.full
@settings(max_examples=scaled(1000))
@given(seeds)
def test_many_random_programs_give_the_same_outputs_in_any_order(seed: int) -> None:
    require_same_outputs(seed, 8)


@settings(max_examples=scaled(100))
@given(seeds)
def test_who_reads_what_is_as_single_bytes_say(seed: int) -> None:
    body = draw_body(random.Random(seed))
    plan = NemInterpreter().load_string(body.text).plan
    found: dict[tuple[str, str], bool] = {}
    for pair in value_reads(plan).reads:
        key = (pair.write.task.name, pair.read.task.name)
        assert key not in found or not pair.is_one_to_one
        found[key] = pair.is_one_to_one
    assert found == body.value_pairs(), body.text


def test_who_reads_what_does_not_hang_on_weights_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes with equal sums of weights may differ in who touches them: they are compared."""
    monkeypatch.setattr(byte_classes, "_random_weights", lambda count: np.zeros(count, np.uint64))
    for seed in range(20):
        body = draw_body(random.Random(seed))
        reads = value_reads(NemInterpreter().load_string(body.text).plan).reads
        found = {(r.write.task.name, r.read.task.name): r.is_one_to_one for r in reads}
        assert found == body.value_pairs(), body.text


def test_the_programs_of_these_tests_do_have_chains() -> None:
    """Otherwise the tests above would prove nothing."""
    lengths = []
    for seed in range(60):
        program = NemInterpreter().load_string(draw_body(random.Random(seed)).text)
        chains = find_chains(program.plan, program.device).chains
        lengths += [len(chain.tasks) for chain in chains]
    assert len(lengths) > 20
    assert 3 in lengths


def test_values_between_the_tasks_of_a_chain_are_poison() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    plain = interpreter.run(program, ARRAYS)
    fused = interpreter.run(program, ARRAYS, fuse=True)
    assert fused.status == "completed"
    assert fused.read_buffer("Y_L2")[:4096] == plain.read_buffer("Y_L2")[:4096]
    for name in ("Y_L1", "Z_L1"):
        assert plain.read_buffer(name)[:4096] != b"\xff" * 4096
        assert fused.read_buffer(name) == b"\xff" * 8192


def test_what_lay_in_the_place_of_a_streamed_value_is_gone() -> None:
    """Memory that a fused value would have overwritten is nobody's to read."""
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    inputs = {**ARRAYS, "Y_L1": bytes(8192)}
    fused = interpreter.run(program, inputs, fuse=True)
    assert fused.read_buffer("Y_L1") == b"\xff" * 4096 + bytes(4096)
    without_poison = NemInterpreter(uninitialized="zero")
    fused = without_poison.run(without_poison.load_string(CHAIN), inputs, fuse=True)
    assert fused.read_buffer("Y_L1") == bytes(8192)


def test_buffers_that_are_observed_are_written() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    plain = interpreter.run(program, ARRAYS)
    fused = interpreter.run(program, ARRAYS, fuse=True, observed=["Z_L1"])
    assert fused.read_buffer("Z_L1")[:4096] == plain.read_buffer("Z_L1")[:4096]
    assert fused.read_buffer("Y_L1") == b"\xff" * 8192


def test_steps_of_a_chain_can_be_taken_back() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    session = interpreter.start(program, {**ARRAYS, "Y_L1": bytes(8192)}, fuse=True)
    expected = interpreter.run(program, ARRAYS).read_buffer("Y_L2")
    session.step(2)
    assert session.read_buffer("Y_L1")[:4096] == b"\xff" * 4096
    session.step_back(2)
    assert session.read_buffer("Y_L1") == bytes(8192)
    session.run()
    assert session.read_buffer("Y_L2") == expected


def test_a_timed_run_computes_the_same_fused() -> None:
    interpreter = NemInterpreter()
    interpreter.set_mode("timed")
    program = interpreter.load_string(CHAIN)
    plain = interpreter.run(program, ARRAYS)
    fused = interpreter.run(program, ARRAYS, fuse=True)
    assert fused.read_buffer("Y_L2") == plain.read_buffer("Y_L2")


def test_a_store_that_quantises_ends_a_chain() -> None:
    text = (
        (HEAD + GEMM + RELU).replace("npm_lite", "npm4k")
        + """\
let Q = region(Y_L2, 0, 2048)
    elem=i8, shape=[32, 64], layout=MN, quant=per_tensor(scale=0.5, zero_point=0)
tS = store.async(dst=Q, src=Z, deps=[tR])
"""
    )
    interpreter = NemInterpreter()
    program = interpreter.load_string(text)
    plain = interpreter.run(program, ARRAYS)
    fused = interpreter.run(program, ARRAYS, fuse=True)
    assert fused.read_buffer("Y_L2")[:2048] == plain.read_buffer("Y_L2")[:2048]
    assert fused.read_buffer("Z_L1") == b"\xff" * 8192


def test_an_unknown_buffer_cannot_be_observed() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    with pytest.raises(InputError, match=r"no buffer `Z_L3` .*") as caught:
        interpreter.run(program, ARRAYS, fuse=True, observed="Z_L3")
    assert caught.value.diagnostics[0].help is not None
    assert "Z_L1" in caught.value.diagnostics[0].help


def test_a_program_with_errors_that_were_allowed_is_not_fused() -> None:
    interpreter = NemInterpreter()
    racy = HEAD + GEMM + "tR = relu.async in Y out Z\n"
    program = interpreter.load_string(racy)
    with pytest.raises(InputError, match="cannot be fused"):
        interpreter.run(program, ARRAYS, allow=["HAZ"], fuse=True)

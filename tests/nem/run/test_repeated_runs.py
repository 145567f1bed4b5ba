"""Runs of a session again and again give what single runs give, with less to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nacre.nem.run.sessions.repeated_runs import Recording
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.sketches import BUFFERS, SIZE, Item, Loop, Offset, Place, Task, sketches
from tests.nem.run.programs import Contents, Items, contents, fit, mended, naive_run, text

few = settings(max_examples=scaled(100), suppress_health_check=[HealthCheck.filter_too_much])


def one_by_one(items: Items) -> Items:
    """The same program with one task at a time."""
    return tuple(map(_alone, items))


def _alone(item: Item) -> Item:
    if isinstance(item, Loop):
        return replace(item, window=1, body=one_by_one(item.body))
    return replace(item, is_sync=True, deps=()) if isinstance(item, Task) else item


def whole(name: str) -> Place:
    return Place(name, Offset(0), SIZE)


def framed(items: Items) -> Items:
    """Buffers on the chip come from DDR, and go there in the end."""
    first = [Task(f"in_{n}", (whole(f"{n}_in"),), (whole(n),), is_sync=True) for n in BUFFERS]
    last = [Task(f"out_{n}", (whole(n),), (whole(f"{n}_out"),), is_sync=True) for n in BUFFERS]
    return mended((*first, *one_by_one(items), *last))


def framed_text(items: Items) -> str:
    ends = [f"buffer {n}_{end} : DDR (size={SIZE})" for n in BUFFERS for end in ("in", "out")]
    return "\n".join([*ends, text(items)])


def given_to(seed: int) -> Contents:
    return {f"{name}_in": data for name, data in contents(seed).items()}


def out(session: Session) -> Contents:
    return {f"{n}_out": session.read_buffer(f"{n}_out") for n in BUFFERS}


def expected(items: Items, inputs: Contents) -> Contents:
    blank = {n: bytes(SIZE) for n in (*BUFFERS, *(f"{b}_out" for b in BUFFERS))}
    found = naive_run(items, {**blank, **inputs})
    return {f"{n}_out": found[f"{n}_out"] for n in BUFFERS}


@few
@given(sketches(6), st.sets(st.sampled_from(BUFFERS), min_size=1), st.integers(0, 1 << 32))
def test_repeated_runs_leave_the_bytes_of_single_ones(
    sketch: Items, constant: set[str], seed: int
) -> None:
    items = framed(fit(sketch))
    machine = NemInterpreter(uninitialized="zero")
    program = machine.load_string(framed_text(items))
    assume(not [d for d in program.diagnostics if d.severity == "error"])
    names = {f"{name}_in" for name in constant}
    fixed = {name: data for name, data in given_to(seed).items() if name in names}
    session = machine.start(program, given_to(seed), history_bytes=0, constant=names)
    for number in range(5):
        inputs = {**given_to(seed + number), **fixed}
        if number:
            session.restart({name: inputs[name] for name in inputs if name not in names})
        assert session.run().status == "completed"
        assert out(session) == expected(items, inputs), number


# A product with weights that are dequantised, as plans have them.
WEIGHTS = """
include "npm4k.nem"
device npm4k
program p:
buffer x_DDR : DDR (size=64, align=64)
buffer weights : DDR (size=1024, align=64)
buffer y_DDR : DDR (size=64, align=64)
buffer tiles : L1 (size=8192, align=64)
transfer.sync(dst=region(tiles, 0, 64), src=region(x_DDR, 0, 64))
transfer.sync(dst=region(tiles, 1024, 576), src=region(weights, 0, 576))
cast.sync
    in region(tiles, 1024, 512) elem=i4, shape=[32, 32], layout=MN
    out region(tiles, 2048, 2048) elem=f16, shape=[32, 32], layout=MN
mul.sync
    in region(tiles, 2048, 2048) elem=f16, shape=[32, 32], layout=MN,
       region(tiles, 2048, 2048) elem=f16, shape=[32, 32], layout=MN
    out region(tiles, 2048, 2048) elem=f16, shape=[32, 32], layout=MN
gemm.sync
    in region(tiles, 0, 64) elem=f16, shape=[1, 32], layout=MN,
       region(tiles, 2048, 2048) elem=f16, shape=[32, 32], layout=MN
    out region(tiles, 64, 64) elem=f16, shape=[1, 32], layout=MN
    accum_type=f32
store.sync(dst=region(y_DDR, 0, 64), src=region(tiles, 64, 64))
"""


def product(seed: int) -> tuple[Session, dict[str, np.ndarray], NemInterpreter]:
    draw = np.random.default_rng(seed)
    inputs = {
        "x_DDR": draw.standard_normal(32).astype(np.float16),
        "weights": draw.integers(0, 256, 1024, np.uint8),
    }
    machine = NemInterpreter(uninitialized="zero")
    program = machine.load_string(WEIGHTS)
    return machine.start(program, inputs, history_bytes=0, constant=["weights"]), inputs, machine


def y_of(inputs: dict[str, np.ndarray]) -> np.ndarray:
    packed = inputs["weights"][:512]
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(32, 32).astype(np.int32)
    signed = np.where(nibbles > 7, nibbles - 16, nibbles) ** 2
    return np.asarray(inputs["x_DDR"].astype(np.float64) @ signed)


def test_weights_are_dequantised_in_the_first_runs_alone() -> None:
    session, inputs, _ = product(0)
    for number in range(4):
        if number:
            inputs["x_DDR"] = np.full(32, number, np.float16)
            session.restart({"x_DDR": inputs["x_DDR"]})
        session.run()
        found = np.frombuffer(session.read_buffer("y_DDR"), np.float16)
        np.testing.assert_allclose(found, y_of(inputs), rtol=2e-3, atol=0.05)
    calls = session._stepper._repeats
    assert calls is not None
    assert calls.calls is not None
    assert [step for step, _ in calls.calls] == [0, 4, 5]


@pytest.mark.parametrize("when", [1, 2, 3, 4])
def test_a_host_that_changes_a_constant_buffer_gets_the_new_results(when: int) -> None:
    session, inputs, _ = product(1)
    session.run()
    for number in range(1, 7):
        changed = {"x_DDR": np.full(32, number, np.float16)}
        if number == when:
            changed["weights"] = inputs["weights"][::-1].copy()
        inputs |= changed
        session.restart(changed)
        session.run()
        found = np.frombuffer(session.read_buffer("y_DDR"), np.float16)
        np.testing.assert_allclose(found, y_of(inputs), rtol=2e-3, atol=0.05)


def test_what_finds_no_room_is_computed_in_every_run() -> None:
    machine = NemInterpreter(uninitialized="zero")
    program = machine.load_string(WEIGHTS)
    session = machine.start(program, {}, history_bytes=0)
    recording = Recording(["weights"], 100)
    for step, position in enumerate(session.steps.position.tolist()):
        action = session._stepper.machine.action(position)
        assert action is not None
        recording.note(step, action, 0)
        action.run(0)
    assert [step for step, _ in recording.calls()] == [0, 1, 2, 3, 4, 5]


def test_a_run_that_is_stepped_through_begins_anew() -> None:
    session, inputs, _ = product(2)
    for number in range(6):
        inputs["x_DDR"] = np.full(32, number, np.float16)
        session.restart({"x_DDR": inputs["x_DDR"]})
        if number == 4:
            session.step(3)
        elif number == 5:
            session.step(2)
            session.run()
            found = np.frombuffer(session.read_buffer("y_DDR"), np.float16)
            np.testing.assert_allclose(found, y_of(inputs), rtol=2e-3, atol=0.05)
        else:
            session.run()

"""Sessions step by step: what a step is, run_until, step_iteration, who owns which memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neminterp import InputError, NemInterpreter, Session
from tests.nem.api.programs import (
    NESTED,
    PIPELINE,
    STEPS,
    STEPS_BEFORE_THE_LOOP,
    expected,
    tiles,
)

X, W = tiles()
INPUTS = {"X_DDR": X, "W_DDR": W}


def pipeline(seed: int | None = None) -> Session:
    interp = NemInterpreter(device="npm_lite")
    if seed is not None:
        interp.set_scheduling("random", seed=seed)
    return interp.start(interp.load_string(PIPELINE), inputs=INPUTS)


def nested(seed: int | None = None) -> Session:
    interp = NemInterpreter()
    if seed is not None:
        interp.set_scheduling("random", seed=seed)
    return interp.start(interp.load_string(NESTED), inputs={"A": np.arange(96, dtype=np.int8)})


# Steps


def test_a_wait_is_one_step() -> None:
    session = pipeline()
    session.step(n=3)
    result = session.step()
    assert (result.task_id, result.task_type) == ("wait@17", "wait(tL, tW)")
    assert (result.status, result.token, result.deps) == ("completed", None, ("tL", "tW"))


def test_a_step_says_what_ran_and_in_which_iteration() -> None:
    session = nested()
    session.step(n=8)
    result = session.step()
    assert (result.task_id, result.token) == ("tN[1,0]", "tN[1,0]")
    assert (result.task_type, result.deps) == ("neg.async", ("tX",))
    assert (result.iteration, result.line) == ((1, 0), 8)


def test_a_task_without_token_is_named_by_its_place() -> None:
    interp = NemInterpreter()
    program = interp.load_string(
        "buffer A : L2 (size=8)\nbuffer B : L2 (size=8)\n"
        "transfer.sync(dst=region(B, 0, 8), src=region(A, 0, 8))\n"
    )
    result = interp.start(program, inputs={"A": bytes(8)}).step()
    assert (result.task_id, result.token) == ("transfer@3", None)


def test_steps_come_as_a_list_and_end_with_the_program() -> None:
    session = pipeline()
    assert session.step(n=0) == []
    assert len(session.step(n=10)) == 10
    assert len(session.step(n=1000)) == STEPS - 10
    assert session.step(n=5) == []


def test_a_step_after_the_end_says_finished() -> None:
    session = pipeline()
    assert session.status == "ready"
    session.run()
    for _ in range(2):
        result = session.step()
        assert (result.status, result.task_id) == ("finished", None)
    assert session.status == "finished"
    assert session.run().status == "completed"
    assert session.step_iteration().status == "completed"


def test_a_program_without_tasks_is_finished_at_once() -> None:
    interp = NemInterpreter()
    session = interp.start(interp.load_string("program nothing:\n"))
    assert session.step().status == "finished"
    assert interp.run(interp.load_string("buffer A : L2 (size=4)\n")).status == "completed"


def test_steps_and_a_run_give_the_same_bytes() -> None:
    stepped, ran = pipeline(), pipeline()
    while stepped.step().status == "completed":
        pass
    ran.run()
    assert stepped.order == ran.order
    assert stepped.read_buffer("Y_DDR") == ran.read_buffer("Y_DDR") == expected(X, W).tobytes()


# run_until


def test_run_until_stops_at_the_next_instance() -> None:
    session = pipeline()
    for i in range(8):
        result = session.run_until(token="tC")
        assert (result.status, result.reason) == ("paused", "`tC` is satisfied")
        assert session.get_completed_tasks()[-1] == f"tC[{i}]"
    assert session.run_until(token="tC").status == "completed"


def test_run_until_goes_to_an_instance_with_its_iteration() -> None:
    session = pipeline()
    session.run_until(token="tC[5]")
    assert session.get_completed_tasks()[-1] == "tC[5]"
    taken = session.get_state().step
    again = session.run_until(token="tC[5]")
    assert again.reason == "`tC[5]` is satisfied already"
    assert session.get_state().step == taken


@pytest.mark.parametrize("seed", range(6))
def test_run_until_stops_at_whichever_instance_comes_next_in_a_pipelined_loop(seed: int) -> None:
    session = pipeline(seed)
    seen = []
    while session.run_until(token="tC").status == "paused":
        seen.append(session.get_completed_tasks()[-1])
    assert sorted(seen) == [f"tC[{i}]" for i in range(8)]


def test_run_until_keeps_breakpoints() -> None:
    session = pipeline()
    session.add_breakpoint(task="tX[2]")
    assert session.run_until(token="tC[5]").status == "breakpoint"
    assert session.next_step == "tX[2]"
    assert session.run_until(token="tC[5]").status == "paused"


# step_iteration


def test_step_iteration_runs_to_the_end_of_the_first_and_then_of_each_iteration() -> None:
    session = pipeline()
    for i in range(8):
        result = session.step_iteration()
        assert result.reason == f"iteration i={i} is complete"
        assert session.get_state().step == STEPS_BEFORE_THE_LOOP + 4 * (i + 1)
    assert session.status == "finished"


def test_step_iteration_takes_the_innermost_loop_of_the_next_step() -> None:
    session = nested()
    reasons = []
    while session.status != "finished":
        reasons.append(session.step_iteration().reason)
    inner = [f"iteration j={j} is complete" for j in range(3)]
    assert reasons == [
        *inner,
        "iteration i=0 is complete",
        *inner,
        "iteration i=1 is complete",
    ]


@pytest.mark.parametrize("seed", range(8))
def test_step_iteration_waits_for_its_own_iteration_only(seed: int) -> None:
    session = pipeline(seed)
    result = session.step_iteration()
    reason = result.reason or ""
    i = reason.removeprefix("iteration i=").removesuffix(" is complete")
    done = session.get_completed_tasks()
    assert done[-1].endswith(f"[{i}]")
    assert all(f"{name}[{i}]" in done for name in ("tX", "tC", "tR", "tS"))


def test_step_iteration_stops_at_a_breakpoint_on_its_way() -> None:
    session = pipeline()
    session.add_breakpoint(task="tW")
    session.add_breakpoint(task="tR[0]")
    assert session.step_iteration().status == "breakpoint"
    assert session.next_step == "tW"
    assert session.step_iteration().status == "breakpoint"
    assert session.next_step == "tR[0]"
    assert session.step_iteration().reason == "iteration i=0 is complete"


# Whose memory (decision 126)


def test_ddr_survives_runs_and_l2_and_l1_do_not() -> None:
    interp = NemInterpreter(device="npm_lite")
    program = interp.load_string(PIPELINE)
    first = interp.run(program, inputs=INPUTS)
    assert first.read_buffer("X_L2") == X.tobytes()

    second = interp.start(program)
    assert second.read_buffer("X_DDR") == X.tobytes()
    assert second.read_buffer("X_L2") == b"\xff" * 4096
    assert second.run().diagnostics[0].code == "INI02"  # only of the host's read above
    assert interp.ddr_read(offset=4608, size=4096) == expected(X, W).tobytes()

    third = interp.start(program)
    assert third.read_memory("L1", engine=0, offset=0, size=64) == b"\xff" * 64


def test_two_sessions_share_ddr_and_nothing_else() -> None:
    interp = NemInterpreter(device="npm_lite")
    program = interp.load_string(PIPELINE)
    first, second = interp.start(program, inputs=INPUTS), interp.start(program)
    first.step()
    assert first.read_buffer("X_L2") == X.tobytes()
    assert second.read_memory("L2", offset=0, size=16) == b"\xff" * 16
    assert second.read_buffer("X_DDR") == X.tobytes()


@pytest.mark.parametrize(
    ("level", "name"), [("DDR", "X_DDR"), ("L2", "X_L2"), ("L1", "W_L1"), ("L1", "Y_L1")]
)
def test_inputs_fill_any_buffer_by_name(level: str, name: str) -> None:
    interp = NemInterpreter(device="npm_lite")
    program = interp.load_string(PIPELINE)
    size = {"X_DDR": 4096, "X_L2": 4096, "W_L1": 512, "Y_L1": 1024}[name]
    data = np.random.default_rng(3).integers(0, 256, size, dtype=np.uint8)
    session = interp.start(program, inputs={name: data})
    assert session.read_buffer(name) == data.tobytes()
    base = session.memory.base(session.memory.buffers[name])
    assert session.read_memory(level, offset=base, size=size) == data.tobytes()


def memory_sizes(**sizes: Any) -> tuple[int, int, int]:  # noqa: ANN401
    interp = NemInterpreter(**sizes)
    session = interp.start(interp.load_string("program nothing:\n"))
    return (
        interp.ddr_info().size,
        len(session.read_memory("L2")),
        len(session.read_memory("L1", engine=0)),
    )


def test_sizes_of_memories_are_chosen_when_no_device_is_given() -> None:
    mib = 1024 * 1024
    assert memory_sizes() == (256 * mib, 4 * mib, mib)
    assert memory_sizes(l1_size=2048, l2_size=8192, ddr_size=65536) == (65536, 8192, 2048)
    ddr, l2, l1 = memory_sizes(device="npm_lite", l1_size=2048, l2_size=8192)
    assert (l2, l1) != (8192, 2048)  # a device has its own
    assert ddr == 256 * mib


def test_a_program_too_large_for_the_chosen_sizes_is_refused() -> None:
    interp = NemInterpreter(l1_size=1024)
    with pytest.raises(InputError) as caught:
        interp.run(interp.load_string(PIPELINE), inputs=INPUTS)
    assert [d.code for d in caught.value.diagnostics] == ["BUF07"]
    assert NemInterpreter(l1_size=2560).load_string(PIPELINE).diagnostics == []

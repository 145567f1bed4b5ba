"""A step that is taken back has never been: bytes, masks, tokens, order, findings."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.api.programs import LoadedProgram
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.mutants import pipeline
from tests.nem.run.programs import Items, contents, loaded, runnable

pytestmark = pytest.mark.sampled(2)  # together they take long

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])

WITH_POISON = """\
buffer A : L2 (size=32)
buffer B : L1 (size=32)
buffer C : L1 (size=32)
t0 = transfer.async(dst=region(B, 0, 16), src=region(A, 0, 8))
t1 = transfer.async(dst=region(C, 0, 16), src=region(A, 8, 16))
loop i in [0..3] @max_in_flight(2):
    t2 = add.async
        in region(B, i * 4, 4) elem=i8, shape=[4], layout=C,
           region(C, i * 4, 4) elem=i8, shape=[4], layout=C
        out region(B, i * 4 + 16, 4) elem=i8, shape=[4], layout=C
        deps=[t0, t1]
    t3 = relu.async
        in region(B, i * 4 + 16, 4) elem=i8, shape=[4], layout=C
        out region(B, i * 4 + 16, 4) elem=i8, shape=[4], layout=C
        deps=[t2]
    wait(t3)
    t4 = store.async(dst=region(A, i * 4 + 16, 4), src=region(B, i * 4 + 16, 4))
endloop
"""


def everything(session: Session) -> dict[str, Any]:
    """All that a step may change."""
    made: dict[str, Any] = {
        "order": session.order,
        "next": session.next_step,
        "status": session.status,
        "tokens": session.get_tokens(),
        "ready": session.get_ready_tasks(),
        "pending": session.get_pending_tasks(),
        "completed": session.get_completed_tasks(),
        "state": session.get_state(),
        "findings": [(d.code, d.message) for d in session.diagnostics],
    }
    for name, buffer in session.memory.buffers.items():
        storage = session.memory.storage(buffer)
        assert storage.missing == int((~storage.written).sum())
        made[name] = (storage.data.tobytes(), storage.written.tobytes(), storage.missing)
        made[f"writers of {name}"] = session.who_wrote(name)
    return made


def poisoned(interpreter: NemInterpreter, **options: Any) -> Session:  # noqa: ANN401
    program = interpreter.load_string(WITH_POISON)
    return interpreter.start(program, {"A@0": bytes(range(20))}, allow=["HAZ"], **options)


def require_reversible(session: Session) -> None:
    """Down the whole run and back up, the same things are seen at every point."""
    seen = [everything(session)]
    while session.step().status == "completed":
        seen.append(everything(session))
    while len(seen) > 1:
        assert everything(session) == seen.pop()
        assert len(session.step_back()) == 1
    assert everything(session) == seen.pop()
    assert session.step_back() == []


@few
@given(runnable(), seeds)
def test_going_back_step_by_step_shows_what_was_there(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    require_reversible(interpreter.start(loaded(items, interpreter), contents(seed)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("detect_races", [False, True])
def test_poison_and_its_findings_are_taken_back(seed: int, detect_races: bool) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    session = poisoned(interpreter, detect_races=detect_races)
    require_reversible(session)
    session.run()
    assert {d.code for d in session.diagnostics} >= {"INI02"}


@pytest.mark.parametrize("seed", range(5))
def test_races_that_were_met_are_taken_back(seed: int) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    text = WITH_POISON.replace("deps=[t0, t1]", "").replace("deps=[t2]", "")
    program = interpreter.load_string(text)
    session = interpreter.start(program, contents_of(program), allow=["HAZ"], detect_races=True)
    require_reversible(session)
    session.run()
    assert {d.code for d in session.diagnostics} == {"RUN07"}


def contents_of(program: LoadedProgram) -> dict[str, bytes]:
    rng = random.Random(1)
    return {b.name: rng.randbytes(b.size or 0) for b in program.plan.program.buffers}


Move = tuple[str, int]
walks = st.lists(
    st.tuples(st.sampled_from(["step", "step", "back", "write"]), st.integers(1, 4)), max_size=14
)


@few
@given(runnable(), seeds, walks, st.booleans())
def test_a_walk_ends_where_a_fresh_session_gets_directly(
    items: Items, seed: int, moves: list[Move], is_random: bool
) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random" if is_random else "deterministic", seed)
    program = loaded(items, interpreter)
    require_same_place(lambda: interpreter.start(program, contents(seed)), moves, "A")


@few
@given(seeds, walks)
def test_a_walk_through_poison_ends_where_a_fresh_session_gets_directly(
    seed: int, moves: list[Move]
) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    # Each session needs an L2 of its own; nothing here lies in DDR.
    require_same_place(lambda: poisoned(interpreter), moves, "B")


def require_same_place(start: Callable[[], Session], moves: list[Move], target: str) -> None:
    """Walk, then go straight to the same point with the writes that were not taken back."""
    session = start()
    writes: list[tuple[int, str, bytes]] = []  # after so many steps
    for number, (kind, count) in enumerate(moves):
        if kind == "step":
            session.step(count)
        elif kind == "back":
            session.step_back(count)
            # A write goes back with the step before it; what came before all steps stays.
            writes = [write for write in writes if write[0] <= len(session.order)]
        else:
            data = bytes([number + 1] * count)
            session.write_buffer(f"{target}@{count}", data)
            writes.append((len(session.order), f"{target}@{count}", data))
    fresh = start()
    for after, key, data in writes:
        fresh.step(after - len(fresh.order))
        fresh.write_buffer(key, data)
    fresh.step(len(session.order) - len(fresh.order))
    assert everything(session) == everything(fresh)


@few
@given(runnable(), seeds, st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_forward_again_takes_the_same_steps(items: Items, seed: int, moves: list[int]) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    program = loaded(items, interpreter)
    session = interpreter.start(program, contents(seed))
    session.run()
    order, end = session.order, everything(session)
    for count in moves:
        taken_back = session.step_back(count)
        assert taken_back == order[::-1][: len(taken_back)]
        session.step(count)
        assert session.order == order
    session.step_back(len(order))
    session.run()
    assert everything(session) == end


def test_inputs_are_not_taken_back() -> None:
    interpreter = NemInterpreter()
    items = pipeline(random.Random(1))
    session = interpreter.start(loaded(items, interpreter), contents(1))
    start = everything(session)
    session.step(3)
    assert len(session.step_back(100)) == 3
    assert everything(session) == start


def test_a_write_by_the_host_goes_back_with_the_step_before_it() -> None:
    session = poisoned(NemInterpreter())
    session.write_buffer("C@30", b"xy")
    session.step()
    before = everything(session)
    session.step()
    session.write_buffer("B@0", b"abc")
    session.write_buffer("B@1", b"zz")
    assert session.memory.storage(session.memory.buffers["B"]).data[:3].tobytes() == b"azz"
    assert session.step_back() == ["t1"]
    assert everything(session) == before
    assert session.step_back() == ["t0"]
    assert session.read_memory("L1", session.memory.base(session.memory.buffers["C"]) + 30, 2) == (
        b"xy"
    )


def test_running_back_stops_before_a_task() -> None:
    session = poisoned(NemInterpreter())
    session.run()
    order = session.order
    result = session.run_back_until(task="t2[2]")
    assert (result.status, session.next_step) == ("paused", "t2[2]")
    assert session.order == order[: order.index("t2[2]")]
    result = session.run_back_until(task="t2")
    assert session.next_step == "t2[1]"
    assert session.run_back_until(line=5).status == "paused"
    assert session.next_step == "t1"


def test_running_back_stops_before_a_region_was_last_written() -> None:
    session = poisoned(NemInterpreter())
    session.run()
    session.run_back_until(region="B[20:21]")
    assert session.next_step == "t3[1]"
    session.run_back_until(region="B[20:21]")
    assert session.next_step == "t2[1]"


def test_running_back_to_nothing_ends_at_the_start_as_it_was() -> None:
    session = poisoned(NemInterpreter())
    start = everything(session)
    session.step(6)
    result = session.run_back_until(task="t4[3]")
    assert result.reason == "back at the start"
    assert everything(session) == start


def test_a_small_log_forgets_the_oldest_steps_first() -> None:
    session = poisoned(NemInterpreter(), history_bytes=100)
    seen = []
    while session.status != "finished":
        seen.append(everything(session))
        session.step()
    taken_back = session.step_back(100)
    assert 0 < len(taken_back) < len(seen)
    assert everything(session) == seen[-len(taken_back)]
    session.run()
    assert session.status == "finished"


def test_a_run_without_log_cannot_go_back() -> None:
    session = poisoned(NemInterpreter(), history_bytes=0)
    session.step(2)
    assert session.step_back() == []
    assert len(session.order) == 2


def test_a_step_that_failed_leaves_nothing_behind_and_can_be_left() -> None:
    interpreter = NemInterpreter(strict=True)
    session = interpreter.start(
        interpreter.load_string(WITH_POISON), {"A@0": bytes(range(20))}, allow=["INI", "TOK08"]
    )
    seen = [everything(session)]
    while session.step().status == "completed":
        seen.append(everything(session))
    assert session.status == "error"
    assert [d.code for d in session.diagnostics] == ["INI02"]
    session.step_back()
    assert everything(session) == seen[-2]


WRAPS = """\
buffer X : L1 (size=8)
buffer W : L1 (size=8)
buffer B : L1 (size=4)
buffer Y : L1 (size=4)
t0 = transfer.async(dst=region(X, 4, 4), src=region(X, 0, 4))
t1 = gemm.async
    in region(X, 0, 8) elem=i8, shape=[1, 8], layout=MK, quant=per_tensor(scale=1.0, zero_point=0),
       region(W, 0, 8) elem=i8, shape=[8, 1], layout=KN, quant=per_tensor(scale=1.0, zero_point=0),
       region(B, 0, 4) elem=i32, shape=[1], layout=N
    out region(Y, 0, 1) elem=i8, shape=[1, 1], layout=MN, quant=per_tensor(scale=1.0, zero_point=0)
    deps=[t0]
    accum_type=i32
"""


def test_a_warning_that_strictness_made_an_error_changes_no_byte() -> None:
    interpreter = NemInterpreter(strict=True)
    program = interpreter.load_string(WRAPS)
    inputs = {"X": b"\x7f" * 8, "W": b"\x7f" * 8, "B": b"\xff\xff\xff\x7f", "Y": b"1234"}
    session = interpreter.start(program, inputs, allow=["INI"])
    start = everything(session)
    assert [result.status for result in session.step(2)] == ["completed", "error"]
    assert [d.code for d in session.diagnostics] == ["RUN03"]
    assert session.read_buffer("Y") == b"1234"
    session.step_back()
    assert everything(session) == start

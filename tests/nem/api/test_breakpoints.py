"""Where runs pause: tasks, lines, iterations, conditions, watched regions and tokens."""

from __future__ import annotations

import numpy as np
import pytest

from neminterp import InputError, NemInterpreter, Session
from tests.nem.api.programs import NESTED, PIPELINE, tiles

X, W = tiles()


def pipeline(seed: int | None = None) -> Session:
    interp = NemInterpreter(device="npm_lite")
    if seed is not None:
        interp.set_scheduling("random", seed=seed)
    return interp.start(interp.load_string(PIPELINE), inputs={"X_DDR": X, "W_DDR": W})


def nested() -> Session:
    interp = NemInterpreter()
    return interp.start(interp.load_string(NESTED), inputs={"A": np.arange(96, dtype=np.int8)})


def pauses(session: Session) -> list[str | None]:
    """The steps before which a run pauses, until its end."""
    found = []
    result = session.run()
    while result.status == "breakpoint":
        found.append(session.next_step)
        result = session.continue_()
    assert result.status == "completed"
    return found


def test_a_task_stops_every_instance_before_it_runs() -> None:
    session = pipeline()
    session.add_breakpoint(task="tR")
    assert pauses(session) == [f"tR[{i}]" for i in range(8)]


def test_an_instance_stops_once() -> None:
    session = nested()
    session.add_breakpoint(task="tN[1,2]")
    assert pauses(session) == ["tN[1,2]"]


def test_a_line_stops_whatever_stands_on_it() -> None:
    session = pipeline()
    session.add_breakpoint(line=17)
    session.add_breakpoint(line=24)
    assert pauses(session) == ["wait@17", *(f"tC[{i}]" for i in range(8))]


def test_any_line_of_a_task_that_spans_several_stops() -> None:
    interp = NemInterpreter()
    text = (
        "buffer A : L2 (size=8)\nbuffer B : L2 (size=8)\n"
        "t = transfer.sync(\n    dst=region(B, 0, 8),\n    src=region(A, 0, 8)\n)\n"
    )
    session = interp.start(interp.load_string(text), inputs={"A": bytes(8)})
    session.add_breakpoint(line=5)
    assert pauses(session) == ["t"]


@pytest.mark.parametrize(
    ("iteration", "before"),
    [
        (0, "tX[0]"),  # with the wait above the loop
        (1, "tX[0]"),  # the window is two: 0 and 1 are admitted together
        (3, "tX[2]"),  # when 1 is complete
        (7, "tX[6]"),
    ],
)
def test_an_iteration_stops_when_its_loop_admits_it(iteration: int, before: str) -> None:
    session = pipeline()
    session.add_breakpoint(loop_iter=iteration)
    assert pauses(session) == [before]


def test_any_loop_that_admits_the_iteration_stops() -> None:
    session = nested()
    session.add_breakpoint(loop_iter=1)
    # j=1 with i=0 at the start, then i=1 and with it its j=1.
    assert pauses(session) == ["tX[0,0]", "tX[1,0]"]


def test_an_iteration_that_no_loop_has_stops_nothing() -> None:
    session = pipeline()
    session.add_breakpoint(loop_iter=99)
    assert pauses(session) == []


def test_a_stop_is_reported_with_its_number_and_reason() -> None:
    session = pipeline()
    stop = session.add_breakpoint(task="tR")
    result = session.run()
    assert (result.status, result.reason) == ("breakpoint", f"breakpoint {stop.number}: task tR")
    assert session.get_completed_tasks()[-1] == "tC[0]"  # tR itself has not run


def test_stops_are_listed_and_removed() -> None:
    session = pipeline()
    first, second = session.add_breakpoint(task="tR"), session.add_watchpoint(token="tS")
    assert session.stops() == [first, second]
    assert session.remove_stop(first.number)
    assert not session.remove_stop(first.number)
    session.clear_stops()
    assert session.stops() == []
    assert session.run().status == "completed"


# Conditions


@pytest.mark.parametrize(
    ("condition", "tasks"),
    [
        ("i == 3", ["tR[3]"]),
        ("i mod 4 == 1", ["tR[1]", "tR[5]"]),
        ("i > 2 and i <= 4", ["tR[3]", "tR[4]"]),
        ("2 * i + 1 == 15", ["tR[7]"]),
        ("i != i", []),
        ("i + -9223372036854775808 == -9223372036854775806", ["tR[2]"]),
        ("i / (i - 3) == 4", ["tR[4]"]),  # no value at 3: not met there
    ],
)
def test_a_condition_is_asked_at_each_stop(condition: str, tasks: list[str]) -> None:
    session = pipeline()
    session.add_breakpoint(task="tR", condition=condition)
    assert pauses(session) == tasks


def test_a_condition_may_name_constants_and_several_loops() -> None:
    interp = NemInterpreter()
    program = interp.load_string("const K = 2\n" + NESTED)
    session = interp.start(program, inputs={"A": bytes(96)})
    session.add_breakpoint(task="tN", condition="j == K and i > 0")
    assert pauses(session) == ["tN[1,2]"]


def test_a_condition_may_be_a_function_of_the_session() -> None:
    session = pipeline()
    session.add_breakpoint(condition=lambda s: "tC[2]" in s.get_completed_tasks())
    assert session.run().status == "breakpoint"
    assert session.next_step == "tR[2]"


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("", "is no condition"),
        ("i", "is no condition"),
        ("i = 3", "is no condition"),
        ("i == 3 or i == 4", "is no condition"),
        ("1 < i < 3", "is no condition"),
        ("__import__('os')", "is no condition"),
        ("i == 3 and", "is no condition"),
        ("i == (3", "is no condition"),
        ("i == f(3)", "no function `f`; there are min, max, mean, nan, inf, saturated"),
        ("i == " + "(" * 5000, "is no condition"),
        ("i == " + "(" * 50 + "1" + ")" * 50, "is nested more than 40 deep"),
        ("i == 9999999999999999999999", "does not fit into 64 bits"),
        ("i == 9223372036854775808", "does not fit into 64 bits"),
        ("i == -9223372036854775809", "does not fit into 64 bits"),
        ("i / 0 == 1", "divides by zero"),
        ("max > 3", "`max` of which region? write `max(Y)`"),
        ("max(Q) > 3", "no region or buffer `Q`"),
        ("max() > 3", "is no condition"),
        ("k == 1", "no loop variable or constant `k`"),
        (3, "a condition is text or a function"),
    ],
)
def test_a_text_that_is_no_condition_is_refused(condition: str, says: str) -> None:
    session = pipeline()
    with pytest.raises(InputError) as caught:
        session.add_breakpoint(task="tR", condition=condition)
    (found,) = caught.value.diagnostics
    assert found.code == "RUN05"
    assert says in found.message
    assert session.stops() == []


# Names that are not there


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({}, "a stop needs a task, a line, an iteration or a condition"),
        ({"task": "tZ"}, "no task `tZ`; there are `tL`, `tV`, `tW`, `wait@17`"),
        ({"task": ""}, "no task ``"),
        ({"task": 7}, "no task `7`"),
        ({"task": "tR[8]"}, "`tR` has no iteration [8]"),
        ({"task": "tR[1,2]"}, "`tR` has no iteration [1, 2]"),
        ({"task": "tR[" + "9" * 5000 + "]"}, "no task"),
        ({"line": 999}, "no task or wait stands on line 999 or after it"),
        ({"line": 999}, "no task or wait stands on line 999"),
        ({"line": "24"}, "the line is `24`, expected a number"),
        ({"loop_iter": "x"}, "the iteration is `x`, expected a whole number"),
    ],
)
def test_a_breakpoint_on_nothing_is_refused(where: dict[str, str], says: str) -> None:
    session = pipeline()
    with pytest.raises(InputError) as caught:
        session.add_breakpoint(**where)  # type: ignore[arg-type]
    assert says in caught.value.diagnostics[0].message
    assert session.run().status == "completed"


# Watchpoints


def test_a_watched_region_stops_behind_each_task_that_writes_it() -> None:
    session = pipeline()
    session.add_watchpoint(region="Y_tile_2")
    result = session.run()
    assert result.status == "watchpoint"
    assert (result.reason or "").endswith("region Y_tile_2 by tS[2]")
    assert session.get_completed_tasks()[-1] == "tS[2]"
    assert session.continue_().status == "completed"


@pytest.mark.parametrize(
    ("access", "tasks"),
    [
        ("write", ["tW"]),
        ("read", [f"tC[{i}]" for i in range(8)]),
        ("any", ["tW", *(f"tC[{i}]" for i in range(8))]),
    ],
)
def test_reads_and_writes_of_a_region_are_watched_apart(access: str, tasks: list[str]) -> None:
    session = pipeline()
    session.add_watchpoint(region="W_l1", access=access)  # type: ignore[arg-type]
    found = []
    while session.run().status == "watchpoint":
        found.append(session.get_completed_tasks()[-1])
    assert found == tasks


def test_a_watched_token_stops_when_it_is_satisfied() -> None:
    session = pipeline()
    session.add_watchpoint(token="tC[1]")
    assert session.run().status == "watchpoint"
    assert session.get_completed_tasks()[-1] == "tC[1]"


@pytest.mark.parametrize(
    ("watched", "says"),
    [
        ({}, "either a region or a token"),
        ({"region": "W_l1", "token": "tC"}, "either a region or a token"),
        ({"region": "nothing"}, "no region or buffer `nothing`"),
        ({"token": "nothing"}, "no task `nothing`"),
        ({"region": "W_l1", "access": "smell"}, "access is `smell`"),
    ],
)
def test_a_watchpoint_on_nothing_is_refused(watched: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as caught:
        pipeline().add_watchpoint(**watched)  # type: ignore[arg-type]
    assert says in caught.value.diagnostics[0].message


def test_a_breakpoint_on_a_line_without_a_task_stands_on_the_next_one() -> None:
    interp = NemInterpreter()
    program = interp.load_string(
        "buffer A : L2 (size=8)\nbuffer B : L1 (size=8)\n\n# nothing here\n"
        "t = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))\n"
    )
    session = interp.start(program)
    assert session.add_breakpoint(line=3).line == 5
    assert session.run().status == "breakpoint"
    assert session.next_step == "t"


def test_a_closed_session_says_so() -> None:
    interp = NemInterpreter()
    session = interp.start(interp.load_string("buffer A : L2 (size=8)\n"))
    session.close()
    for call in (session.step, session.run, session.step_back, session.dump_buffers):
        with pytest.raises(InputError, match="the session is closed"):
            call()


def test_a_timed_session_knows_what_is_in_flight() -> None:
    interp = NemInterpreter()
    interp.set_mode("timed")
    program = interp.load_string(
        "buffer A : L2 (size=64)\nbuffer B : L1 (size=64)\n"
        "a = transfer.async(dst=region(B, 0, 32), src=region(A, 0, 32))\n"
        "b = transfer.async(dst=region(B, 32, 32), src=region(A, 32, 32))\n"
        "wait(a, b)\n"
    )
    session = interp.start(program)
    session.step(n=2)
    assert session.get_state().active_tasks == ["a", "b"]
    assert session.get_tokens()["a"]["satisfied"] is False
    assert session.get_completed_tasks() == []
    session.step()
    assert session.get_state().active_tasks == []
    assert session.get_state().satisfied_tokens == {"a", "b"}
    assert session.run().cycle_count == 5

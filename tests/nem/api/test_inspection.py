"""Looking into a session: memories, tokens, tasks, pictures."""

from __future__ import annotations

import re

import numpy as np
import pytest

from neminterp import InputError, NemInterpreter, Session
from tests.nem.api.programs import NESTED, PIPELINE, STEPS_BEFORE_THE_LOOP, expected, tiles

X, W = tiles()


@pytest.fixture
def session() -> Session:
    interp = NemInterpreter(device="npm_lite")
    return interp.start(interp.load_string(PIPELINE), inputs={"X_DDR": X, "W_DDR": W})


def nested() -> Session:
    interp = NemInterpreter()
    return interp.start(interp.load_string(NESTED), inputs={"A": np.arange(96, dtype=np.int8)})


# 3.4 State Inspection


def test_memories_are_read_as_printed(session: Session) -> None:
    session.run()
    assert session.read_memory("DDR", offset=0, size=256) == X.tobytes()[:256]
    arr = session.read_region("X_pp_i")
    assert arr.shape == (16, 16)
    assert arr.dtype == np.float16
    np.testing.assert_array_equal(arr, X[7])
    assert session.read_buffer("X_L2") == X.tobytes()
    assert session.read_memory("L1", engine=0, offset=512, size=512) == X[7].tobytes()
    assert session.read_memory("L2", offset=4096, size=512) == W.tobytes()
    assert session.read_memory("L1", engine=0, offset=0, size=4) == X[6].tobytes()[:4]


def test_l1_and_l2_are_read_after_a_step_as_printed(session: Session) -> None:
    session.step()
    l1_data = session.read_memory("L1", engine=0, offset=0, size=4096)
    l2_data = session.read_memory("L2", offset=0, size=65536)
    assert l1_data == b"\xff" * 4096
    assert l2_data == X.tobytes() + b"\xff" * (65536 - 4096)


def test_a_memory_is_read_to_its_end_without_a_size(session: Session) -> None:
    device = session.device.topology
    assert device is not None
    assert len(session.read_memory("L2", offset=16)) == (device.l2_size_bytes or 0) - 16
    assert session.read_memory("L2", offset=0, size=0) == b""


def test_the_array_of_a_region_is_a_copy_and_results_of_it_are_plain(session: Session) -> None:
    session.run()
    arr = session.read_region("Y_tile_0")
    arr[...] = 0
    np.testing.assert_array_equal(session.read_region("Y_tile_0"), expected(X, W)[0])
    assert type(arr + 1) is np.ndarray
    assert arr.read_bytes() == bytes(512)


def test_tokens_are_listed_by_instance_and_by_bare_name(session: Session) -> None:
    tokens = session.get_tokens()
    assert tokens["tL"] == {"satisfied": False, "produced_by": "tL"}
    assert tokens["tX"] == {"satisfied": False, "produced_by": "tX[0]"}
    session.run_until(token="tX[2]")
    tokens = session.get_tokens()
    assert tokens["tL"]["satisfied"]
    assert tokens["tX"] == {"satisfied": True, "produced_by": "tX[2]"}
    assert tokens["tS"] == {"satisfied": True, "produced_by": "tS[1]"}
    assert tokens["tX[1]"] == {"satisfied": True, "produced_by": "tX[1]"}
    assert tokens["tR[2]"] == {"satisfied": False, "produced_by": "tR[2]"}
    assert "tR[4]" not in tokens  # its iteration has not been admitted
    assert all(token["produced_by"] for token in tokens.values())


def test_instances_of_nested_loops_carry_every_iteration() -> None:
    session = nested()
    session.run_until(token="tN[1,2]")
    tokens = session.get_tokens()
    assert tokens["tN"] == {"satisfied": True, "produced_by": "tN[1,2]"}
    assert tokens["tN[0,1]"]["satisfied"]
    assert tokens["tQ"] == {"satisfied": True, "produced_by": "tQ[0]"}
    assert not tokens["tQ[1]"]["satisfied"]


def test_every_task_is_pending_ready_or_completed(session: Session) -> None:
    pending, ready = session.get_pending_tasks(), session.get_ready_tasks()
    assert (pending, ready, session.get_completed_tasks()) == (["tW"], ["tL", "tV"], [])
    session.step(n=2)
    assert (session.get_pending_tasks(), session.get_ready_tasks()) == ([], ["tW"])
    session.step(n=3)
    assert session.get_completed_tasks() == ["tL", "tV", "tW", "tX[0]"]
    assert session.get_ready_tasks() == ["tC[0]", "tX[1]"]
    assert session.get_pending_tasks() == ["tR[0]", "tS[0]", "tC[1]", "tR[1]", "tS[1]"]
    session.run()
    assert (session.get_pending_tasks(), session.get_ready_tasks()) == ([], [])
    assert len(session.get_completed_tasks()) == 3 + 8 * 4


def test_the_state_tells_iterations_and_tokens(session: Session) -> None:
    state = session.get_state()
    assert (state.status, state.step, state.current_loop_iteration) == ("ready", 0, None)
    assert (state.active_tasks, state.satisfied_tokens, state.engine_states) == ([], set(), {})
    session.step(n=STEPS_BEFORE_THE_LOOP + 1)
    state = session.get_state()
    assert state.status == "running"
    assert state.active_loops == {"i": (0, 1)}
    assert state.current_loop_iteration == 1
    assert state.satisfied_tokens == {"tL", "tV", "tW", "tX", "tX[0]"}
    session.run()
    state = session.get_state()
    assert (state.status, state.current_loop_iteration, state.active_loops) == (
        "finished",
        None,
        {},
    )
    assert {"tS", "tS[7]"} <= state.satisfied_tokens


# Regions by name (decision 125)


def test_a_let_is_read_at_the_latest_iteration(session: Session) -> None:
    session.run_until(token="tX[3]")
    np.testing.assert_array_equal(session.read_region("X_pp_i"), X[3])
    session.run_until(token="tS[4]")
    np.testing.assert_array_equal(session.read_region("X_pp_i"), X[4])


def test_numbers_in_place_of_loop_variables_choose_an_iteration(session: Session) -> None:
    session.run()
    for i in range(8):
        np.testing.assert_array_equal(session.read_region(f"Y_tile_{i}"), expected(X, W)[i])
        np.testing.assert_array_equal(session.read_region(f"Y_tile_i[{i}]"), expected(X, W)[i])


def test_lets_of_nested_loops_take_several_numbers() -> None:
    session = nested()
    session.run()
    values = -np.arange(96, dtype=np.int8).reshape(2, 3, 16)
    for i in range(2):
        for j in range(3):
            for name in (f"P_{i}_{j}", f"P_i_j[{i},{j}]"):
                np.testing.assert_array_equal(session.read_region(name), values[i, j])


def test_a_buffer_and_a_part_of_it_are_regions_of_bytes(session: Session) -> None:
    session.run()
    assert session.read_region("W_L2").tobytes() == W.tobytes()
    assert session.read_region("W_L2[8:16]").tobytes() == W.tobytes()[8:16]
    assert session.read_region("W_L2[8..16]").dtype == np.uint8


# 3.6 Display


def test_buffers_are_shown_in_the_printed_columns(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.dump_buffers()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Buffer", "Level", "Offset", "Size", "Align", "Status"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert rows["X_L2"] == ["L2", "0x0000", "4096", "64", "allocated"]
    assert rows["W_L2"] == ["L2", "0x1000", "512", "64", "allocated"]
    assert rows["X_L1[0]"] == ["L1[0]", "0x0000", "1024", "64", "allocated"]
    assert rows["Y_DDR"] == ["DDR", "0x1200", "4096", "64", "allocated"]
    starts = {line.index(line.split()[5]) for line in lines}
    assert len(starts) == 1  # columns stand under each other


def test_a_region_is_shown_in_the_printed_form(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.run()
    session.dump_region("X_pp_i")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Region: X_pp_i"
    assert lines[1] == "  Buffer: X_L1, offset=512, extent=512"
    assert lines[2] == "  Type: f16, shape=[16,16], layout=MK"
    assert lines[3] == "  Decorators: (none)"
    shown = ", ".join(f"0x{byte:02X}" for byte in X[7].tobytes()[:32])
    assert lines[4] == f"  Contents: [{shown}, ...]  (first 32 bytes)"


def test_a_region_that_nobody_wrote_says_so(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.dump_region("Y_tile_0")
    text = capsys.readouterr().out
    assert "  Decorators: @materialized\n" in text
    assert text.endswith("(nothing has written bytes 0..31)\n")


def test_the_trace_is_shown_in_the_printed_columns(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.step(n=6)
    session.dump_trace()
    lines = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["Step", "Task", "Type", "Status", "Token", "Deps"],
        ["1", "tL", "transfer.async", "completed", "tL", "[]"],
        ["2", "tV", "transfer.async", "completed", "tV", "[]"],
        ["3", "tW", "transfer.async", "completed", "tW", "[tV]"],
        ["4", "-", "wait(tL, tW)", "completed", "-", "[tL, tW]"],
        ["5", "tX[0]", "transfer.async", "completed", "tX[0]", "[]"],
        ["6", "tC[0]", "gemm.async", "completed", "tC[0]", "[tX]"],
    ]


def test_a_syntax_tree_is_shown_with_its_places(capsys: pytest.CaptureFixture[str]) -> None:
    interp = NemInterpreter()
    interp.dump_ast(interp.load_string("program p:\nbuffer A : L2 (size=4)\n"))
    text = capsys.readouterr().out
    assert text.startswith("Document")
    assert re.search(r"BufferDecl .*@2:1", text)


# 3.7 Notebooks


def test_a_session_and_a_region_show_themselves(session: Session) -> None:
    assert repr(session) == "<Session <text>: ready, 0 of 36 steps, next tL>"
    page = session._repr_html_()
    assert "<td>0 of 36</td>" in page
    assert "&lt;text&gt;" in page  # names are text, not markup
    session.run()
    assert repr(session) == "<Session <text>: finished, 36 of 36 steps>"
    table = session.read_region("Y_pp_i")._repr_html_()
    assert "<b>Y_pp_i</b> f16 [16, 16]" in table
    assert table.count("<tr>") == 16
    assert str(expected(X, W)[7, 0, 0]) in table


def test_a_session_is_a_context_and_is_closed_behind_it() -> None:
    interp = NemInterpreter()
    program = interp.load_string(PIPELINE)
    with interp.start(program, inputs={"X_DDR": X, "W_DDR": W}) as session:
        session.run()
        result = session.read_region("Y_tile_0")
    np.testing.assert_array_equal(result, expected(X, W)[0])
    for read in (
        lambda: session.read_buffer("X_L2"),
        lambda: session.read_region("X_pp_i"),
        lambda: session.read_memory("L1", engine=0, offset=0, size=4),
    ):
        with pytest.raises(InputError, match="the session is closed"):
            read()
    assert session.status == "finished"

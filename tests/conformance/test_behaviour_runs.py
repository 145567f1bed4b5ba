"""Promises about running programs, each shown on a run.

`test_CODE_...` proves the rule CODE; `test_rule_pages.py` counts on these names.
"""

from __future__ import annotations

import numpy as np
import pytest

from nacre.nem.api import NemInterpreter
from tests.conformance.pipelines import (
    BYTES,
    HEAD,
    Unsure,
    codes,
    interpreter,
    pipeline,
    refusal,
    run,
)

SEEDS = range(12)


# Decorators


@pytest.mark.parametrize("seed", SEEDS)
def test_dec13_every_schedule_of_a_deterministic_loop_gives_the_same_bytes(seed: int) -> None:
    result = run(pipeline(" @max_in_flight(3) @deterministic"), seed=seed)
    assert result.read_buffer("Y") == np.maximum(BYTES, 0).tobytes()


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        (pipeline(" @deterministic"), True),
        (pipeline(body=" @deterministic"), True),
        (pipeline(), False),
    ],
)
def test_dec13_a_backend_that_may_vary_is_refused(text: str, is_refused: bool) -> None:
    interp = interpreter(text)
    interp.set_compute_backend(Unsure())
    if is_refused:
        assert refusal(text, interp) == ["RUN09"]
    else:
        assert interp.run(interp.load_string(text), inputs={"A": BYTES}).status == "completed"


def test_dec14_a_materialized_value_is_there_when_its_producer_is_complete() -> None:
    interp = interpreter(pipeline(" @max_in_flight(2)"))
    session = interp.start(interp.load_string(pipeline(" @max_in_flight(2)")), inputs={"A": BYTES})
    for i in range(4):
        session.run_until(token=f"tR[{i}]")
        expected = np.maximum(BYTES[16 * i : 16 * i + 16], 0)
        np.testing.assert_array_equal(session.read_region(f"X_{i}"), expected)
        assert session.diagnostics == ()


def test_dec07_a_bound_unit_changes_neither_bytes_nor_order() -> None:
    bound = pipeline(" @max_in_flight(2)", " @resource(CSTL[i mod 2])")
    first, second = run(bound, "npm_lite"), run(pipeline(" @max_in_flight(2)"), "npm_lite")
    assert first.session is not None
    assert second.session is not None
    assert first.session.order == second.session.order
    assert first.read_buffer("Y") == second.read_buffer("Y") == np.maximum(BYTES, 0).tobytes()


# Loops


def iterations(order: list[str]) -> list[int]:
    return [int(name.split("[")[1].rstrip("]")) for name in order]


@pytest.mark.parametrize("seed", SEEDS)
def test_lop04_without_a_window_one_iteration_runs_after_the_other(seed: int) -> None:
    session = run(pipeline(), seed=seed).session
    assert session is not None
    assert iterations(session.order) == sorted([0, 1, 2, 3] * 3)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_lop05_never_more_than_n_iterations_are_active(seed: int, window: int) -> None:
    text = pipeline(f" @max_in_flight({window})")
    interp = interpreter(text, seed=seed)
    session = interp.start(interp.load_string(text), inputs={"A": BYTES})
    left = dict.fromkeys(range(4), 3)
    while (result := session.step()).status == "completed":
        (i,) = result.iteration
        assert all(left[done] == 0 for done in range(i - window + 1))
        left[i] -= 1
        active = session.get_state().active_loops.get("i", ())
        assert len(active) <= window
        assert all(left[each] > 0 for each in active)
    assert set(left.values()) == {0}


def test_lop05_a_wide_window_really_lets_iterations_overlap() -> None:
    orders = [run(pipeline(" @max_in_flight(2)"), seed=seed).session for seed in SEEDS]
    assert any(s is not None and iterations(s.order) != sorted([0, 1, 2, 3] * 3) for s in orders)


# Placement

TWO_ENGINES = """
buffer A : L2 (size=64)
buffer P : L1[0] (size=64)
buffer Q : L1[1] (size=64)
t = transfer.async(dst=region(Q, 0, 64), src=region(A, 0, 64))
u = relu.async
    in region(Q, 0, 64) elem=i8, shape=[64], layout=C
    out region(Q, 0, 64) elem=i8, shape=[64], layout=C
    deps=[t]
"""


def test_plc02_a_task_works_in_the_l1_of_its_engine() -> None:
    session = run(TWO_ENGINES, "npm_mid").session
    assert session is not None
    expected = np.maximum(BYTES, 0).tobytes()
    assert session.read_memory("L1", engine=1, offset=0, size=64) == expected
    assert session.read_memory("L1", engine=0, offset=0, size=64) == b"\xff" * 64


@pytest.mark.parametrize("seed", SEEDS)
def test_plc06_tasks_between_l2_and_ddr_need_no_engine(seed: int) -> None:
    text = """
buffer A : DDR (size=64)
buffer M : L2 (size=64)
buffer Y : DDR (size=64)
loop i in [0..7] @max_in_flight(4):
    t = transfer.async(dst=region(M, i * 8, 8), src=region(A, i * 8, 8))
    u = transfer.async(dst=region(Y, i * 8, 8), src=region(M, i * 8, 8), deps=[t])
endloop
"""
    assert run(text, "npm_mid", seed).read_buffer("Y") == BYTES.tobytes()


# Tasks and types


@pytest.mark.parametrize("seed", SEEDS)
def test_tok04_a_sync_form_runs_like_the_async_form_and_a_wait(seed: int) -> None:
    copy = "(dst=region(B, 0, 64), src=region(A, 0, 64))\n"
    store = "s = store.async(dst=region(Y, 0, 64), src=region(B, 0, 64))\n"
    forms = [f"t = transfer.sync{copy}", f"t = transfer.async{copy}wait(t)\n"]
    results = [run(HEAD + form + store, seed=seed) for form in forms]
    sessions = [result.session for result in results]
    tasks = [s.get_completed_tasks() for s in sessions if s is not None]
    assert tasks == [["t", "s"], ["t", "s"]]
    assert [result.read_buffer("Y") for result in results] == [BYTES.tobytes()] * 2


@pytest.mark.parametrize(
    ("elem", "where"),
    [
        ("i4", [0, 1, 8, 9]),  # in elements: rows of two are eight apart
        ("i8", [0, 1, 8, 9]),
        ("i32", [0, 1, 8, 9]),
    ],
)
def test_ext09_strides_count_elements(elem: str, where: list[int]) -> None:
    text = f"{HEAD}let X = region(A, 0, 64) elem={elem}, shape=[2, 2], strides=[8, 1]\n"
    result = run(text)
    low, high = BYTES & 15, (BYTES >> 4) & 15
    nibbles = np.stack([low, high], axis=1).reshape(-1).astype(np.int8)
    memories = {
        "i4": np.where(nibbles > 7, nibbles - 16, nibbles),  # low nibble first
        "i8": BYTES,
        "i32": BYTES.view(np.int32),
    }
    found = result.read_region("X")
    np.testing.assert_array_equal(found.reshape(-1), memories[elem][where])


def test_ext09_a_strided_result_leaves_the_gaps_alone() -> None:
    text = f"""{HEAD}
t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
let X = region(B, 0, 2) elem=i4, shape=[2, 2], layout=MN
let Z = region(B, 16, 10) elem=i4, shape=[2, 2], strides=[8, 1]
r = transfer.sync(dst=Z, src=X)
s = store.sync(dst=region(Y, 0, 64), src=region(B, 0, 64))
"""
    interp = interpreter(text)
    data = np.full(64, 0x77, np.uint8)
    data[:2] = 0xEF, 0xCD  # -1, -2; -3, -4, low nibble first
    out = interp.run(interp.load_string(text), inputs={"A": data}).read_buffer("Y")
    expected = data.copy()
    expected[16], expected[20] = 0xEF, 0xCD
    assert out == expected.tobytes()


# What a run can bring up


def test_ini02_bytes_that_nobody_wrote_are_reported_once_and_travel_with_transfers() -> None:
    interp = NemInterpreter()
    program = interp.load_string(pipeline())
    result = interp.run(program)  # A is not filled
    assert (result.status, codes(result)) == ("completed", ["INI02"])
    (found,) = result.diagnostics
    assert found.severity == "warning"
    assert "bytes 0..15 of `B`" in found.message
    assert found.location.line == 9

    strict = NemInterpreter(strict=True)
    stopped = strict.run(strict.load_string(pipeline()))
    assert (stopped.status, stopped.tasks) == ("error", 1)

    zeros = NemInterpreter(uninitialized="zero")
    clean = zeros.run(zeros.load_string(pipeline()))
    assert (codes(clean), clean.read_buffer("Y")) == ([], bytes(64))


def test_ini02_a_host_that_reads_what_nobody_wrote_is_told() -> None:
    session = NemInterpreter().start(NemInterpreter().load_string(pipeline()))
    assert session.read_region("A[8:16]").tobytes() == b"\xff" * 8
    (found,) = session.diagnostics
    assert (found.code, found.severity) == ("INI02", "warning")

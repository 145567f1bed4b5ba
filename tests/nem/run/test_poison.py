"""Bytes that nobody wrote: carried along by copies, reported by computing and by the host."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.sketches import BUFFERS, SIZE
from tests.nem.run.naive import Gap, Naive
from tests.nem.run.programs import Items, instances, loaded, name_of, runnable, text

few = settings(max_examples=scaled(40), suppress_health_check=[HealthCheck.filter_too_much])
fills = st.lists(
    st.tuples(st.sampled_from(BUFFERS), st.integers(0, SIZE - 64), st.binary(max_size=64)),
    max_size=4,
)


def tells_of(message: str, gap: Gap) -> bool:
    """Whether a message names the task, the iteration and the bytes."""
    where = ", ".join(f"{name}={value}" for name, value in gap.env)
    who = f"`{gap.token}` in iteration {where} reads " if where else f"`{gap.token}` reads "
    what = f"bytes {gap.low}..{gap.high - 1} of `{gap.buffer}`, which hold data that nothing wrote"
    return message.startswith(who) and what in message


@few
@given(runnable(), fills)
def test_masks_bytes_and_findings_are_those_of_a_naive_machine(
    items: Items, given_bytes: list[tuple[str, int, bytes]]
) -> None:
    interpreter, naive = NemInterpreter(), Naive()
    session = interpreter.start(loaded(items, interpreter), history_bytes=0)
    for buffer, offset, data in given_bytes:
        session.write_buffer(f"{buffer}@{offset}", data)
        naive.host(buffer, offset, data)
    assert session.run().status == "completed"
    for task, env in instances(items, {}):
        naive.run(task, env, name_of(task.token, env))
    require_alike(session, naive, items)
    messages = [d.message for d in session.diagnostics]
    assert len(messages) == len(naive.gaps)
    assert all(map(tells_of, messages, naive.gaps.values())), (messages, naive.gaps)


def require_alike(session: Session, naive: Naive, items: Items) -> None:
    for name, buffer in session.memory.buffers.items():
        storage = session.memory.storage(buffer)
        assert storage.written.tolist() == naive.written[name], text(items)
        assert storage.missing == naive.written[name].count(False)
        # A byte that nobody wrote holds poison, wherever it came from.
        assert storage.data.tobytes() == bytes(naive.memory[name])
        assert {b for b, known in zip(storage.data, storage.written, strict=True) if not known} <= {
            0xFF
        }


CHAIN = """\
buffer A : L2 (size=16)
buffer B : L1 (size=16)
buffer C : L1 (size=16)
t0 = transfer.sync(dst=region(B, 0, 16), src=region(A, 0, 16))
loop i in [0..3]:
    t1 = add.sync
        in region(B, i * 4, 4) elem=i8, shape=[4], layout=C,
           region(B, i * 4, 4) elem=i8, shape=[4], layout=C
        out region(C, i * 4, 4) elem=i8, shape=[4], layout=C
endloop
t2 = store.sync(dst=region(A, 0, 16), src=region(C, 0, 16))
"""


def test_a_finding_comes_once_for_each_operand_at_its_first_gap() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN), {"A@0": b"abcdef"})
    result = session.run()
    assert result.status == "completed"
    assert [(d.code, d.severity) for d in result.diagnostics] == [("INI02", "warning")] * 2
    first, second = result.diagnostics
    assert first.message.startswith("`t1` in iteration i=1 reads ")
    assert all("bytes 6..7 of `B`" in d.message for d in (first, second))
    lines = CHAIN.splitlines()
    places = [d.span.location.line for d in (first, second)]
    assert ["add" in lines[places[0] - 2], "elem=i8" in lines[places[1] - 1]] == [True, True]
    assert places[1] == places[0] + 1


def test_poison_counts_as_all_ones_and_results_count_as_written() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN), {"A@0": b"abcdef"})
    session.run()
    expected = bytes(2 * b for b in b"abcdef") + bytes([(0xFF + 0xFF) % 256] * 10)
    assert session.read_buffer("A") == expected
    assert session.memory.storage(session.memory.buffers["A"]).missing == 0
    assert [d.code for d in session.diagnostics] == ["INI02"] * 2


def test_a_copy_reports_nothing() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN))
    session.step()
    assert session.diagnostics == ()
    assert session.memory.storage(session.memory.buffers["B"]).missing == 16


def test_a_copy_of_poison_takes_away_what_was_written() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN), {"A@4": b"xyz", "B": bytes(16)})
    storage = session.memory.storage(session.memory.buffers["B"])
    assert storage.missing == 0
    session.step()
    assert storage.missing == 13
    assert storage.data.tobytes() == b"\xff" * 4 + b"xyz" + b"\xff" * 9


def test_strictness_stops_before_the_task_that_reads_poison() -> None:
    interpreter = NemInterpreter(strict=True)
    program = interpreter.load_string(CHAIN)
    result = interpreter.run(program, {"A@0": b"abcdef"}, allow=["INI"])
    assert result.status == "error"
    (found,) = result.diagnostics
    assert (found.code, found.severity) == ("INI02", "error")
    assert result.session is not None
    assert result.session.order == ["t0", "t1[0]"]
    assert result.session.step().status == "error"
    assert result.session.order == ["t0", "t1[0]"]


def test_memory_of_zeros_has_no_poison() -> None:
    interpreter = NemInterpreter(uninitialized="zero", strict=True)
    program = interpreter.load_string(CHAIN)
    result = interpreter.run(program, {"A@0": b"abcdef"}, allow=["INI"])
    assert (result.status, result.diagnostics) == ("completed", ())
    assert result.read_buffer("A") == bytes(2 * b for b in b"abcdef") + bytes(10)


STRIDED = """\
buffer A : L1 (size=16)
buffer B : L1 (size=16)
t0 = relu.sync
    in region(A, 1, 14) elem=i8, shape=[3, 2], strides=[6, 1]
    out region(B, 0, 6) elem=i8, shape=[3, 2], layout=C
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([(0, 3), (7, 2), (13, 2)], None),  # exactly the elements
        ([(0, 7), (9, 7)], (7, 8)),
        ([(0, 8), (9, 7)], (8, 8)),
        ([(1, 2), (7, 2)], (13, 14)),
        ([], (1, 2)),
    ],
)
def test_gaps_between_elements_need_not_be_written(
    written: list[tuple[int, int]], expected: tuple[int, int] | None
) -> None:
    interpreter = NemInterpreter()
    inputs = {f"A@{offset}": bytes(size) for offset, size in written}
    result = interpreter.run(interpreter.load_string(STRIDED), inputs)
    found = [d.message for d in result.diagnostics]
    if expected is None:
        assert found == []
    else:
        assert len(found) == 1
        assert f"bytes {expected[0]}..{expected[1]} of `A`" in found[0]


def test_the_host_is_told_what_it_reads() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN), {"A@2": b"abc"})
    for _ in range(2):
        assert session.read_buffer("A") == b"\xff\xffabc" + b"\xff" * 11
    (found,) = session.diagnostics
    assert found.code == "INI02"
    assert found.message == "the host reads `A`, but nothing has written bytes 0..1"
    assert session.read_region("A[2:5]").tobytes() == b"abc"
    assert len(session.diagnostics) == 1
    session.read_region("A[4:8]")
    assert session.diagnostics[-1].message.endswith("nothing has written bytes 5..7")


# Where it came from

CARRIED = """\
buffer A : L2 (size=64)
buffer M : L2 (size=64)
buffer B : L1 (size=64)
t = transfer.sync(dst=region(M, 0, 64), src=region(A, 0, 64))
loop i in [0..1]:
    s = transfer.sync(dst=region(B, i * 32, 32), src=region(M, (1 - i) * 32, 32))
    let v = region(B, i * 32, 32) elem=i8, shape=[32], layout=C
    u = relu.sync in v out v
endloop
"""
APART = """\
buffer A : L2 (size=64)
buffer B : L1 (size=32)
let wide = region(A, 0, 54) elem=i16, shape=[4, 2], strides=[8, 2]
let dense = region(B, 8, 16) elem=i16, shape=[4, 2], layout=MN
t = transfer.sync(dst=dense, src=wide)
u = relu.sync in dense out dense
"""


def said(text: str, filled: dict[str, bytes], history: int = 0) -> tuple[str, list[str], str]:
    interpreter = NemInterpreter()
    program = interpreter.load_string(text)
    session = interpreter.start(program, history_bytes=history, allow=("TYP",))
    for place, data in filled.items():
        session.write_buffer(place, data)
    session.run()
    found = next(d for d in session.diagnostics if d.code == "INI02")
    return found.message, [r.message for r in found.related], found.help or ""


@pytest.mark.parametrize("history", [0, 1 << 20])
@pytest.mark.parametrize(("hole", "row", "low"), [(40, 0, 8), (3, 1, 35)])
def test_a_finding_names_the_buffer_that_was_not_filled(
    history: int, hole: int, row: int, low: int
) -> None:
    filled = {"A@0": bytes(hole), f"A@{hole + 1}": bytes(63 - hole)}
    message, related, help_ = said(CARRIED, filled, history)
    assert message == (
        f"`u` in iteration i={row} reads operand `X` from bytes {low}..{low} of `B`, which hold "
        f"data that nothing wrote; `s[{row}]` copied them from bytes {hole}..{hole} of `M`, where "
        f"`t` copied them from bytes {hole}..{hole} of `A`"
    )
    assert related[-1] == f"neither a task nor the host has filled bytes {hole}..{hole} of `A`"
    assert help_.startswith("fill `A`, or")


def test_elements_that_were_copied_apart_are_followed() -> None:
    filled = {"A@0": bytes(36), "A@38": bytes(26)}  # element [2, 1] lies at byte 2 * (2 * 8 + 2)
    message, _, _ = said(APART, filled)
    assert "from bytes 18..19 of `B`" in message
    assert message.endswith("`t` copied them from bytes 36..37 of `A`")


def test_a_task_that_comes_too_late_is_named() -> None:
    text = CARRIED + "r = transfer.sync(dst=region(A, 0, 64), src=region(M, 0, 64))\n"
    _, related, help_ = said(text, {})
    assert related[-1] == "`r` writes bytes 32..63 of `A`, but has not run yet"
    assert help_.startswith("wait for `r`, which writes bytes 32..63 of `A`")


def test_the_host_hears_of_it_as_well() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CARRIED))
    session.step()
    session.read_region("M[3:5]")
    session.read_region("M[3:5]")
    (found,) = session.diagnostics
    copied = "; `t` copied them from bytes 3..4 of `A`"
    assert found.message == f"the host reads `M[3:5]`, but nothing has written bytes 3..4{copied}"
    assert found.help == "fill `A`"

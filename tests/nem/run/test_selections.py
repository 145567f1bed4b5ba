"""Elements of regions by name, index and iteration; expressions and conditions about them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.nem.run.sessions.references import parse_reference
from nacre.nem.run.sessions.session import Session
from nacre.nem.run.sessions.statistics import compare
from neminterp import NemInterpreter

# A ring of two slots, an inner loop, and a sibling loop that uses the names again.
PROGRAM = """\
program rings:
const tile = 4
buffer X : L2 (size=16)
buffer Y : L2 (size=16)
buffer R : L1 (size=8)
buffer S : L1 (size=8)
loop i in [0..3]:
    let off = i * tile
    let o = region(R, (i mod 2) * tile, tile) elem=i8, shape=[2, 2], layout=MN
    tX = transfer.sync(dst=o, src=region(X, off, tile))
    tR = relu.sync in o out o
    tS = store.sync(dst=region(Y, off, tile), src=o)
endloop
loop k in [0..1]:
    loop j in [0..1]:
        let o = region(S, (2 * k + j) * 2, 2) elem=i8, shape=[2], layout=C
        tT = transfer.sync(dst=o, src=region(X, (2 * k + j) * 2, 2))
        tU = relu.sync in o out o
    endloop
    let all = region(S, 0, 8) elem=i8, shape=[8], layout=C
    tV = relu.sync in all out all
endloop
"""
DATA = np.array([1, -2, 3, -4, 5, 6, -7, 8, 9, -10, 11, 12, 100, 127, -128, 4], np.int8)


@pytest.fixture
def session() -> Session:
    interp = NemInterpreter()
    return interp.start(interp.load_string(PROGRAM), {"X": DATA})


def place(session: Session, text: str, *, looks_ahead: bool = False) -> str:
    return session.select(text, looks_ahead=looks_ahead).bytes_text


# Which iteration a name means


def test_at_a_border_a_watch_is_set_on_the_slot_that_comes_next(session: Session) -> None:
    session.run_until("tS[0]")
    assert session.next_step == "tX[1]"
    assert place(session, "o") == "R[0:4]"  # what was computed last
    watch = session.add_watchpoint("o")
    assert watch.region is not None
    assert (watch.region.bytes_text, watch.region.iteration_text) == ("R[4:8]", " at i=1")
    result = session.run()
    assert result.status == "watchpoint"
    assert session.order[-1] == "tX[1]"


@pytest.mark.parametrize(
    ("last", "ahead", "behind"),
    [
        (None, "R[0:4]", "R[0:4]"),
        ("tX[2]", "R[0:4]", "R[0:4]"),
        ("tS[2]", "R[4:8]", "R[0:4]"),
        ("tS[3]", "S[0:2]", "R[4:8]"),  # the next loop has a region of that name as well
        ("tT[0,0]", "S[0:2]", "S[0:2]"),
        ("tU[0,0]", "S[2:4]", "S[0:2]"),
        ("tU[0,1]", "S[4:6]", "S[2:4]"),  # the next step is outside the inner loop
        ("tV[1]", "S[6:8]", "S[6:8]"),  # nothing comes any more
    ],
)
def test_the_next_iteration_and_the_latest_one(
    session: Session, last: str | None, ahead: str, behind: str
) -> None:
    if last is not None:
        session.run_until(last)
    assert (place(session, "o", looks_ahead=True), place(session, "o")) == (ahead, behind)


def test_going_back_is_heard_of(session: Session) -> None:
    session.run_until("tX[2]")
    assert place(session, "o") == "R[0:4]"
    session.step_back(3)
    assert place(session, "o") == "R[4:8]"
    session.run_back_until(task="tX[0]")
    assert place(session, "o") == "R[0:4]"
    session.run_until("tU[1,1]")
    assert place(session, "o") == "S[6:8]"


# Elements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o[0, 1]", "7:8"), ("o[1]", "4:8"), ("o[1][0, :]", "4:6"), ("o[:, 1]", "5:6 7:8"),
        ("o[3][..., 0]", "4:5 6:7"), ("o[::-1, 0]", "4:5 6:7"), ("o[-1:]", "6:8"),
        ("R[2:5]", "2:5"), ("R[2..5]", "2:5"), ("R[3]", "3:4"), ("R", "0:8"),
    ],
)  # fmt: skip
def test_an_index_selects_bytes(session: Session, text: str, expected: str) -> None:
    session.run_until("tX[3]")
    found = session.select(text)
    if text == "o[0, 1]":
        expected = "5:6"
    assert " ".join(f"{low}:{high}" for low, high in found.runs) == expected
    assert session.read_selection(found).size == found.values_count


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("o[9]", "`o[9]` is out of range: `k` goes from 0 to 1"),
        ("o[0, 2]", "axis 1 of `o` has 2 elements, found `2`"),
        ("o[0:3, :]", "axis 0 of `o` has 2 elements, found `0:3`"),
        ("o[1:1, :]", "`1:1` selects nothing on axis 0"), ("o[::0, 0]", "selects nothing"),
        ("o[0, 0, 0]", "which 3 indices do not fit"), ("o[x]", "`x` selects nothing"),
        ("o[..., ...]", "`...` may stand once"), ("o[0][0][0]", "is no region"),
        ("R[0, 1]", "`R` is a buffer, a row of bytes"), ("R[3:99]", "which has 8 bytes"),
        ("q", "no region or buffer `q`"), ("a b", "is no region"),
        ("o[" + "0," * 99 + "0]", "more axes"),
        ("o[" + "0" * 9999 + "]", "is no region"),
    ],
)  # fmt: skip
def test_what_is_no_selection_is_refused(session: Session, text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        session.select(text)
    assert says in caught.value.diagnostics[0].message


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(20))
def test_random_slices_read_what_numpy_reads(seed: int) -> None:
    draw = random.Random(seed)
    elem, size = draw.choice([("i8", 1), ("i4", 0.5), ("f16", 2), ("i32", 4)])
    shape = [draw.randrange(1, 5) for _ in range(draw.randrange(1, 4))]
    strided = elem != "i4" and draw.random() < 0.5
    strides = [int(np.prod([d + 1 for d in shape[axis + 1 :]])) for axis in range(len(shape))]
    count = 1 + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))
    extent = int(-(-(count if strided else np.prod(shape)) * size // 1))
    layout = f"strides={strides}" if strided else "layout=ANY"
    text = (
        f"buffer B : L2 (size={extent + 8})\nbuffer C : L2 (size=8)\n"
        f"let r = region(B, 8, {extent}) elem={elem}, shape={shape}, {layout}\n"
        "t = transfer.sync(dst=region(C, 0, 8), src=region(B, 0, 8))\n"
    )
    data = np.random.default_rng(seed).integers(0, 120, extent + 8).astype(np.uint8)
    interp = NemInterpreter()
    session = interp.start(interp.load_string(text), {"B": data})
    whole = np.asarray(session.read_region("r"))
    parts, index = [], []
    for dim in shape:
        low = draw.randrange(dim)
        high = draw.randrange(low + 1, dim + 1)
        step = draw.choice([1, 1, 2])
        is_one = draw.random() < 0.3
        parts.append(str(low) if is_one else f"{low}:{high}:{step}")
        index.append(low if is_one else slice(low, high, step))
    found = session.select(f"r[{', '.join(parts)}]")
    np.testing.assert_array_equal(np.asarray(session.read_selection(found)), whole[tuple(index)])
    # Changing the bytes of the selection, and no others, changes its elements and no others.
    touched = data.copy()
    for low, high in found.runs:
        touched[low:high] ^= 0x11
    other = interp.start(interp.load_string(text), {"B": touched})
    now = np.asarray(other.read_region("r"))
    changed = now != whole
    assert changed[tuple(index)].all()
    if size >= 1:
        changed[tuple(index)] = False
        assert not changed.any()


# Expressions and conditions


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tile", 4), ("i", 1), ("off", 4), ("i * tile - 7 / 2", 1), ("-7 mod 3", -1),
        ("-7 / 2", -3), ("o[0, 1]", 6), ("o[0][0, 0]", 1), ("max(o)", 8), ("min(o[0])", 0),
        ("mean(o[0][0, :])", 0.5),
        ("max(X)", 254), ("nan(o)", 0), ("saturated(o)", 0.0), ("X[0] + 0.5", 1.5), ("j", None),
        ("1 / (i - 1)", None), ("2 * (i + 1)", 4),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_of_the_next_step(
    session: Session, text: str, value: float | None
) -> None:
    session.run_until("tX[1]")
    assert session.evaluate(text) == value


@pytest.mark.parametrize(
    ("condition", "step"),
    [
        ("o[0, 0] > 3", "tR[1]"), ("max(o) > 100", "tR[3]"), ("min(o) < -100 and i == 3", "tR[3]"),
        ("off == 8", "tR[2]"), ("o[0, 0] == 1.0", "tR[0]"), ("saturated(o) >= 0.5", "tR[3]"),
        ("max(o) > 999", None), ("o[0][0, 0] == 9 and o[0, 1] > 100", "tR[3]"),
    ],
)  # fmt: skip
def test_a_breakpoint_may_depend_on_values(
    session: Session, condition: str, step: str | None
) -> None:
    session.add_breakpoint(task="tR", condition=condition)
    session.run()
    assert session.next_step == step


@pytest.mark.parametrize(
    ("region", "condition", "last"),
    [
        ("o[1]", "max > 100", "tX[3]"), ("o[1]", "i == 1 and min >= 0", "tR[1]"),
        ("Y", "Y[8] > 0", "tS[2]"), ("Y[8:12]", "mean > 1", "tS[2]"), ("Y", "nan > 0", None),
        ("o[0][1, :]", "saturated > 0", None),
    ],
)  # fmt: skip
def test_a_watchpoint_may_depend_on_values(
    session: Session, region: str, condition: str, last: str | None
) -> None:
    session.add_watchpoint(region, condition=condition)
    result = session.run()
    assert (result.status == "watchpoint") == (last is not None)
    assert last in (None, session.order[-1])


def test_bytes_that_nobody_wrote_set_nothing_off(session: Session) -> None:
    session.add_breakpoint(task="tX", condition="o[0, 0] > -128")
    session.run()
    assert session.next_step == "tX[2]"  # the first slot that has been written before


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(30))
def test_any_text_is_an_expression_or_refused(session: Session, seed: int) -> None:
    draw = random.Random(seed)
    pieces = [*"o[](){}+-/: ,X0é\0", "[0]", "max", "i", "mod", "1.5", "==", "and", "[1:2]",
              "9" * 30, "__import__", "..."]  # fmt: skip
    refused = set()
    for _ in range(60):
        text = "".join(draw.choices(pieces, k=draw.randrange(1, 12)))
        for ask in (
            session.evaluate,
            session.select,
            lambda t: session.add_breakpoint(task="tR", condition=t),
            lambda t: session.add_watchpoint("o", condition=t),
        ):
            try:
                ask(text)
            except InputError as error:
                refused.add(error.diagnostics[0].code)
    assert refused == {"RUN05"}


def test_a_reference_has_a_name_and_brackets() -> None:
    assert parse_reference("a[1][2, 3:4]") is not None
    assert parse_reference("a + 1") is None


# Comparison with an array


@pytest.mark.parametrize("seed", range(5))
def test_a_comparison_finds_what_a_loop_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(3, 4)).astype(np.float32)
    expected = found.copy()
    expected[rng.random(found.shape) < 0.3] += 0.25
    found[0, 1] = expected[0, 1] = np.nan
    if seed % 2:
        expected[1, 1] = np.nan
    result = compare(found, expected, 0.1)
    count, first, worst = 0, None, 0.0
    for index in np.ndindex(3, 4):
        a, b = float(found[index]), float(expected[index])
        error = 0.0 if a == b or (a != a and b != b) else abs(a - b)
        if not error <= 0.1:
            count, first = count + 1, first or index
        worst = max(worst, error) if worst == worst and error == error else float("nan")
    assert (result.count, result.first, result.total) == (count, first, 12)
    np.testing.assert_equal(result.max_error, worst)


def test_large_integers_are_compared_exactly() -> None:
    big = np.array([2**62, 2**62 + 1], np.int64)
    assert compare(big, big).count == 0
    assert compare(big, big[::-1]).first == (0,)


def test_infinities_are_equal_to_themselves_alone() -> None:
    values = np.array([np.inf, -np.inf, 1.0])
    assert compare(values, values).count == 0
    assert compare(values, np.array([np.inf, np.inf, 1.0])).count == 1

"""Where values lie: apart while they live, in place where a kernel allows it, never in outputs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.evaluation.memory import OVERWRITING, Allocation, lay_out
from nacre.core.module import Module
from nacre.core.ops import OPS

LINE = 64  # bytes of a line of the cache


@st.composite
def lives(draw: st.DrawFn) -> list[Allocation]:
    """Values in order, each dead after some later step."""
    count = draw(st.integers(1, 25))
    ends = [draw(st.integers(at, count - 1)) for at in range(count)]
    births: list[Allocation] = []
    for at in range(count):
        size = draw(st.none() | st.integers(1, 1000))
        dead = tuple(v for v, end in enumerate(ends) if end == at)
        heirs = tuple(v for v in dead if v < at and births[v].bytes == size)
        births.append(Allocation(at, size, dead, heirs if draw(st.booleans()) else ()))
    return births


@given(lives())
def test_values_that_live_together_lie_apart(births: list[Allocation]) -> None:
    layout = lay_out(births)
    alive: dict[int, range] = {}
    for birth in births:
        if birth.bytes is not None:
            start = layout.offsets[birth.value]
            mine = range(start, start + birth.bytes)
            assert start % LINE == 0
            assert mine.stop <= layout.size
            for value, other in alive.items():
                is_inherited = (
                    value in birth.may_overwrite and value in birth.dead and other == mine
                )
                assert is_inherited or mine.stop <= other.start or other.stop <= mine.start
            alive[birth.value] = mine
        for value in birth.dead:
            alive.pop(value, None)
    assert layout.offsets.keys() == {b.value for b in births if b.bytes is not None}


def test_a_chain_takes_two_places_and_one_that_overwrites_a_single_one() -> None:
    chain = [Allocation(at, 1000, (at - 1,) if at else ()) for at in range(50)]
    assert lay_out(chain).size == 2 * 1024
    inherited = [Allocation(b.value, b.bytes, b.dead, b.dead) for b in chain]
    assert lay_out(inherited).size == 1024


def test_neighbours_that_are_free_are_one_stretch() -> None:
    small = [Allocation(at, 64, ()) for at in range(4)]
    large = Allocation(5, 256, ())
    assert lay_out([*small, Allocation(4, None, (0, 2, 1, 3)), large]).size == 256


FORMS = [
    *(("BinOp", name, {"op": op}) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow")
      for name in ("f32", "f64", "f16", "bf16", "i32", "u8")),
    *((op, name, {}) for op in ("Neg", "Relu", "ReluNan")
      for name in ("f32", "f64", "bf16", "i32")),
    *(("Clip", name, {"min": 2, "max": 6}) for name in ("f32", "f64", "bf16", "i32")),
    *((op, name, {}) for op in ("Exp", "Log", "Silu", "Gelu", "HardSwish", "HardSigmoid")
      for name in ("f32", "f64", "f16", "bf16")),
]  # fmt: skip


def test_every_opcode_that_may_overwrite_is_tried() -> None:
    assert {op for op, _, _ in FORMS} == OVERWRITING
    assert all(
        "elementwise" in OPS[op].traits or OPS[op].profile == "core-v1" for op in OVERWRITING
    )


def overwriting(op: str, dtype: str, attributes: dict[str, str], side: int, small: bool) -> Module:
    """The operation on a computed value that dies there, and on one that does not."""
    build = Builder()
    shape = (3, 11_000)  # more than kernels take at a time
    x = build.input("x", dtype, shape)
    other = build.input("y", dtype, (11_000,) if small else shape)
    dying = build.add("Transpose", build.add("Transpose", x, permutation=(1, 0)),
                      permutation=(1, 0))  # fmt: skip
    mine = [dying] if op != "BinOp" else [dying, other] if side == 0 else [other, dying]
    theirs = [x if operand == dying else operand for operand in mine]
    results = [build.add(op, *operands, **attributes) for operands in (mine, theirs)]
    # A reshape is a copy: the results themselves do not leave the run.
    return build.module(*(build.add("Reshape", r, new_shape=(33_000,)) for r in results))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(("op", "dtype", "attributes"), FORMS)
def test_written_over_an_operand_or_not_the_bytes_are_the_same(
    op: str, dtype: str, attributes: dict[str, str], side: int, small: bool
) -> None:
    module = overwriting(op, dtype, attributes, side, small)
    session = CoreSession(module)
    random = np.random.default_rng(7)
    feeds = {
        name: random.uniform(1, 9, type_.shape).astype(type_.element.dtype)
        for name, type_ in module.input_types.items()
    }
    before = {name: array.tobytes() for name, array in feeds.items()}
    places = session._plan.layout.offsets
    (first,) = [o for o in module.operations if o.opcode == op][:1]
    if op != "BinOp" or not small or side == 0:
        assert places[first.value_id] in {places[v] for v in first.operands if v in places}
    mine, theirs = session.run(feeds)
    assert mine.tobytes() == theirs.tobytes()
    assert {name: array.tobytes() for name, array in feeds.items()} == before


def test_an_operand_that_is_needed_later_is_not_written_over() -> None:
    build = Builder()
    x = build.input("x", "f32", (8,))
    a = build.add("Exp", x)
    b = build.add("Neg", a)
    module = build.module(build.add("BinOp", a, b, op="Sub"))
    given_ = np.linspace(-1, 1, 8, dtype=np.float32)
    (found,) = CoreSession(module).run({"x": given_})
    np.testing.assert_array_equal(found, 2 * np.exp(given_))


def test_outputs_of_one_run_stay_as_they_are_in_the_next() -> None:
    build = Builder()
    x = build.input("x", "f32", (1000,))
    doubled = build.add("BinOp", x, x, op="Add")
    module = build.module(build.add("Neg", doubled), doubled, doubled)
    session = CoreSession(module)
    first = session.run({"x": np.ones(1000, np.float32)})
    session.run({"x": np.full(1000, 5, np.float32)})
    assert [float(array[0]) for array in first] == [-2, 2, 2]
    first[1][:] = 0
    assert first[2][0] == 2


def test_threads_may_run_one_session_together() -> None:
    build = Builder()
    x = build.input("x", "f32", (200, 200))
    value = x
    for _ in range(10):
        value = build.add("BinOp", build.add("Neg", value), x, op="Sub")
    session = CoreSession(build.module(value))

    def run(number: int) -> bool:
        (found,) = session.run({"x": np.full((200, 200), number, np.float32)})
        return bool((found == number).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(40)))


def test_a_run_that_fails_leaves_the_session_usable() -> None:
    build = Builder()
    x, y = build.input("x", "i32", (4,)), build.input("y", "i32", (4,))
    twice = build.add("BinOp", x, x, op="Add")
    session = CoreSession(build.module(build.add("BinOp", twice, y, op="Div")))
    ones = np.ones(4, np.int32)
    with pytest.raises(InputError, match="division by zero"):
        session.run({"x": ones, "y": 0 * ones})
    assert session.run({"x": ones, "y": ones})[0].tolist() == [2, 2, 2, 2]

"""A run that repeats another gives the same, whatever shares or frees memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.format.file import to_bytes
from nacre.nac.format.values import Command, Tick
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.binding import Ref
from nacre.nac.run.model import load
from nacre.nac.verify import verify
from tests.nac.files import FIXTURES, small

F32 = np.float32
Step = tuple[str, tuple[Any, ...], Callable[..., Array]]
# Calls on one or two arrays of 12 elements, and what NumPy says of them.
STEPS: tuple[Step, ...] = (
    ("nac.neg", (), lambda a: -a),
    ("aten.sigmoid.default", (), lambda a: 1 / (1 + np.exp(-a))),
    ("nac.clone", (), lambda a: a),
    ("nac.view", ((3, 4),), lambda a: a.reshape(3, 4)),
    ("nac.view", ((12,),), lambda a: a.reshape(12)),
    ("aten.unsqueeze.default", (0,), lambda a: a[None]),
    ("aten.tanh.default", (), np.tanh),
    ("aten.linear.default", (), lambda a: a),  # stands for a sum of two
)


@st.composite
def programs(draw: st.DrawFn) -> tuple[bytes, Callable[[Array], list[Array]]]:
    """A program with views, aliases and a schedule that frees what nobody uses any more."""
    made = Assembler()
    refs: list[Ref] = [made.input("x"), made.parameter(made.weight("w", np.arange(12, dtype=F32)))]
    steps: list[tuple[Step, tuple[int, ...]]] = []
    uses: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 9))):
        step = draw(st.sampled_from(STEPS))
        places = [draw(st.integers(0, len(refs) - 1)) for _ in range(2)]
        name, constants, _ = step
        if name == "aten.linear.default":
            flat = [made.call("nac.view", refs[at], (12,)) for at in places]
            made_ref = made.call("nac.add", *flat)
        else:
            places = places[:1]
            made_ref = made.call(name, refs[places[0]], *constants)
        uses.update({refs[at].index: made_ref.index for at in places})
        steps.append((step, tuple(places)))
        refs.append(made_ref)
    outputs = [draw(st.integers(0, len(refs) - 1)) for _ in range(draw(st.integers(1, 3)))]
    made.output(*[refs[at] for at in outputs])
    end = refs[-1].index + 1
    ticks: dict[int, list[Command]] = {}
    for index in {ref.index for ref in refs} - {refs[at].index for at in outputs}:
        last = uses.get(index, index)
        tick = draw(st.integers(last, end))
        if draw(st.integers(0, 3)):
            ticks.setdefault(tick, []).append(Command(20, index))
    schedule = [Tick(tick, tuple(ticks[tick])) for tick in sorted(ticks)]
    raw = to_bytes(made.file(schedule=schedule))
    return raw, lambda x: _computed(x, steps, outputs)


def _computed(
    x: Array, steps: list[tuple[Step, tuple[int, ...]]], outputs: list[int]
) -> list[Array]:
    values = [x, np.arange(12, dtype=F32)]
    for (name, _, function), places in steps:
        taken = [values[at] for at in places]
        if name == "aten.linear.default":
            values.append(taken[0].reshape(12) + taken[1].reshape(12))
        else:
            values.append(function(*taken))
    return [values[at] for at in outputs]


@given(programs(), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # e^(e^x) of the oracle
def test_a_repeated_run_gives_the_same(
    program: tuple[bytes, Callable[[Array], list[Array]]], seed: int
) -> None:
    raw, oracle = program
    assert [d for d in verify(raw) if d.severity == "error"] == []
    session = load(raw).session()
    random = np.random.default_rng(seed)
    for _ in range(3):
        x = random.uniform(-1, 1, 12).astype(F32)
        before = x.copy()
        found = session.run({"x": x})
        for one, other in zip(found, oracle(x), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-4)
        for array in found:
            array[...] = 7  # it belongs to the caller
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_fixture_runs_again(path: Any) -> None:  # noqa: ANN401 - a Path
    x = np.load(path.with_suffix(".npz"))["in0"]
    model = load(path)
    name = model.inputs[0].name
    session, timed = model.session(optimise=False), model.session(timed=True)
    ready = load(path).session()
    peaks = set()
    for factor in (1, -1, 0.5, 1):
        given_x = (x * F32(factor)).astype(F32)
        # A session with timings looks everything up again.
        one, other = (s.run({name: given_x})[0] for s in (session, timed))
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(ready.run({name: given_x})[0], one, atol=1e-5)
        peaks.add(session.peak_bytes)
    assert peaks == {timed.peak_bytes}


def test_a_fault_in_a_repeated_run_has_a_code() -> None:
    made = Assembler()
    at = made.input("at")
    w = made.parameter(made.weight("w", np.zeros((3, 2), F32)))
    made.output(made.call("aten.embedding.default", w, at))
    session = load(to_bytes(made.file())).session()
    for _ in range(2):
        session.run({"at": np.array([0, 2])})
    with pytest.raises(InputError, match="NAC47"):
        session.run({"at": np.array([0, 7])})
    assert session.run({"at": np.array([1, 2])})[0].shape == (2, 2)


def test_what_depends_on_elements_is_looked_up_each_time() -> None:
    made = Assembler()
    x = made.input("x")
    made.output(made.call("aten.index.Tensor", x, made.call("nac.gt", x, 0.0)))
    session = load(to_bytes(made.file())).session()
    for values in ([1, -1, 2], [-1, -1, 2], [1, 1, 2]):
        array = np.array(values, F32)
        np.testing.assert_array_equal(session.run({"x": array})[0], array[array > 0])


def test_several_runs_may_go_on_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = load(to_bytes(small()))
    arrays = [np.full((2, 3), at, F32) for at in range(40)]
    wanted = [model.run({"x": array})[0] for array in arrays]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda array: model.run({"x": array})[0], arrays))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)

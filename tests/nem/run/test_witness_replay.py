"""A hazard's witness, run in both orders: where values allow it, the bytes differ."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.replay import witness_orders, witness_steps
from nacre.nem.run.sessions.steps import number_steps
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.mutants import mutants, pipeline
from tests.nem.plan.sketches import read
from tests.nem.run.programs import (
    Items,
    contents,
    instance_name,
    loaded,
    naive_run,
    runnable,
    stored,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])

BUFFERS = "".join(f"buffer {name} : L1 (size=64)\n" for name in "ABCD")


def races(program: LoadedProgram) -> list[Diagnostic]:
    return [d for d in program.diagnostics if d.severity == "error"]


@pytest.mark.heavy("random programs, each run in many orders")
@few
@given(runnable(racy=True), seeds)
def test_both_orders_of_every_witness_run_to_the_end(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    for diagnostic in races(program):
        replay = interpreter.replay(program, diagnostic, contents(seed))
        assert (replay.first.status, replay.second.status) == ("completed", "completed")
        assert replay.first.session is not None
        assert replay.second.session is not None
        first, second = stored(replay.first.session), stored(replay.second.session)
        assert set(replay.differs) == {name for name in first if first[name] != second[name]}
        assert replay.matters == (first != second)
        for run, found in ((replay.first, first), (replay.second, second)):
            assert run.session is not None
            tasks = run.session.get_completed_tasks()
            assert found == naive_run(items, contents(seed), tasks)


@few
@given(runnable(racy=True))
def test_a_witness_comes_after_exactly_what_must_precede_it(items: Items) -> None:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    reading, steps = read(items), number_steps(program.plan)
    named = {instance_name(i): i for i in reading.instances}
    for diagnostic in races(program):
        first, second = witness_orders(steps, *witness_steps(diagnostic, steps))
        assert first[:-2] == second[:-2]
        assert first[-2:] == second[:-3:-1]
        pair = [named[name] for name in first[-2:]]
        needed = {
            instance_name(i)
            for i in reading.instances
            if any(reading.is_before(i, p) for p in pair)
        }
        assert {name for name in first[:-2] if not name.startswith("wait")} == needed


@pytest.mark.full
def test_many_a_broken_pipeline_depends_on_the_order_of_its_witness() -> None:
    rng = random.Random(1)
    interpreter = NemInterpreter()
    matters: list[bool] = []
    while len(matters) < 60:
        for mutant in mutants(pipeline(rng), rng):
            program = loaded(mutant, interpreter)
            found = races(program)
            if found and all(d.data is not None for d in found):
                replays = [interpreter.replay(program, d, contents(3)) for d in found]
                matters.append(any(replay.matters for replay in replays))
    assert sum(matters) > len(matters) // 2, f"{sum(matters)} of {len(matters)}"


@pytest.mark.parametrize(
    ("code", "body", "differs"),
    [
        pytest.param(
            "HAZ03",
            """\
            t0 = transfer.async(dst=region(C, 0, 8), src=region(A, 0, 8))
            t1 = transfer.async(dst=region(C, 4, 8), src=region(B, 0, 8))
            """,
            ("C",),
            id="two writers",
        ),
        pytest.param(
            "HAZ01",
            """\
            t0 = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))
            t1 = transfer.async(dst=region(C, 0, 8), src=region(B, 7, 8))
            """,
            ("C",),
            id="read after write",
        ),
        pytest.param(
            "HAZ02",
            """\
            t0 = transfer.async(dst=region(C, 0, 8), src=region(B, 0, 8))
            t1 = transfer.async(dst=region(B, 7, 8), src=region(A, 0, 8))
            """,
            ("C",),
            id="write after read",
        ),
        pytest.param(
            "HAZ05",
            """\
            loop i in [0..3] @max_in_flight(2):
                t0 = transfer.async(dst=region(B, 0, 8), src=region(A, i * 8, 8))
                t1 = transfer.async(dst=region(C, i * 8, 8), src=region(B, 0, 8), deps=[t0])
            endloop
            """,
            ("C",),
            id="iterations that share a slot",
        ),
        pytest.param(
            "HAZ06",
            """\
            loop i in [0..3] @max_in_flight(3):
                t0 = transfer.async(dst=region(B, (i mod 2) * 8, 8), src=region(A, i * 8, 8))
                t1 = transfer.async(dst=region(C, i * 8, 8), src=region(B, (i mod 2) * 8, 8),
                                    deps=[t0])
            endloop
            """,
            ("C",),
            id="a ring smaller than its window",
        ),
    ],
)  # fmt: skip
def test_a_race_whose_values_differ_leaves_different_bytes(
    code: str, body: str, differs: tuple[str, ...]
) -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(BUFFERS + body)
    found = [d for d in races(program) if d.code == code]
    assert found
    inputs = {name: bytes(range(k, k + 64)) for k, name in zip(range(0, 256, 64), "ABCD",
                                                              strict=True)}  # fmt: skip
    replays = [interpreter.replay(program, diagnostic, inputs) for diagnostic in found]
    assert any(set(replay.differs) >= set(differs) for replay in replays)


def test_writing_the_same_bytes_twice_is_a_race_that_does_not_matter() -> None:
    interpreter = NemInterpreter()
    body = (
        "t0 = transfer.async(dst=region(C, 0, 8), src=region(A, 0, 8))\n"
        "t1 = transfer.async(dst=region(C, 0, 8), src=region(A, 0, 8))\n"
    )
    program = interpreter.load_string(BUFFERS + body)
    (diagnostic,) = races(program)
    replay = interpreter.replay(program, diagnostic, {"A": bytes(64), "C": bytes(64)})
    assert not replay.matters


def test_neither_order_sees_what_the_other_left_in_ddr() -> None:
    interpreter = NemInterpreter(ddr_size=1 << 16)
    program = interpreter.load_string(
        "buffer D : DDR (size=16)\nbuffer L : L2 (size=16)\n"
        "t0 = transfer.async(dst=region(D, 0, 8), src=region(L, 0, 8))\n"
        "t1 = transfer.async(dst=region(L, 8, 8), src=region(D, 0, 8))\n"
    )
    (diagnostic,) = races(program)
    interpreter.ddr_write(0, b"................")
    replay = interpreter.replay(program, diagnostic, {"L": b"abcdefgh########"})
    assert replay.differs == ("L",)
    assert replay.first.read_buffer("L") == b"abcdefghabcdefgh"
    assert replay.second.read_buffer("L") == b"abcdefgh........"
    assert interpreter.ddr_read(0, 16) == b"................"


def test_a_finding_without_witness_cannot_be_replayed() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(
        BUFFERS + "t0 = transfer.async(dst=region(C, 0, 8), src=region(A, 0, 4))\n"
    )
    with pytest.raises(InputError, match="no witness"):
        interpreter.replay(program, program.diagnostics[0])

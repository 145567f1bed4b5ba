"""Who wrote a byte, against a table that every step keeps up to date."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.sketches import BUFFERS
from tests.nem.run.naive import Naive
from tests.nem.run.programs import Items, instances, loaded, name_of, runnable

few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])
moves = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 3), st.just("A")),
        st.tuples(st.just("step"), st.integers(1, 3), st.just("A")),
        st.tuples(st.just("back"), st.integers(1, 4), st.just("A")),
        st.tuples(st.just("write"), st.integers(0, 20), st.sampled_from(BUFFERS)),
    ),
    max_size=14,
)


def require_writers(session: Session, naive: Naive, turns: dict[str, int]) -> None:
    for name in BUFFERS:
        writers: list[object] = []
        for part in session.who_wrote(name):
            assert part.low == len(writers)
            writers += [part.writer] * (part.high - part.low)
            is_task = part.writer not in (None, "host")
            assert part.step == (turns[str(part.writer)] if is_task else None)
            assert (part.line is not None) == is_task
        assert writers == naive.writer[name]


@few
@given(runnable(), moves, st.integers(0, 1 << 32))
def test_every_byte_names_its_last_writer(
    items: Items, walk: list[tuple[str, int, str]], seed: int
) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    session = interpreter.start(loaded(items, interpreter), {"B@3": bytes(40), "C@0": bytes(9)})
    naive = Naive()
    naive.host("B", 3, bytes(40))
    naive.host("C", 0, bytes(9))
    named = {name_of(task.token, env): (task, env) for task, env in instances(items, {})}
    before: list[Naive] = []  # the table before each step taken
    for kind, count, buffer in walk:
        if kind == "step":
            for result in session.step(count):
                before.append(deepcopy(naive))
                if result.task_id in named:
                    naive.run(*named[str(result.task_id)], str(result.task_id))
        elif kind == "back":
            for _ in session.step_back(count):
                naive = before.pop()
        else:
            session.write_buffer(f"{buffer}@{count}", bytes(7))
            naive.host(buffer, count, bytes(7))
        require_writers(session, naive, {name: n for n, name in enumerate(session.order)})


TEXT = """\
buffer A : L1 (size=32)
buffer B : L1 (size=32)
t0 = transfer.sync(dst=region(B, 0, 16), src=region(A, 0, 8))
loop i in [0..1]:
    t1 = relu.sync
        in region(A, 0, 4) elem=i8, shape=[2, 2], layout=C
        out region(B, 4 + i * 8, 6) elem=i8, shape=[2, 2], strides=[4, 1]
endloop
"""


def writers(session: Session, name: str) -> list[tuple[int, int, str | None]]:
    return [(part.low, part.high, part.writer) for part in session.who_wrote(name)]


def test_a_copy_writes_no_more_than_its_source_has() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(TEXT), {"A": bytes(32), "B": bytes(32)})
    session.step()
    assert writers(session, "B") == [(0, 8, "t0"), (8, 32, "host")]


def test_gaps_between_elements_keep_their_writer() -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(TEXT), {"A": bytes(32), "B@20": bytes(12)})
    session.run()
    assert writers(session, "B") == [
        (0, 4, "t0"),
        (4, 6, "t1[0]"),
        (6, 8, "t0"),
        (8, 10, "t1[0]"),
        (10, 12, None),
        (12, 14, "t1[1]"),
        (14, 16, None),
        (16, 18, "t1[1]"),
        (18, 20, None),
        (20, 32, "host"),
    ]
    assert writers(session, "B[5:9]") == [(5, 6, "t1[0]"), (6, 8, "t0"), (8, 9, "t1[0]")]
    parts = {part.writer: part for part in session.who_wrote("B")}
    assert (parts["t0"].line, parts["t0"].step) == (3, 0)
    assert (parts["t1[1]"].line, parts["t1[1]"].step) == (5, 2)


def test_writers_are_known_where_memory_starts_as_zeros() -> None:
    interpreter = NemInterpreter(uninitialized="zero")
    session = interpreter.start(interpreter.load_string(TEXT), {"B@20": bytes(12)})
    session.step()
    assert writers(session, "B") == [(0, 8, "t0"), (8, 20, None), (20, 32, "host")]


def test_what_lay_in_ddr_before_the_session_is_the_hosts() -> None:
    interpreter = NemInterpreter(ddr_size=4096)
    program = interpreter.load_string(
        "buffer D : DDR (size=16)\nbuffer L : L2 (size=16)\n"
        "t0 = transfer.sync(dst=region(D, 4, 8), src=region(L, 0, 8))\n"
    )
    interpreter.ddr_write(0, b"abcdefgh")
    session = interpreter.start(program, {"L": bytes(16)})
    session.run()
    assert writers(session, "D") == [(0, 4, "host"), (4, 12, "t0"), (12, 16, None)]
    assert len(writers(session, "L")) == 1

"""Waits for tokens: enough of them by the check of NEM, and no order that was asked for is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.emission.stage import emit
from nacre.compile.program import (
    Affine,
    Buffer,
    Copy,
    Loop,
    Program,
    Region,
    Statement,
    Wait,
    tasks_of,
)
from nacre.compile.schedule.tokens import insert_waits
from nacre.compile.target import target_of
from nacre.nem.api.documents import check

LIMIT = 16  # of npm4k
SLOT = 64


def _copy(number: int, deps: tuple[str, ...]) -> Copy:
    dst = Region("tiles_L1", Affine(number * SLOT), SLOT)
    return Copy(f"t{number}", "transfer", dst, Region("data", Affine(number * SLOT), SLOT), deps)


@st.composite
def _programs(draw: st.DrawFn) -> list[Statement]:
    """Tasks that name some of the tasks before them; waits, and loops of independent tasks."""
    statements: list[Statement] = []
    tokens: list[str] = []
    count = draw(st.integers(1, 60))
    for number in range(count):
        named = (
            draw(st.lists(st.sampled_from(tokens[-24:]), max_size=3, unique=True)) if tokens else []
        )
        kind = draw(st.sampled_from(("task", "task", "task", "task", "task", "wait", "loop")))
        if kind == "wait" and named:
            statements.append(Wait(tuple(named)))
        elif kind == "loop":
            window = draw(st.integers(1, 3))
            moved = Affine((count + 4 * number) * SLOT, (("i", SLOT),))
            region = Region("tiles_L1", moved, SLOT)
            copy = Copy(f"l{number}", "transfer", region, Region("data", moved, SLOT), tuple(named))
            statements.append(Loop("i", 0, 3, window, (copy,)))
        else:
            statements.append(_copy(number, tuple(named)))
            tokens.append(f"t{number}")
    return statements


def _text(statements: tuple[Statement, ...]) -> str:
    size = 64 * SLOT * 8
    buffers = (Buffer("data", "DDR", size), Buffer("tiles_L1", "L1", size))
    return emit(Program("p", buffers, statements), target_of("npm4k"))


def _before(statements: tuple[Statement, ...]) -> dict[str, set[str]]:
    """For every task, all that is done when it starts: by names and waits, step by step."""
    done: set[str] = set()
    before: dict[str, set[str]] = {}

    def closure(tokens: tuple[str, ...]) -> set[str]:
        return set().union(*({t} | before[t] for t in tokens))

    for statement in statements:
        if isinstance(statement, Wait):
            done |= closure(statement.tokens)
        elif isinstance(statement, Copy):
            before[statement.token] = done | closure(statement.deps)
        elif isinstance(statement, Loop):
            for task in tasks_of(statement.body):
                before[task.token] = done | closure(task.deps)
                done |= closure((task.token,))
    return before


@given(_programs())
def test_an_engine_never_runs_out_of_tokens(statements: list[Statement]) -> None:
    """What the check says of the program with waits: no more tokens than the device keeps."""
    made = insert_waits(statements, LIMIT, {"tiles_L1": 0})
    found = [d for d in check(_text(made), strict=True) if d.code == "TOK07"]
    assert not found, [str(d) for d in found]


@given(_programs(), st.integers(4, 16))
def test_nothing_that_was_ordered_is_free(statements: list[Statement], limit: int) -> None:
    """Names that are dropped stand for what a wait before them has settled."""
    made = insert_waits(statements, limit, {"tiles_L1": 0})
    given, kept = _before(tuple(statements)), _before(made)
    assert given.keys() == kept.keys()
    for token, wanted in given.items():
        assert wanted <= kept[token], (token, wanted - kept[token])


def test_a_program_with_tokens_enough_stays_as_it_is() -> None:
    """No wait where none is needed."""
    statements = tuple(_copy(n, (f"t{n - 8}",) if n >= 8 else ()) for n in range(64))
    assert insert_waits(statements, LIMIT, {"tiles_L1": 0}) == statements


def test_the_oldest_tasks_are_waited_for() -> None:
    """The first wait stands before the first task too many, and names the first tasks."""
    made = insert_waits([_copy(n, ()) for n in range(20)], LIMIT, {"tiles_L1": 0})
    at = next(i for i, s in enumerate(made) if isinstance(s, Wait))
    assert at == LIMIT
    assert made[at] == Wait(("t0", "t1", "t2", "t3"))


def test_of_a_loop_as_many_iterations_overlap_as_there_are_tokens_for() -> None:
    """Five tokens an iteration: with 8 iterations at a time 40 were alive, of 16."""

    def copy(number: int) -> Copy:
        moved = Affine(number * 8 * SLOT, (("i", SLOT),))
        regions = Region("tiles_L1", moved, SLOT), Region("data", moved, SLOT)
        return Copy(f"l{number}", "transfer", *regions)

    loop = Loop("i", 0, 7, 8, tuple(copy(number) for number in range(5)))
    assert check(_text((loop,)), strict=True)[0].code == "TOK07"
    (made,) = insert_waits([loop], LIMIT, {"tiles_L1": 0})
    assert isinstance(made, Loop)
    assert made.window == LIMIT // 5
    assert not check(_text((made,)), strict=True)

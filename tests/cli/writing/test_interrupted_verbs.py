"""Every verb that writes, on disks that fill and killed midway: the old state, or the new one."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import pytest

from nacre.cli.main import main
from tests.base.faults import failing
from tests.cli.runner import invoke
from tests.cli.writing.bench import Bench, names_in
from tests.cli.writing.trials import (
    Fault,
    Measure,
    failing_call,
    full_disk,
    killed_after,
    killed_at,
    run_apart,
)
from tests.cli.writing.verbs import UGLY, VERBS, make_given, writes
from tests.effort import PROFILE

Capsys = pytest.CaptureFixture[str]
MakeBench = Callable[..., Bench]
Record = Callable[[str, bool, dict[str, int]], None]

# Thousands of processes: `make fuzz` has them all, the full tier every verb at a few moments.
IS_FUZZ = PROFILE == "fuzz"
# Outputs below it fail at every byte, where they replace others.
EVERY_BYTE = 4096 if IS_FUZZ else 64
SOME = 200 if IS_FUZZ else 20


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    make_given(folder)
    return folder


@pytest.fixture
def bench(given: Path, capsys: Capsys, tmp_path: Path) -> MakeBench:
    if not (given / "plan.nac").exists():
        plan = ("--plan", given / "plan.txt", "-o", given / "plan.nac")
        assert invoke(capsys, "nac", "build", given / "m1.core", *plan).status == 0
    return lambda name, *, has_old: Bench(
        name, given, partial(invoke, capsys), tmp_path, has_old=has_old
    )


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Record:
    """Note how many trials there were, for reports."""
    return lambda name, has_old, counts: record_property(f"{name}, {has_old}", counts)


def _commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(found, *names, name)


def test_every_verb_that_writes_is_interrupted_here() -> None:
    commands = dict(_commands(main))
    tried = {name for name in commands if any(f"{verb} ".startswith(f"{name} ") for verb in VERBS)}
    assert tried == {name for name, command in commands.items() if writes(name, command)}


def _few(measure: Measure) -> list[Fault]:
    size = measure.offsets[-1]
    assert measure.calls > 2
    return [
        *map(failing_call, (1, measure.calls // 2 + 1, measure.calls)),
        *map(full_disk, (0, size // 2, size - 1)),
        *map(killed_at, (measure.events // 3, 2 * measure.events // 3)),
    ]


def _sides(name: str) -> list[bool]:
    """Whether something was there before: where a verb only rewrites, always."""
    verb = VERBS[name]
    return [True] if verb.old is not None else [True, False] if verb.has_old else [False]


CASES = [(name, has_old) for name in VERBS for has_old in _sides(name)]


def _is_long(name: str, has_old: bool) -> bool:
    """The side of nothing is left to the full tier, where there is another."""
    return VERBS[name].is_slow or has_old != VERBS[name].has_old


@pytest.mark.heavy("one of them makes what the verbs read, each tries eight faults in processes")
@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "has_old"),
    [pytest.param(*case, marks=[pytest.mark.full] * _is_long(*case)) for case in CASES],
)
def test_a_verb_whose_writes_fail(name: str, has_old: bool, bench: MakeBench) -> None:
    bench(name, has_old=has_old).trials(_few)


@pytest.mark.parametrize(
    "name", ["core convert", "nac extract", "run", "fmt", "nac build external"]
)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errno.EACCES, 2), (errno.EROFS, 2), (errno.EISDIR, 2),
        (errno.EDQUOT, 1), (errno.EIO, 1), (errno.EFBIG, 1),
    ],
)  # fmt: skip
def test_what_the_exit_status_says(
    name: str, error: int, status: int, given: Path, capsys: Capsys, tmp_path: Path
) -> None:
    """A name that cannot be written is wrong usage; a machine that cannot write is not."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "f.nem").write_text(UGLY)
    before = names_in(out)
    arguments = [str(part) for part in VERBS[name].arguments(given, out, 1)]
    with failing(1, "open", error=error):
        outcome = invoke(capsys, *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.err.startswith("nacre: cannot write ")
    assert os.strerror(error) in outcome.err
    assert names_in(out) == before


def _failures(measure: Measure, most: int) -> Iterable[Fault]:
    """Every call that may fail; a disk that fills at every byte, or at every write and at some."""
    yield from map(failing_call, range(1, measure.calls + 1))
    *starts, size = measure.offsets
    sizes = range(size)
    if size > most:
        sizes = sorted({*starts, *random.Random(26).sample(range(size), min(SOME, size))})  # type: ignore[assignment]
    yield from map(full_disk, sizes)


def _kills(measure: Measure) -> Iterable[Fault]:
    """Moments of the writing, half of them by the clock."""
    chance = random.Random(27)
    for _ in range(SOME // 2):
        yield killed_at(chance.randint(1, measure.events))
        yield killed_after(chance.uniform(0, measure.seconds))


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "has_old"), CASES)
def test_a_verb_whose_disk_fills_at_every_moment(
    name: str, has_old: bool, bench: MakeBench, record: Record
) -> None:
    counts = bench(name, has_old=has_old).trials(
        lambda measure: _failures(measure, EVERY_BYTE if has_old else SOME)
    )
    assert counts["failed"] > counts["trials"] // 2
    record(name, has_old, counts)


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "has_old"), CASES)
def test_a_verb_that_is_killed_at_any_moment(
    name: str, has_old: bool, bench: MakeBench, record: Record
) -> None:
    counts = bench(name, has_old=has_old).trials(_kills)
    assert counts["trials"] == SOME
    assert counts["killed"] > SOME // 3
    record(name, has_old, counts)


@pytest.mark.full
@pytest.mark.parametrize("name", ["core convert", "nac build external", "compile"])
def test_several_writers_of_one_place_leave_one_state(
    name: str, bench: MakeBench, tmp_path: Path
) -> None:
    made = bench(name, has_old=True)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            _write_again(made, 1 + number % 2, tmp_path / f"scratch{number}")
        children.append(child)
    while children:
        assert made.verb.state(made.out) in (made.old, made.new, made.nothing)
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
    assert made.verb.state(made.out) in (made.old, made.new)


def _write_again(made: Bench, seed: int, scratch: Path) -> NoReturn:
    scratch.mkdir()
    for _ in range(5):
        run_apart(made.arguments(made.out, seed), scratch)
    os._exit(0)

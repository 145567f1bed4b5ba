"""Break functions of a room, one change at a time, and list the changes that no test notices.

usage: python -m tools.mutate_rooms [--room ROOM] [--count N] [--write FILE] [--compare FILE]

For each room, mutants are drawn among the functions that its tests reach: always the same ones, as
long as the functions are the same. Of the tests that reach a function the quickest and narrowest
run until one fails, and where none does, further cases of all that reach its file. `--write` keeps
the list; with `--compare`, its mutants are tried again, wherever their functions stand
now, and the exit status is 1 where one that was noticed is not any more. A survivor is a missing
test, or a change that changes nothing.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from tools.mutant_runs import MutantRuns, Outcome, Reach, collect_tests
from tools.mutants import Definition, Function, Mutant, functions_of, mutants_of

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "compile", "core", "nac")
CACHE = ROOT / ".cache" / "mutants"
MOST_TESTS = 15
MOST_FURTHER, MOST_SECONDS = 300, 120  # cases that a survivor meets, and what they may take
SLOWER = 10  # than without the change: then it does not end
NOTICED, MISSED = ("killed", "endless"), ("survived", "unreached")


@dataclass(frozen=True)
class Row:
    """A mutant and what became of it, as it is kept in a file."""

    room: str
    name: str
    shape: str
    operator: str
    index: int
    text: str
    outcome: Outcome | Literal["gone", "unreached"]
    test: str | None = None

    def __str__(self) -> str:
        by = f" ({self.test})" if self.test else ""
        return f"{self.outcome}: {self.room} {self.name}: {self.operator} {self.text}{by}"


Sources = Mapping[Function, Definition]


def sources_of(room: str) -> dict[Function, Definition]:
    """All functions of a room."""
    found: dict[Function, Definition] = {}
    for path in sorted((ROOT / "src" / "nacre" / room).rglob("*.py")):
        found |= functions_of(path)
    return found


def draw(sources: Sources, reach: Reach, count: int) -> list[Mutant]:
    """Mutants of functions that tests reach: of every operator about as many, one a function."""
    keys = {key for functions in reach.functions.values() for key in functions}
    by_operator: dict[str, list[Mutant]] = {}
    for function, definition in sources.items():
        if (str(function.path), function.name) in keys:
            for mutant in mutants_of(function, definition):
                by_operator.setdefault(mutant.operator, []).append(mutant)
    queues = [sorted(by_operator[o], key=_shuffled, reverse=True) for o in sorted(by_operator)]
    chosen: dict[Function, Mutant] = {}
    while any(queues) and len(chosen) < count:
        for queue in filter(None, queues):
            mutant = queue.pop()
            if len(chosen) < count:
                chosen.setdefault(mutant.function, mutant)
    return list(chosen.values())


def _shuffled(mutant: Mutant) -> bytes:
    return hashlib.sha256(repr(mutant.key).encode()).digest()


def find_again(row: Row, sources: Sources) -> Mutant | None:
    """The mutant of a row, where its function is still there: moved, or with another name."""
    same = [function for function in sources if function.shape == row.shape]
    named = [function for function in same if function.name == row.name]
    chosen = named or same
    if len(chosen) != 1:
        return None
    mutants = mutants_of(chosen[0], sources[chosen[0]])
    return next((m for m in mutants if (m.operator, m.index) == (row.operator, row.index)), None)


def try_mutant(room: str, mutant: Mutant, runs: MutantRuns, reach: Reach, most: int) -> Row:
    """What becomes of a mutant."""
    function = mutant.function
    tests = runs.known(reach.tests_of(function.path, function.name, most))
    seconds = sum(reach.seconds[test] for test in tests)
    verdict = runs.verdict(mutant, tests, int(SLOWER * (1 + seconds)))
    if verdict.outcome == "survived":
        word = function.name.rpartition(".")[2].strip("_")
        further = runs.further_cases(reach.tests_near(function.path), word, MOST_FURTHER)
        verdict = runs.sure_verdict(mutant, further, MOST_SECONDS)
    return Row(
        room, function.name, function.shape, mutant.operator, mutant.index, mutant.text,
        verdict.outcome if tests else "unreached", verdict.test,
    )  # fmt: skip


def mutate(room: str, asked: argparse.Namespace, old: Sequence[Row] | None) -> Iterator[Row]:
    """The mutants of a room, one after the other: those of a list, or as many as asked for."""
    rows: list[Row] = []

    def work(runs: MutantRuns) -> None:
        sources = sources_of(room)
        wanted = {f: d for f, d in sources.items() if fnmatch.fnmatch(f.name, asked.only)}
        reach = _reach(room, runs)
        if old is None:
            mutants = draw(wanted, reach, asked.count)
        else:
            again = {row: find_again(row, sources) for row in old}
            rows.extend(replace(row, outcome="gone") for row, m in again.items() if m is None)
            print(*rows, sep="\n", end="\n" if rows else "")
            mutants = [mutant for mutant in again.values() if mutant is not None]
        for mutant in mutants:
            rows.append(try_mutant(room, mutant, runs, reach, asked.tests))
            print(rows[-1], flush=True)

    collect_tests(ROOT / "tests" / room, ROOT / "src" / "nacre" / room, work)
    yield from rows


def _reach(room: str, runs: MutantRuns) -> Reach:
    """What the tests of a room reach; kept as long as neither the room nor its tests change."""
    folders = (ROOT / "src" / "nacre" / room, ROOT / "tests" / room)
    content = hashlib.sha256()
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        content.update(path.read_bytes())
    kept = CACHE / f"{room}-{content.hexdigest()[:16]}.json"
    if not kept.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(runs.reach()))
    return Reach.of(json.loads(kept.read_text()))


def losses(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """Mutants that were noticed and are not any more."""
    noticed = {_pair(row) for row in before if row.outcome in NOTICED}
    return [row for row in after if _pair(row) in noticed and row.outcome in MISSED]


def _pair(row: Row) -> tuple[str, str, int]:
    return (row.shape, row.operator, row.index)


def main(arguments: Sequence[str]) -> int:
    """Try mutants of the rooms; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--room", action="append", choices=ROOMS, help="all of them, if not given")
    parser.add_argument("--count", type=int, default=60, help="mutants of a room")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="functions of such names")
    parser.add_argument("--tests", type=int, default=MOST_TESTS, help="at most, for a mutant")
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the list goes")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="a list that was written")
    asked = parser.parse_args(arguments)
    old = None
    if asked.compare:
        old = [Row(**row) for row in json.loads(asked.compare.read_text())]
    rows: list[Row] = []
    for room in asked.room or ROOMS:
        rows += mutate(room, asked, old and [row for row in old if row.room == room])
        if asked.write:
            asked.write.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    lost = losses(old or (), rows)
    _summarise(rows, lost)
    return int(bool(lost))


def _summarise(rows: Sequence[Row], lost: Sequence[Row]) -> None:
    for room in dict.fromkeys(row.room for row in rows):
        counts = Counter(row.outcome for row in rows if row.room == room)
        print(f"{room}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    print(*(f"noticed before, not now: {row}" for row in lost), sep="\n", end="\n" if lost else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

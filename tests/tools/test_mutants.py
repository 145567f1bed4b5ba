"""Mutants are found again after a move, change what they say, and are noticed by tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.mutant_runs import Reach, replace_code
from tools.mutants import Mutant, functions_of, mutants_of, mutated_code
from tools.mutate_rooms import ROOT, Row, draw, find_again, losses

SOURCE = '''
class Box:
    def room(self, width: int, height: int) -> int:
        """How much fits."""
        if width < 0 or height < 0:
            raise ValueError(f"{width + 1} is no size")
        return width * height - 1


def total(boxes: list[Box]) -> int:
    found = 0
    for box in boxes:
        found += box.room(2, 3)
    return found
'''
RENAMED = SOURCE.replace("width", "wide").replace("box", "crate").replace("How much", "What")


def written(path: Path, text: str = SOURCE) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_changes_are_listed_by_operator_and_messages_are_left_alone(tmp_path: Path) -> None:
    functions = functions_of(written(tmp_path / "boxes.py"))
    found = {f.name: [(m.operator, m.text) for m in mutants_of(f, d)] for f, d in functions.items()}
    assert found["Box.room"] == [
        ("negate", "`width < 0 or height < 0` -> `not (width < 0 or height < 0)`"),
        ("boolean", "`width < 0 or height < 0` -> `width < 0 and height < 0`"),
        ("compare", "`width < 0` -> `width <= 0`"),
        ("number", "`0` -> `1`"),
        ("compare", "`height < 0` -> `height <= 0`"),
        ("number", "`0` -> `1`"),
        ("default", "`width * height - 1` -> `0`"),
        ("arithmetic", "`width * height - 1` -> `width * height + 1`"),
        ("swap", "`width * height - 1` -> `1 - width * height`"),
        ("arithmetic", "`width * height` -> `width + height`"),
        ("number", "`1` -> `2`"),
    ]
    assert ("drop", "`found += box.room(2, 3)` -> `pass`") in found["total"]


@pytest.mark.parametrize("text", [SOURCE, RENAMED])
def test_a_mutant_is_found_again_where_its_function_went(tmp_path: Path, text: str) -> None:
    before = functions_of(written(tmp_path / "boxes.py"))
    after = functions_of(written(tmp_path / "other" / "crates.py", "import sys\n" + text))
    for function, definition in before.items():
        for mutant in mutants_of(function, definition):
            again = find_again(row_of(mutant), after)
            assert again is not None
            assert again.function.path.name == "crates.py"
            assert (again.operator, again.index) == (mutant.operator, mutant.index)


def test_a_function_that_does_something_else_is_gone(tmp_path: Path) -> None:
    before = functions_of(written(tmp_path / "boxes.py"))
    after = functions_of(written(tmp_path / "new.py", SOURCE.replace("- 1", "- 2")))
    rows = {f.name: row_of(next(mutants_of(f, d))) for f, d in before.items()}
    assert find_again(rows["Box.room"], after) is None
    assert find_again(rows["total"], after) is not None


def row_of(mutant: Mutant, outcome: str = "killed") -> Row:
    function = mutant.function
    return Row(
        "kernels", function.name, function.shape, mutant.operator, mutant.index, mutant.text,
        outcome,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.full  # every object of the process is looked at, for every mutant
def test_every_mutant_has_code_that_takes_the_place_of_the_function(tmp_path: Path) -> None:
    path = written(tmp_path / "boxes.py")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    room, results = names["Box"].room, {}
    original = room.__code__
    for mutant in all_mutants(path, "Box.room"):
        assert replace_code(mutated_code(mutant), path) == 1
        results[mutant.operator, mutant.index] = outcome(lambda: room(None, 2, 3))
        room.__code__ = original
    assert results["swap", 0] == -5
    assert results["arithmetic", 0] == 7
    assert results["default", 0] == 0
    assert results["negate", 0] is ValueError
    assert results["boolean", 0] == 5  # a survivor, for a test with sound sizes alone


def outcome(call: Callable[[], Any]) -> object:
    try:
        return call()
    except ValueError as error:
        return type(error)


def all_mutants(path: Path, name: str) -> list[Mutant]:
    return [m for f, d in functions_of(path).items() if f.name == name for m in mutants_of(f, d)]


def test_code_that_closes_over_other_names_is_not_put_in(tmp_path: Path) -> None:
    text = """
def outer(a: int) -> Callable[[], int]:
    def inner() -> int:
        seen.append(a)
        return 1
    return inner
"""
    path = written(tmp_path / "closures.py", text)
    dropped = next(m for m in all_mutants(path, "outer") if m.operator == "drop")
    assert [name for name, _ in mutated_code(dropped)] == ["outer"]


def test_the_narrowest_and_quickest_tests_come_first() -> None:
    here = ("a.py", "f")
    reach = Reach.of([
        ("slow", 2.0, [here]),
        ("broad", 0.1, [here, ("a.py", "g"), ("a.py", "h")]),
        ("best", 0.1, [here]),
        ("elsewhere", 0.0, [("a.py", "g")]),
    ])  # fmt: skip
    assert reach.tests_of(Path("a.py"), "f", 2)[0] == "best"
    assert set(reach.tests_of(Path("a.py"), "f", 9)) == {"best", "broad", "slow"}


def test_mutants_are_drawn_alike_of_every_operator_and_one_a_function(tmp_path: Path) -> None:
    sources = functions_of(written(tmp_path / "boxes.py"))
    reach = Reach.of([("test", 0.1, [(str(tmp_path / "boxes.py"), "Box.room")])])
    (only,) = draw(sources, reach, 60)
    assert only.function.name == "Box.room"  # nothing reaches the other
    assert draw(sources, reach, 60) == [only]


def test_what_was_noticed_and_is_not_any_more_is_lost(tmp_path: Path) -> None:
    first, second, *_ = all_mutants(written(tmp_path / "boxes.py"), "Box.room")
    before = [row_of(first), row_of(second, "survived")]
    assert losses(before, [row_of(first, "survived"), row_of(second, "survived")]) == [
        row_of(first, "survived")
    ]
    assert losses(before, [row_of(first, "endless"), row_of(second)]) == []
    assert losses(before, [row_of(first, "gone")]) == []


ATTACK = """
import json, sys
from pathlib import Path
from tools.mutant_runs import Reach, collect_tests
from tools.mutants import functions_of, mutants_of

folder = Path(sys.argv[1])
path = folder / "boxes.py"

def work(runs):
    reach = Reach.of(runs.reach())
    rows = []
    for function, definition in functions_of(path).items():
        tests = reach.tests_of(path, function.name, 9)
        for mutant in mutants_of(function, definition):
            verdict = runs.verdict(mutant, tests, 1)
            rows.append((function.name, mutant.operator, mutant.index, verdict.outcome))
    (folder / "rows.json").write_text(json.dumps(rows))

sys.exit(collect_tests(folder, folder, work))
"""
TEST = """
from boxes import Box, count_down

def test_room():
    assert Box().room(2, 3) == 5

def test_count_down():
    assert count_down(3) == 0
"""
COUNT_DOWN = """
def count_down(count: int) -> int:
    while count > 0:
        count -= 1
    return count
"""


@pytest.mark.heavy("it collects tests in a process of its own, and forks one for each mutant")
def test_tests_notice_mutants_in_processes_of_their_own(tmp_path: Path) -> None:
    written(tmp_path / "boxes.py", SOURCE + COUNT_DOWN)
    written(tmp_path / "test_boxes.py", TEST)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-c", ATTACK, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=False
    )
    assert done.returncode in (0, 5), done.stdout  # 5: pytest itself ran none
    found = {tuple(row[:3]): row[3] for row in json.loads((tmp_path / "rows.json").read_text())}
    assert found["Box.room", "swap", 0] == "killed"
    assert found["Box.room", "compare", 0] == "survived"
    assert found["count_down", "drop", 0] == "endless"
    assert found["count_down", "compare", 0] == "killed"

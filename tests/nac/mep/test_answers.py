"""What a plan asks for, and what happens where nobody answers."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac.mep import Machine, assemble

THREE = """src_user_prompt %a, int, "a"
src_user_prompt %b, int, "b"
src_user_prompt %a, int, "a"
src_user_prompt %c, int, "c"
"""


@pytest.mark.parametrize(
    ("inputs", "missing"),
    [
        (None, ["a", "b", "c"]),
        ({}, ["a", "b", "c"]),
        ({"b": 1}, ["a", "c"]),
        ({"a": 1, "b": 1, "c": 1}, []),
        ([1], ["b", "a", "c"]),
        ([1, 2, 3], ["c"]),
        ([1, 2, 3, 4], []),
    ],
)
def test_all_missing_answers_are_told_before_anything_runs(
    inputs: Any,  # noqa: ANN401
    missing: list[str],
) -> None:
    machine = Machine(assemble(THREE))
    told: list[str] = []
    try:
        machine.run(inputs)
    except InputError as error:
        told = [found.message.rpartition(" ")[2].strip("`") for found in error.diagnostics]
        assert machine.steps == 0
    assert told == missing


def test_a_question_that_may_not_come_needs_no_answer() -> None:
    text = """src_constant %yes, true
    branch_if %yes, end
    src_user_prompt %a, int, "a"
    end: halt
    """
    assert Machine(assemble(text)).run() == []

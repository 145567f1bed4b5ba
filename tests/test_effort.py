"""Every case has its turn in the tier of CI: once in as many commits as its mark says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import effort

CASES = [f"tests/test_it.py::test_it[{number}]" for number in range(40)]


def taken(monkeypatch: pytest.MonkeyPatch, commit: int, mark: pytest.MarkDecorator) -> list[str]:
    """The cases that the tier of CI has at a commit."""
    monkeypatch.setattr(effort, "commit_number", lambda: commit)
    full: list[str] = []
    items: list[Any] = [
        SimpleNamespace(
            nodeid=name,
            iter_markers=lambda _: [mark.mark],
            add_marker=lambda _, name=name: full.append(name),
        )
        for name in CASES
    ]
    effort.leave_to_full_tier(items)
    return [name for name in CASES if name not in full]


def test_every_case_has_its_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [taken(monkeypatch, commit, pytest.mark.sampled(3)) for commit in range(70, 73)]
    assert sorted(name for turn in turns for name in turn) == sorted(CASES)
    assert all(turns)


def test_cases_that_share_something_have_their_turn_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = pytest.mark.sampled(3, together=True)
    turns = [taken(monkeypatch, commit, mark) for commit in range(70, 73)]
    assert sorted(turns) == [[], [], CASES]

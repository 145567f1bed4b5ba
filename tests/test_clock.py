"""The clock of the tests: one slow go is forgiven, slowness is not."""

from __future__ import annotations

import time

import pytest

from tests import clock


def _taking(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    ticks = [0.0]
    for each in seconds:
        ticks += [ticks[-1] + each] * 2
    monkeypatch.setattr(time, "process_time", iter(ticks).__next__)


def test_one_slow_go_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    goes: list[str] = []
    _taking(monkeypatch, 9.0, 0.1)
    clock.in_time(1)(goes.append)("go")
    assert goes == ["go"] * 2


def test_what_is_always_slow_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    _taking(monkeypatch, 2.0, 1.5, 1.0)
    with pytest.raises(AssertionError, match=r"abs took \[2.0, 1.5, 1.0\] seconds, at most 1 "):
        clock.in_time(1)(abs)(-3)

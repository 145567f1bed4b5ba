"""When functions become machine code: not before their work has taken as long as that takes."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.base.loops import machine_code
from nacre.base.loops.machine_code import Compilable


class Compiler:
    """Counts what it is asked for."""

    def __init__(self, *, is_kept: bool) -> None:
        self.asked, self.compiled, self.is_kept = 0, list[str](), is_kept

    def __call__(self, function: object) -> Any:  # noqa: ANN401 - as numba's own type
        self.asked += 1
        return self

    def compile(self, signature: str) -> None:
        self.compiled.append(signature)


def work() -> None:
    """What is to be compiled."""


def compiler(monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> Compiler:
    found = Compiler(is_kept=is_kept)
    monkeypatch.setattr(machine_code, "_ALL", [])
    monkeypatch.setattr(machine_code, "is_available", lambda: True)
    monkeypatch.setattr(machine_code, "compiled_once", found)
    monkeypatch.setattr(machine_code, "is_kept", lambda one: one.is_kept)
    return found


def test_what_is_kept_is_loaded_after_a_second_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = compiler(monkeypatch, is_kept=True), Compilable(work, "void()")
    made.spend(0.9)
    assert found.asked == 0
    made.spend(0.2)
    assert made.load()
    assert found.compiled == ["void()"]


def test_what_is_not_kept_is_compiled_after_three(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = compiler(monkeypatch, is_kept=False), Compilable(work, "void()")
    for _ in range(29):
        made.spend(0.1)
    assert made.code is None
    assert found.asked == 1
    made.spend(0.2)
    assert found.compiled == ["void()"]


def test_all_that_may_be_compiled_can_be_loaded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiler(monkeypatch, is_kept=False)
    for signature in ("void()", "int64()"):
        Compilable(work, signature)
    assert machine_code.load_all()
    assert found.compiled == ["void()", "int64()"]


def test_nothing_is_loaded_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = compiler(monkeypatch, is_kept=True), Compilable(work, "void()")
    monkeypatch.setattr(machine_code, "is_available", lambda: False)
    assert not made.load()
    assert found.asked == 0


def test_a_compiler_that_fails_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fail(function: object) -> None:
        asked.append(function)
        raise ImportError("it needs another NumPy")

    compiler(monkeypatch, is_kept=True)
    monkeypatch.setattr(machine_code, "compiled_once", fail)
    made = Compilable(work, "void()")
    for _ in range(10):
        made.spend(1.0)
    assert not made.load()
    assert len(asked) == 1

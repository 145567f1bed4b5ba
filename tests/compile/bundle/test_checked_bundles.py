"""Bundles that were checked before: not checked again, and nobody else's word is taken for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.storage import checked_bundles as marks
from nacre.compile.storage import folder as storage
from nacre.compile.storage import user_cache
from nacre.compile.storage.user_cache import VARIABLE, code_digest
from nacre.core.builder import Builder
from nacre.nem.api import programs
from nacre.nem.checks.engine import CheckOptions, CheckResult, ResolvedSource, check_resolved

X = {"x": np.linspace(-1, 1, 64 * 32, dtype=np.float32).reshape(64, 32)}


@pytest.fixture(scope="module")
def made() -> Bundle:
    builder = Builder()
    x = builder.input("x", "f32", (64, 32))
    weights = np.linspace(-1, 1, 32 * 48, dtype=np.float32).reshape(32, 48)
    product = builder.add("MatMul", x, builder.constant(weights))
    return nacre.compile(builder.module(builder.add("Relu", product)), "npm4k")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache in which small programs are worth a mark, too."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "WORTH_A_MARK", 0)
    return tmp_path / "cache" / "checked"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that are checked."""
    found: list[str] = []

    def check_and_note(resolved: ResolvedSource, options: CheckOptions) -> CheckResult:
        found.append("checked")
        return check_resolved(resolved, options)

    monkeypatch.setattr(programs, "check_resolved", check_and_note)
    return found


def fresh(folder: Path, made: Bundle) -> Path:
    """A bundle whose program nobody is known to have checked."""
    made.save(folder)
    return folder


def test_a_bundle_is_checked_once(
    tmp_path: Path, made: Bundle, cache: Path, checks: list[str]
) -> None:
    folder = fresh(tmp_path / "b", made)
    first = Bundle.load(folder, cache=True)
    assert len(checks) == 1
    again = Bundle.load(folder, cache=True)
    expected = first.run(X)["output0"]
    assert np.array_equal(again.run(X)["output0"], expected)
    assert again.time().cycles == first.time().cycles
    assert len(checks) == 1
    assert again.problems == first.problems == ()  # who asks for findings gets them
    assert len(checks) == 2


def test_what_was_checked_when_it_was_compiled_is_not_checked_when_it_is_loaded(
    tmp_path: Path, made: Bundle, cache: Path, checks: list[str]
) -> None:
    made.save(tmp_path / "b", cache=True)
    Bundle.load(tmp_path / "b", cache=True).run(X)
    assert not checks
    assert len([e for e in cache.iterdir() if e.name != "secret"]) == 1


def test_python_remembers_only_where_it_is_asked_to(
    tmp_path: Path, made: Bundle, cache: Path, checks: list[str]
) -> None:
    folder = fresh(tmp_path / "b", made)
    Bundle.load(folder)
    assert not cache.exists()
    Bundle.load(folder, cache=True)
    Bundle.load(folder)
    assert len(checks) == 3


def test_short_programs_are_checked_at_once(
    tmp_path: Path, made: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WORTH_A_MARK", len(made.program) + 1)
    made.save(tmp_path / "b", cache=True)
    Bundle.load(tmp_path / "b", cache=True)
    assert not cache.exists()


def test_a_bundle_that_was_signed_again_is_checked_again(
    tmp_path: Path, made: Bundle, cache: Path
) -> None:
    made.save(tmp_path / "b", cache=True)
    broken = re.sub(r"deps=\[\w+\]", "deps=[]", made.program)
    assert broken != made.program
    other = Bundle(made.source, broken, made.weights, made.manifest, made.legal, made.parts)
    other.save(tmp_path / "b", cache=True)
    for _ in range(2):  # what has errors is not marked
        with pytest.raises(InputError) as caught:
            Bundle.load(tmp_path / "b", cache=True)
        assert caught.value.diagnostics[0].code == "CMP07"


def copy_marks(cache: Path) -> None:
    """Marks of the same bundle that another cache has made."""
    secret = (cache / "secret").read_bytes()
    (cache / "secret").write_bytes(bytes(255 - byte for byte in secret))


def use_another_nacre(_: Path) -> None:
    code_digest.cache_clear()


def forget(cache: Path) -> None:
    for path in cache.iterdir():
        path.unlink()


def cut_the_secret(cache: Path) -> None:
    (cache / "secret").write_bytes(b"short")


@pytest.mark.parametrize("change", [copy_marks, use_another_nacre, forget, cut_the_secret])
def test_marks_of_others_are_not_believed(
    change: Callable[[Path], None],
    tmp_path: Path,
    made: Bundle,
    cache: Path,
    checks: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made.save(tmp_path / "b", cache=True)
    change(cache)
    if change is use_another_nacre:
        monkeypatch.setattr(marks, "code_digest", lambda: b"another")
    Bundle.load(tmp_path / "b", cache=True)
    assert len(checks) == 1
    Bundle.load(tmp_path / "b", cache=True)
    assert len(checks) == 1  # its own is


def test_marks_that_were_not_used_for_longest_go_first(
    tmp_path: Path, made: Bundle, cache: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "_MOST_MARKS", 1)
    made.save(tmp_path / "b", cache=True)
    for path in cache.iterdir():
        os.utime(path, (1, 1))
    found = marks.checked_bundles()
    assert found is not None
    found.add(b"another manifest")
    assert found.has(b"another manifest")
    Bundle.load(tmp_path / "b", cache=True)
    assert len(checks) == 1


@pytest.mark.parametrize("value", ["", "file/in"])
def test_no_cache_is_no_reason_to_fail(
    value: str, tmp_path: Path, made: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(storage, "WORTH_A_MARK", 0)
    monkeypatch.setenv(VARIABLE, str(tmp_path / value) if value else "")
    made.save(tmp_path / "b", cache=True)
    assert Bundle.load(tmp_path / "b", cache=True).run(X)["output0"].shape == (64, 48)


def test_a_change_of_any_room_makes_another_nacre() -> None:
    code_digest.cache_clear()
    known = code_digest().decode()
    root = Path(user_cache.__file__).parents[2]
    rooms = {path.parent.relative_to(root).parts[0] for path in root.glob("*/*.py")}
    assert {"kernels", "nem", "core", "compile", "base"} <= rooms
    assert not [room for room in rooms if f"'{room}/" not in known]

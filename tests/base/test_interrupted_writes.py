"""Writes that fail or are killed: the old state is whole, or the new one."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre import core, nac
from nacre.base.files import write_together, write_whole
from nacre.compile.bundle.bundle import Bundle
from nacre.core.module import Module
from tests.base.faults import CALLS, failing, full_after
from tests.effort import PROFILE

State = tuple[bytes, ...]


def module_of(seed: int) -> Module:
    """Models of one structure and other weights: a mixture of two would run."""
    from nacre.core.builder import Builder

    build = Builder()
    x = build.input("x", "f32", (4, 16))
    weights = np.random.default_rng(seed).normal(size=(16, 16)).astype(np.float32)
    return build.module(build.add("Linear", x, build.constant(weights), build.constant(weights[0])))


EVERY_BYTE, SOME = (4096, 200) if PROFILE == "fuzz" else (64, 20)

BUNDLES = {seed: nacre.compile(module_of(seed), "npm4k") for seed in (1, 2)}


def _save_core(folder: Path, seed: int) -> None:
    core.save(module_of(seed), folder / "m.core")


def _save_external(folder: Path, seed: int) -> None:
    nac.save(nac.build(module_of(seed)), folder / "m.nac", weights="external")


def _save_internal(folder: Path, seed: int) -> None:
    nac.save(nac.build(module_of(seed)), folder / "m.nac")


def _save_bundle(folder: Path, seed: int) -> None:
    BUNDLES[seed].save(folder / "b")


def _save_several(folder: Path, seed: int) -> None:
    with write_together():
        for name in ("a.npy", "b.npy"):
            write_whole(folder / name, [str(seed) * 500])


def _computed(model: Any) -> bytes:  # noqa: ANN401 - what evaluates inputs
    x = {"x": np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)}
    found = model(x)
    return bytes(next(iter(found.values() if isinstance(found, dict) else found)).tobytes())


def _core_state(folder: Path) -> State:
    path = folder / "m.core"
    return (_computed(lambda x: core.evaluate(core.load(path), x)),) if path.exists() else ()


def _nac_state(folder: Path) -> State:
    path = folder / "m.nac"
    return (_computed(nac.load(path).run),) if path.exists() else ()


def _bundle_state(folder: Path) -> State:
    if not (folder / "b" / "manifest.json").exists():
        return ()
    found = Bundle.load(folder / "b")
    return (_computed(lambda x: core.evaluate(found.source, x)), found.weights)


def _several_state(folder: Path) -> State:
    return tuple(p.read_bytes() for p in (folder / "a.npy", folder / "b.npy") if p.exists())


WRITERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], State]]] = {
    "core": (_save_core, _core_state),
    "nac with external weights": (_save_external, _nac_state),
    "nac": (_save_internal, _nac_state),
    "bundle": (_save_bundle, _bundle_state),
    "several files": (_save_several, _several_state),
}


def _states(
    name: str, tmp_path: Path
) -> tuple[Callable[[Path, int], None], Callable[[Path], State], State, State]:
    save, state = WRITERS[name]
    found = []
    for seed in (1, 2):
        folder = tmp_path / f"only{seed}"
        folder.mkdir()
        save(folder, seed)
        found.append(state(folder))
    assert found[0] != found[1]
    return save, state, found[0], found[1]


@pytest.mark.parametrize("has_old", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "several files",
        *(
            pytest.param(name, marks=(pytest.mark.full, pytest.mark.fuzz))
            for name in ("core", "nac with external weights", "nac", "bundle")
        ),
    ],
)
def test_every_call_that_fails_leaves_one_state(name: str, has_old: bool, tmp_path: Path) -> None:
    save, state, old, new = _states(name, tmp_path)
    failed = 0
    for call in CALLS:
        for number in range(1, 40):
            folder = tmp_path / f"{call}{number}"
            folder.mkdir()
            if has_old:
                save(folder, 1)
            before = set(os.listdir(folder))
            with failing(number, call) as count:
                try:
                    save(folder, 2)
                except OSError:
                    failed += 1
                    is_new = state(folder) == new
                    assert is_new or state(folder) == (old if has_old else ())
                    if not is_new:  # and nothing is left behind
                        assert set(os.listdir(folder)) == before
            if count[0] < number:
                assert state(folder) == new
                break
    assert failed > 2


def _filled(name: str, tmp_path: Path, sizes: Callable[[int], list[int]]) -> None:
    save, state, old, new = _states(name, tmp_path)
    only = tmp_path / "only2"
    total = sum(p.stat().st_size for p in only.rglob("*") if p.is_file())
    seen = set()
    for has_old in (True, False):
        for size in sizes(total):
            folder = tmp_path / f"{has_old}{size}"
            folder.mkdir()
            if has_old:
                save(folder, 1)
            with full_after(size):
                try:
                    save(folder, 2)
                except OSError:
                    assert state(folder) == (old if has_old else ())
                else:
                    assert state(folder) == new
            seen.add(state(folder) == new)
    assert seen == {True, False}


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fills(name: str, tmp_path: Path) -> None:
    _filled(name, tmp_path, lambda total: [0, 1, total // 3, total - 1, total + 500])


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fills_at_every_byte(name: str, tmp_path: Path) -> None:
    chance = random.Random(24)

    def sizes(total: int) -> list[int]:
        some = range(total) if total <= EVERY_BYTE else chance.sample(range(total), SOME)
        return [*some, total + 500]

    _filled(name, tmp_path, sizes)


def _killed(name: str, tmp_path: Path, times: int) -> None:
    save, state, old, new = _states(name, tmp_path)
    chance = random.Random(25)
    folder = tmp_path / "killed"
    folder.mkdir()
    save(folder, 1)
    calls = 40
    for _ in range(times):
        child = os.fork()
        if child == 0:  # one of the two states again and again, until it is killed
            left = [chance.randrange(1, calls)]

            def counted(real: Any) -> Any:  # noqa: ANN401
                def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401
                    left[0] -= 1  # noqa: B023 - of this child alone
                    if left[0] == 0:  # noqa: B023
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **given)

                return call

            for one in (*CALLS, "unlink"):
                setattr(os, one, counted(getattr(os, one)))
            try:
                save(folder, chance.choice((1, 2)))
            finally:
                os._exit(0)
        chance.random()
        os.waitpid(child, 0)
        assert state(folder) in (old, new)


@pytest.mark.parametrize("name", ["core", "nac with external weights", "bundle"])
def test_a_writer_that_is_killed(name: str, tmp_path: Path) -> None:
    _killed(name, tmp_path, 8)


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["core", "nac with external weights", "nac", "bundle"])
def test_a_writer_that_is_killed_at_many_moments(name: str, tmp_path: Path) -> None:
    _killed(name, tmp_path, SOME)


def test_two_compilers_in_one_folder_leave_one_bundle(tmp_path: Path) -> None:
    states = set()
    for seed in (1, 2):
        BUNDLES[seed].save(tmp_path / f"only{seed}" / "b")
        states.add(_bundle_state(tmp_path / f"only{seed}"))
    children = []
    for seed in (1, 2, 1, 2):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(4):
                    BUNDLES[seed].save(tmp_path / "b")
            finally:
                os._exit(0)
        children.append(child)
    for _ in range(20):  # readers meet whole bundles all the time
        assert _bundle_state(tmp_path) in {*states, ()}
    for child in children:
        os.waitpid(child, 0)
    assert _bundle_state(tmp_path) in states

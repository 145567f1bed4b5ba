"""Plans that were made before: taken where all is as it was, and believed from nobody else."""

from __future__ import annotations

import importlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.legalise.lowerings import (
    LOWERINGS,
    Lowering,
    register_lowering,
    unregister_lowering,
)
from nacre.compile.options import Options
from nacre.compile.pipeline import compile_module
from nacre.compile.plan_cache.cache import PlanCache, compile_or_recall, default_cache
from nacre.compile.plan_cache.key import plan_key
from nacre.compile.storage.user_cache import VARIABLE
from nacre.compile.target import target_of
from nacre.core.builder import Builder
from nacre.core.module import Module

TARGET = target_of("npm4k")
OPTIONS = Options(TARGET.device)
KEY = "a" * 64
plan_cache = importlib.import_module("nacre.compile.plan_cache.cache")


def network(scale: float = 1.0) -> Module:
    builder = Builder()
    weights = np.linspace(-1, scale, 32 * 48, dtype=np.float32).reshape(32, 48)
    x = builder.input("x", "f32", (64, 32))
    return builder.module(builder.add("Relu", builder.add("MatMul", x, builder.constant(weights))))


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return compile_module(network(), TARGET, OPTIONS)


@pytest.fixture
def plans(tmp_path: Path) -> PlanCache:
    return PlanCache(tmp_path / "plans")


def test_a_plan_is_made_once(plans: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cache, "_WORTH_KEEPING_SECONDS", 0)
    module = network()
    first = compile_or_recall(module, TARGET, OPTIONS, plans)
    monkeypatch.setattr(plan_cache, "compile_module", None)
    again = compile_or_recall(module, TARGET, OPTIONS, plans)
    assert again.source is module
    assert again.has_reference
    assert (again.program, again.weights) == (first.program, first.weights)
    assert again.manifest == first.manifest
    assert again.legal == first.legal
    x = {"x": np.linspace(-1, 1, 64 * 32, dtype=np.float32).reshape(64, 32)}
    assert np.array_equal(again.run(x)["output0"], first.run(x)["output0"])


def test_what_is_made_faster_than_it_is_looked_up_is_not_kept(
    plans: PlanCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_cache, "_WORTH_KEEPING_SECONDS", 1e9)
    compile_or_recall(network(), TARGET, OPTIONS, plans)
    assert not plans.folder.exists()


def test_keys_follow_from_all_that_plans_depend_on() -> None:
    other, run = target_of("npm16k"), {"x": np.ones((64, 32), np.float32)}
    i8 = replace(OPTIONS, precision="i8", calibration=[run])
    named = network()
    keys = [
        plan_key(network(), TARGET, OPTIONS),
        plan_key(network(0.5), TARGET, OPTIONS),
        plan_key(replace(named, outputs=named.outputs * 2), TARGET, OPTIONS),
        plan_key(network(), other, Options(other.device)),
        plan_key(network(), TARGET, replace(OPTIONS, disabled=frozenset({"groups"}))),
        plan_key(network(), TARGET, replace(OPTIONS, ddr_bytes=1 << 20)),
        plan_key(network(), TARGET, replace(OPTIONS, io_layout="native")),
        plan_key(network(), TARGET, i8),
        plan_key(network(), TARGET, replace(i8, calibration=[{"x": run["x"] * 2}])),
        plan_key(network(), TARGET, replace(i8, calibration=[run, run])),
        plan_key(network(), TARGET, replace(i8, precision_map={"a": "f16", "b": "i8"})),
        plan_key(network(), TARGET, replace(i8, precision_map={"b": "i8", "a": "f16"})),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert keys[0] == plan_key(network(), target_of("npm4k"), Options(TARGET.device))


def test_forms_from_outside_have_no_key() -> None:
    usual = LOWERINGS["ReluNan", ""]
    register_lowering(replace_attributes(usual))
    try:
        assert plan_key(network(), TARGET, OPTIONS) is None
    finally:
        unregister_lowering("ReluNan")
    assert plan_key(network(), TARGET, OPTIONS) is not None


def replace_attributes(row: Lowering) -> Lowering:
    return Lowering(row.opcode, row.kind, row.nem, row.op, lambda _: {})


def test_of_another_nacre_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = importlib.import_module("nacre.compile.plan_cache.key")
    before = plan_key(network(), TARGET, OPTIONS)
    monkeypatch.setattr(keys, "code_digest", lambda: b"another")
    assert plan_key(network(), TARGET, OPTIONS) != before


@pytest.mark.parametrize("name", ["manifest.json", "model.nem", "seal"])
def test_what_is_damaged_counts_as_not_there(
    plans: PlanCache, model: CompiledModel, name: str
) -> None:
    plans.store(KEY, model)
    assert plans.load(KEY, model.source) is not None
    path = plans.folder / KEY / name
    path.write_bytes(path.read_bytes()[:-3] + b"  \n")
    assert plans.load(KEY, model.source) is None
    path.unlink()
    assert plans.load(KEY, model.source) is None


def test_an_entry_that_another_cache_wrote_is_not_believed(
    plans: PlanCache, model: CompiledModel, tmp_path: Path
) -> None:
    stranger = PlanCache(tmp_path / "stranger")
    stranger.store(KEY, model)
    plans.store("b" * 64, model)
    os.rename(stranger.folder / KEY, plans.folder / KEY)
    assert plans.load(KEY, model.source) is None


def test_an_entry_of_one_key_is_none_of_another(plans: PlanCache, model: CompiledModel) -> None:
    plans.store(KEY, model)
    os.rename(plans.folder / KEY, plans.folder / ("b" * 64))
    assert plans.load("b" * 64, model.source) is None


def test_what_was_not_used_for_longest_goes_first(plans: PlanCache, model: CompiledModel) -> None:
    plans.store(KEY, model)
    size = sum(file.stat().st_size for file in (plans.folder / KEY).iterdir())
    small = PlanCache(plans.folder, 2 * size + size // 2)
    small.store("b" * 64, model)
    os.utime(plans.folder / KEY, (1, 1))
    os.utime(plans.folder / ("b" * 64), (2, 2))
    assert small.load(KEY, model.source) is not None
    small.store("c" * 64, model)
    assert {e.name[0] for e in plans.folder.iterdir() if e.is_dir()} == {"a", "c"}


def test_other_things_in_the_folder_stay(plans: PlanCache, model: CompiledModel) -> None:
    plans.store(KEY, model)
    (plans.folder / "notes").mkdir()
    PlanCache(plans.folder, 0).store("b" * 64, model)
    assert {e.name for e in plans.folder.iterdir()} == {"notes", "secret"}


def test_writers_and_readers_at_once(plans: PlanCache, model: CompiledModel) -> None:
    found: list[CompiledModel | None] = []

    def work() -> None:
        for _ in range(3):
            plans.store(KEY, model)
            found.append(plans.load(KEY, model.source))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 9
    assert {one.program for one in found if one is not None} == {model.program}
    assert plans.load(KEY, model.source) is not None


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(
    model: CompiledModel, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    plans = PlanCache(tmp_path / "file" / "plans")
    plans.store(KEY, model)
    assert plans.load(KEY, model.source) is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    found = default_cache()
    assert found is not None
    assert found.folder == tmp_path / "plans"
    monkeypatch.setenv(VARIABLE, "")
    assert default_cache() is None
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "home"))
    found = default_cache()
    assert found is not None
    assert found.folder == tmp_path / "home" / "nacre" / "plans"


def test_python_keeps_plans_only_where_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(plan_cache, "_WORTH_KEEPING_SECONDS", 0)
    nacre.compile(network(), "npm4k")
    nacre.compile(network(), "npm4k", cache=True, on_stage=lambda _name, _result: None)
    assert not list(tmp_path.iterdir())
    nacre.compile(network(), "npm4k", cache=True)
    assert len([e for e in (tmp_path / "plans").iterdir() if e.is_dir()]) == 1


@pytest.mark.parametrize("left", [b"", b"\0" * 31, b"\0" * 33])
def test_a_secret_that_was_written_in_part_is_made_again(
    plans: PlanCache, model: CompiledModel, left: bytes
) -> None:
    """A disk that was full once does not end the cache."""
    plans.folder.mkdir()
    (plans.folder / "secret").write_bytes(left)
    plans.store(KEY, model)
    assert plans.load(KEY, model.source) is not None
    assert not list(plans.folder.glob(".nacre-*.tmp"))

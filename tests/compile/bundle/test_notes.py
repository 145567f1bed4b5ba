"""What a plan does otherwise than the model is said: numbers that do not fit, data unused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.cli.exit_status import OK, WRONG_USAGE
from nacre.cli.main import _exit_status
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import Array, linear_model, values

Body = Callable[[Builder], int]


def module_of(body: Body) -> Module:
    builder = Builder()
    return builder.module(body(builder))


def notes_of(body: Body) -> tuple[str, ...]:
    return nacre.compile(module_of(body), "npm4k").manifest.notes


def large(builder: Builder) -> int:
    x = builder.input("x", "i64", (3,))
    return builder.add("Concat", x, builder.constant(np.array([7, 1 << 40])), axis=0)


def filled(builder: Builder) -> int:
    return builder.add("Pad", builder.input("x", "i64", (3,)), pads=(1, 1), value=float(1 << 40))


def cast(builder: Builder) -> int:
    return builder.add("Cast", builder.input("x", "i64", (3,)), to="f32")


def added(builder: Builder) -> int:
    x = builder.input("x", "i64", (3,))
    return builder.add("BinOp", x, builder.constant(np.array([1, 2, 3])), op="Add")


def known(builder: Builder) -> int:
    x = builder.input("x", "f32", (3,))
    whole = builder.add("Cast", builder.constant(np.array([1, 100_000, 3])), to="f32")
    return builder.add("BinOp", x, whole, op="Min")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (large, "1 element of constant %1 lies beyond i32; it is held at 2.14748e+09"),
        (filled, "`Pad` %1 fills with 1.09951e+12, which lies beyond i32"),
        (cast, "Cast %1: integers beyond 65504 become infinite in f16"),
        (added, "1 operation is done on integers of 32 bits instead of 64"),
        (known, "1 element of constant %2 lies beyond f16; it is held at 65504"),
    ],
)
def test_integers_that_may_not_fit_are_noted(body: Body, told: str) -> None:
    (note,) = notes_of(body)
    assert note.startswith(told)


def test_integers_of_floats_that_hold_them_are_not_noted() -> None:
    assert notes_of(lambda b: b.add("Cast", b.input("x", "u8", (3,)), to="f32")) == ()


def test_clips_with_one_bound_share_a_note() -> None:
    """One line for all of them, and none for what is never infinite."""

    def clipped(builder: Builder, *, bounded: bool = False) -> int:
        x = builder.input("x", "f32", (2, 4))
        for bound in (0.5, 0.25, 0.125):
            x = builder.add("Unary", x, op="Sigmoid") if bounded else builder.add("Exp", x)
            x = builder.add("Clip", x, min=bound)
        return x

    assert notes_of(clipped) == ("`Clip` %2 and 2 more hold infinities at 65504 as well",)
    assert notes_of(lambda b: clipped(b, bounded=True)) == ()


# Indices


@given(
    axis=st.integers(0, 1),
    less=st.integers(0, 5),
    picked=st.lists(st.integers(0, 4), min_size=1, max_size=6),
)
def test_computed_indices_count_from_the_end_where_they_are_negative(
    axis: int, less: int, picked: list[int]
) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (5, 5))
    i = builder.input("i", "i64", (len(picked),))
    moved = builder.add("BinOp", i, builder.constant(np.array(less)), op="Sub")
    module = builder.module(builder.add("GatherAxis", x, moved, axis=axis))
    bundle = nacre.compile(module, "npm4k")
    elements = np.arange(25, dtype=np.float32).reshape(5, 5)
    found = bundle.run({"x": elements, "i": np.array(picked)})["output0"]
    assert np.array_equal(found, elements.take(np.array(picked) - less, axis=axis))


def test_a_negative_index_from_the_host_is_refused() -> None:
    builder = Builder()
    x, i = builder.input("x", "f32", (5, 5)), builder.input("i", "i64", (2,))
    bundle = nacre.compile(builder.module(builder.add("GatherAxis", x, i, axis=0)), "npm4k")
    with pytest.raises(InputError) as caught:
        bundle.run({"x": np.zeros((5, 5), np.float32), "i": np.array([0, -1])})
    (found,) = caught.value.diagnostics
    assert found.code == "RUN01"
    assert "index is -1, expected 0 to 4" in found.message


# Data and names that only integers of 8 bits take


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.core"
    core.save(linear_model(8, 16, 16), path)
    return path


def samples() -> dict[str, Array]:
    return {"x": values((4, 8, 16), 3)}


def test_data_that_is_not_used_is_noted(model: Path) -> None:
    notes = nacre.compile(model, "npm4k", calibration=samples()).manifest.notes
    assert notes == ("calibration data is not used: it is for i8, and the precision is f16",)


def test_a_precision_map_without_integers_is_refused(model: Path) -> None:
    with pytest.raises(InputError) as caught:
        nacre.compile(model, "npm4k", "f16", precision_map={"%2": "f16"})
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "CMP04", "a precision map is for i8, and the precision is f16",
    )  # fmt: skip


@pytest.mark.parametrize("command", ["compile", "estimate"])
def test_the_command_refuses_data_that_it_would_not_use(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, **samples())  # type: ignore[arg-type]
    out = ("-o", str(tmp_path / "b")) if command == "compile" else ()
    asked = [command, str(model), "--device", "npm4k", "--calibrate", str(data), *out]
    assert _exit_status(asked) == WRONG_USAGE
    assert "--calibrate is for integers, and --precision is f16" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
    assert _exit_status([*asked, "--precision", "i8"]) == OK


def test_the_command_refuses_a_map_that_it_would_not_use(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["compile", str(model), "--device", "npm4k", "-o", str(tmp_path / "b")]
    assert _exit_status([*asked, "--precision-map", "%2=f16"]) == WRONG_USAGE
    assert "--precision-map is for integers" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", " "])
def test_a_folder_has_a_name(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert _exit_status(["compile", str(model), "--device", "npm4k", "-o", name]) == WRONG_USAGE
    assert "expected the name of a folder" in capsys.readouterr().err
    assert not list((tmp_path / "here").iterdir())

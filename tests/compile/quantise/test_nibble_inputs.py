"""Inputs of 4 bits of plans on integers of 8 bits, and the files that calibrate them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre import core
from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.values import Array
from tests.cli.runner import invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
Body = Callable[[Builder, str], int]
WEIGHTS = np.random.default_rng(2).normal(size=(16, 7)).astype(np.float32)
KERNEL = np.random.default_rng(3).normal(size=(4, 3, 3, 3)).astype(np.float32)


def _cast(b: Builder, name: str) -> int:
    reals = b.add("Cast", b.input("x", name, (3, 16)), to="f32")
    return b.add("MatMul", reals, b.constant(WEIGHTS))


def _dequantised(b: Builder, name: str) -> int:
    x = b.input("x", name, (3, 16))
    reals = b.add("Dequantize", x, b.constant(np.float32(0.5)), b.constant(np.array(1), name))
    return b.add("MatMul", reals, b.constant(WEIGHTS))


def _convolution(b: Builder, name: str) -> int:
    image = b.add("Cast", b.input("x", name, (1, 3, 5, 5)), to="f32")
    return b.add("Conv", image, b.constant(KERNEL), strides=(1, 1), dilations=(1, 1), groups=1)


BODIES: dict[str, Body] = {"cast": _cast, "dequantised": _dequantised, "conv": _convolution}


def module_of(label: str, name: str) -> Module:
    builder = Builder()
    return builder.module(BODIES[label](builder, name))


def drawn(module: Module, seed: int) -> Array:
    (type_,) = module.input_types.values()
    element = type_.element
    low, high = int(element.lowest), int(element.highest) + 1
    return np.random.default_rng(seed).integers(low, high, type_.shape).astype(element.dtype)


@pytest.mark.parametrize("name", ["i4", "u4"])
@pytest.mark.parametrize("label", BODIES)
def test_a_plan_on_integers_is_near_the_model(label: str, name: str) -> None:
    module = module_of(label, name)
    x = drawn(module, 0)
    data = [{"x": drawn(module, seed)} for seed in range(8)]  # the first is what is run
    bundle = nacre.compile(module, "npm4k", precision="i8", calibration=data)
    (wanted,), found = evaluate(module, {"x": x}), bundle.run({"x": x})["output0"]
    assert np.abs(found - wanted).max() < 0.03 * np.abs(wanted).max()
    assert bundle.validate({"x": x}).first_difference is None
    whole = x.astype(np.int8)
    np.testing.assert_array_equal(bundle.run({"x": whole})["output0"], found)
    np.testing.assert_array_equal(bundle.session().run({"x": whole})["output0"], found)


@pytest.mark.parametrize("name", ["i4", "u4"])
def test_bytes_calibrate_as_elements_of_4_bits_do(name: str) -> None:
    module = module_of("cast", name)
    stack = np.stack([drawn(module, seed) for seed in range(4)])
    plans = [
        nacre.compile(module, "npm4k", precision="i8", calibration={"x": given})
        for given in (stack, stack.astype(np.int8), stack.view("V1"))
    ]
    assert plans[0].program == plans[1].program == plans[2].program
    assert plans[0].weights == plans[1].weights == plans[2].weights


def test_a_list_of_samples_takes_bytes_too() -> None:
    module = module_of("cast", "u4")
    samples = [{"x": drawn(module, seed)} for seed in range(4)]
    whole = [{"x": sample["x"].astype(np.uint8)} for sample in samples]
    first, second = (
        nacre.compile(module, "npm4k", precision="i8", calibration=given)
        for given in (samples, whole)
    )
    assert first.program == second.program


def compiled(
    capsys: Capsys, folder: Path, label: str, array: Array, element: str
) -> tuple[int, str]:
    core.save(module_of(label, element), folder / "m.core")
    np.savez(folder / "d.npz", x=array)
    done = invoke(capsys, "compile", folder / "m.core", "--device", "npm4k", "--precision", "i8",
                  "--calibrate", folder / "d.npz", "-o", folder / "b")  # fmt: skip
    return done.status, done.text


@pytest.mark.parametrize("kind", ["its own", "int8"])
@pytest.mark.parametrize("name", ["i4", "u4"])
def test_a_file_calibrates_an_input_of_4_bits(
    capsys: Capsys, tmp_path: Path, name: str, kind: str
) -> None:
    stack = np.stack([drawn(module_of("cast", name), seed) for seed in range(4)])
    array = stack if kind == "its own" else stack.astype(np.int8)
    status, text = compiled(capsys, tmp_path, "cast", array, name)
    assert status == 0, text
    assert "in i8: 2 layers" in text


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("i4", np.full((2, 3, 16), 8, np.int8), "`x` has 8 at [0, 0, 0], i4 holds -8 to 7"),
        ("u4", np.full((2, 3, 16), -1, np.int8), "`x` has -1 at [0, 0, 0], u4 holds 0 to 15"),
        ("i4", np.full((2, 3, 16), 99, np.uint8).view("V1"), "a byte of int4 is 0 to 15, found 99"),
        ("i4", np.zeros((2, 3, 16), np.int16), "`x` has elements of int16, expected int4"),
        ("i4", np.zeros((2, 3, 0), np.int8), "`x` has elements of int8, expected int4"),
    ],
)
def test_a_file_whose_values_do_not_fit_is_refused(
    capsys: Capsys, tmp_path: Path, name: str, array: Array, says: str
) -> None:
    status, text = compiled(capsys, tmp_path, "cast", array, name)
    assert status == 1
    assert "error[CMP09]" in text
    assert says in text


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3"])
def test_a_file_keeps_other_types_that_numpy_lacks(
    capsys: Capsys, tmp_path: Path, dtype: str
) -> None:
    builder = Builder()
    x = builder.add("Cast", builder.input("x", dtype, (3, 16)), to="f32")
    module = builder.module(builder.add("MatMul", x, builder.constant(WEIGHTS)))
    draw = np.random.default_rng(1).normal(size=(4, 3, 16)).astype(GRAPH_TYPES[dtype].dtype)
    np.savez(tmp_path / "d.npz", x=draw)
    core.save(module, tmp_path / "m.core")
    done = invoke(capsys, "compile", tmp_path / "m.core", "--device", "npm4k", "--precision", "i8",
                  "--calibrate", tmp_path / "d.npz", "-o", tmp_path / "b")  # fmt: skip
    assert "void" not in done.text
    assert "CMP09" not in done.text

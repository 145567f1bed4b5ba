"""Models of the importers as files: they compute what Core IR computes, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from nacre import core, nac
from tests.core.models.real_models import RealModel
from tests.core.models.test_real_models import EVERY_MODEL, path_of
from tests.core.onnx.small_models import convolutional, transformer
from tests.nac.tolerance import assert_close

pytestmark = pytest.mark.sampled(2)  # together they take long

Feeds = Mapping[str, np.ndarray[Any, Any]]


def through_a_file(module: core.Module, feeds: Feeds, path: Path) -> nac.NacModel:
    """Build, save, load and run; as it is written, nothing differs from the evaluation in a bit."""
    nac.save(nac.build(module), path)
    assert nac.verify(path) == []
    model = nac.load(path)
    assert len(repr(model)) < 200 + len(str(path)), "a line, not the whole file"
    assert nac.lift(model) == nac.canonical(module)
    memory = nac.memory_map(model)
    assert memory.is_sound
    assert memory.is_complete, str(memory)
    assert memory.least_bytes <= memory.peak_bytes
    wanted = core.evaluate(module, dict(feeds))
    written = model.session(optimise=False)
    for _ in range(2):  # the second run follows a trace
        found = written.run(feeds)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    for one, other in zip(model.run(feeds), wanted, strict=True):
        assert_close(one, other)
    return model


@pytest.mark.parametrize("make", [convolutional, transformer], ids=lambda make: make.__name__)
def test_a_small_onnx_model(make: Any, tmp_path: Path) -> None:  # noqa: ANN401
    source = tmp_path / "m.onnx"
    onnx.save(make(), source)
    module = core.from_onnx(source)
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.standard_normal(t.shape).astype(np.float32)
        if t.dtype == "f32"
        else rng.integers(0, 9, t.shape)
        for name, t in module.input_types.items()
    }
    through_a_file(module, feeds, tmp_path / "m.nac")
    built = nac.build(source)
    assert nac.to_bytes(built.file) == nac.to_bytes(nac.build(str(source)).file)
    stored = {entry.text for entry in built.file.data.parameters}
    assert len(stored & {tensor.name for tensor in make().graph.initializer}) > 5


@pytest.mark.heavy("trained networks")
@pytest.mark.sampled(4)
@EVERY_MODEL
def test_a_trained_model(model: RealModel, tmp_path: Path) -> None:
    path_of(model.name)  # or the test is skipped, with the reason
    through_a_file(model.module(), model.feeds(), tmp_path / "m.nac")


def test_a_core_file(tmp_path: Path) -> None:
    source = tmp_path / "m.core"
    builder = core.Builder()
    x = builder.input("x", "f32", (2, 3))
    weight = builder.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    module = builder.module(builder.add("Linear", x, weight))
    core.save(module, source)
    model = nac.build(source)
    assert model.file.header.d_model == 3
    assert [(i.name, i.dtype, i.shape) for i in model.inputs] == [("x", "f32", (2, 3))]
    given = {"x": np.ones((2, 3), np.float32)}
    np.testing.assert_array_equal(model.run(given)[0], core.evaluate(module, given)[0])


def test_what_goes_with_a_model() -> None:
    builder = core.Builder()
    module = builder.module(builder.add("Neg", builder.input("x", "f32", (2,))))
    model = nac.build(module, resources={"b": b"2", "a": b"1"}, d_model=7)
    assert [r.name for r in model.file.resources][1:] == ["a", "b"]
    assert model.file.header.d_model == 7


def test_external_weights_are_the_same_model(tmp_path: Path) -> None:
    builder = core.Builder()
    x = builder.input("x", "f32", (2, 3))
    table = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    module = builder.module(builder.add("MatMul", x, builder.constant(table)))
    given = {"x": np.ones((2, 3), np.float32)}
    for quant in ("none", "fp16", "int8_tensor", "int8_channel", "block_fp8", "int4_group"):
        model = nac.build(module, quant)
        nac.save(model, tmp_path / f"{quant}.nac", weights="external")
        again = nac.load(tmp_path / f"{quant}.nac")
        np.testing.assert_array_equal(again.run(given)[0], model.run(given)[0])


@pytest.mark.heavy("large on purpose")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [254, 255, 260, 1000])
def test_a_concat_of_more_tensors_than_an_instruction_names(count: int, axis: int) -> None:
    """Its parts are concats of at most 254, and every one is freed in time."""
    builder = core.Builder()
    xs = [builder.input(f"x{at}", "f32", (2, 2)) for at in range(2)]
    parts = [builder.add("BinOp", *xs, op="Add")]
    for _ in range(count - 1):
        parts.append(builder.add("BinOp", parts[-1], xs[1], op="Add"))
    module = builder.module(builder.add("Concat", *parts, axis=axis))
    model = nac.load(nac.to_bytes(nac.build(module).file))
    calls = [i for i in model.file.instructions if not i.is_system]
    assert len(calls) == count + (1 if count <= 254 else 1 + -(-count // 254))
    assert nac.verify(nac.to_bytes(model.file)) == []
    memory = nac.memory_map(model)
    assert memory.is_sound
    assert memory.is_complete, str(memory)
    feeds = {f"x{at}": np.array([[at, 1], [2, 3]], np.float32) for at in range(2)}
    each = [feeds["x0"] + np.float32(at + 1) * feeds["x1"] for at in range(count)]
    wanted = np.concatenate(each, axis)
    np.testing.assert_array_equal(model.run(feeds)[0], wanted)
    assert core.evaluate(nac.lift(model), feeds)[0].tobytes() == wanted.tobytes()


def test_a_concat_of_many_inputs_and_weights_at_the_end() -> None:
    """All of them go at once: what is too much for the last tick has gone before."""
    builder = core.Builder()
    xs = [builder.input(f"x{at}", "i64", (1,)) for at in range(300)]
    more = [builder.constant(np.array([at], np.int64)) for at in range(300, 600)]
    model = nac.build(builder.module(builder.add("Concat", *xs, *more, axis=0)))
    memory = nac.memory_map(model)
    assert memory.is_sound
    assert memory.is_complete, str(memory)
    feeds = {f"x{at}": np.array([at]) for at in range(300)}
    assert model.run(feeds)[0].tolist() == list(range(600))

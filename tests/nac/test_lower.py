"""Lowered modules compute what the modules compute, bit for bit, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Custom
from nacre.nac.aten.lowering import LOWERINGS, lowered
from nacre.nac.format.file import to_bytes
from nacre.nac.lift import lift
from nacre.nac.lower import lower
from nacre.nac.run.model import load
from nacre.nac.verify import verify
from tests.core.uses import USES, UseOf, inputs_of, module_of
from tests.nac.files import FIXTURES


def filled(op: CoreOperation) -> dict[str, object]:
    """The attributes with defaults; a list left out stands for ones or zeros."""
    made = dict(OPS[op.opcode].filled(op.attributes))
    for name in ("strides", "pads", "dilations", "output_padding"):
        value = made.get(name)
        plain = {0} if name in ("pads", "output_padding") else {1}
        if isinstance(value, tuple) and set(value) <= plain:
            made[name] = ()
    return made


def same(a: Module, b: Module) -> None:
    """Both compute the same, operation by operation."""
    assert len(a) == len(b), f"{a}\n{b}"
    for one, other in zip(a, b, strict=True):
        assert (one.opcode, one.type) == (other.opcode, other.type)
        assert filled(one) == filled(other)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.opcode)
def test_every_operation_goes_into_a_file_and_back(use: UseOf) -> None:
    module = module_of(use)
    raw = to_bytes(lower(module))
    assert verify(raw) == []
    model = load(raw)
    same(lift(model), module)
    inputs = inputs_of(module)
    narrow = any(type_.dtype in ("i4", "u4") for type_ in module.input_types.values())
    for one, other in zip(model.run(inputs), core.evaluate(module, inputs), strict=True):
        assert narrow or one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_most_operations_have_a_call_of_aten() -> None:
    assert set(LOWERINGS) <= set(OPS)
    named = set()
    for use in USES:
        module = module_of(use)
        call, _ = lowered(module.operations[-1], tuple(module.input_types.values()))
        named |= set() if call.startswith("core.") else {use.opcode}
    assert len(named) >= 30


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_lifted_fixture_is_lowered_again(path: Path) -> None:
    x = np.load(path.with_suffix(".npz"))["in0"]
    model = load(path)
    name = model.inputs[0].name
    module = lift(model, {name: core.TensorType("f32", x.shape)})
    raw = to_bytes(lower(module))
    assert verify(raw) == []
    again = load(raw)
    same(lift(again), module)
    np.testing.assert_array_equal(again.run({name: x})[0], model.run({name: x})[0])
    assert to_bytes(lower(module)) == raw


def test_tied_weights_are_stored_once_and_placed_before_their_use() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 2))
    array = np.eye(2, dtype=np.float32)
    for _ in range(2):
        x = builder.add("MatMul", x, builder.constant(array))
    file = lower(builder.module(x))
    assert len(file.data.tensors) == 1
    assert [i.op for i in file.instructions][:3] == [2, 2, file.operations[0].id]


def test_state_goes_into_a_file_and_back() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2,))
    total = builder.input("total", "f32", (2,))
    start = builder.constant(np.array([1, 2], np.float32))
    new = builder.add("BinOp", total, x, op="Add")
    builder.state("total", new, start)
    module = builder.module(builder.add("Neg", new))
    model = load(to_bytes(lower(module)))
    ours, theirs = model.session(), module.session()
    for _ in range(3):
        given = {"x": np.ones(2, np.float32)}
        np.testing.assert_array_equal(ours.run(given)[0], theirs.run(given)[0])
    lifted = lift(model)
    assert [s.name for s in lifted.states] == ["total"]


def test_the_schedule_frees_everything_once() -> None:
    for path in FIXTURES:
        x = np.load(path.with_suffix(".npz"))["in0"]
        model = load(path)
        module = lift(model, {model.inputs[0].name: core.TensorType("f32", x.shape)})
        file = lower(module)
        gone = [c.target for tick in file.schedule for c in tick.commands if c.action == 20]
        gone += [tick.tick for tick in file.schedule for c in tick.commands if c.action == 30]
        returned = {len(file.instructions) - 1 + d for d in file.instructions[-1].d}
        assert sorted(gone) == sorted(set(range(len(file.instructions) - 1)) - returned)


def test_attributes_keep_every_bit() -> None:
    builder = Builder()
    x = builder.input("x", "i8", (1, 3))
    plane = builder.input("plane", "f32", (1, 5, 5, 2))
    w = builder.constant(np.ones((2, 3), np.int8))
    scales = (0.1, 1 / 3)
    y = builder.add("QLinear", x, w, x_scale=0.1, w_scales=scales, y_scale=0.7, to="i8")
    window = builder.constant(np.ones((3, 3, 2, 1), np.float32))
    given = {"strides": (1, 1), "padding": Custom(((1, 0), (2, 1)))}
    module = builder.module(y, builder.add("Conv2d", plane, window, **given))
    found = lift(load(to_bytes(lower(module))))
    (quantized,) = [op for op in found if op.opcode == "QLinear"]
    assert quantized.attributes["w_scales"] == scales
    (conv,) = [op for op in found if op.opcode == "Conv2d"]
    assert conv.attributes["padding"] == given["padding"]

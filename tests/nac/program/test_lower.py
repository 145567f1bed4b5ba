"""Lowered modules compute what the modules compute, bit for bit, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.ops import OPS
from nacre.core.values import Custom
from nacre.nac.format.file import to_bytes
from nacre.nac.program import assembly, reach
from nacre.nac.program.assembly import Assembler
from nacre.nac.program.canonical import arrange, canonical
from nacre.nac.program.lift import lift
from nacre.nac.program.lower import lower
from nacre.nac.program.lowering import LOWERINGS, lower_operation
from nacre.nac.program.memory_map import memory_map, operands_of
from nacre.nac.run.model import load
from nacre.nac.spec.operations import STANDARD_NAMES
from nacre.nac.verify import verify
from tests.core.uses import USES, UseOf, inputs_of, module_of
from tests.nac.files import FIXTURES


@pytest.mark.parametrize("use", USES, ids=lambda use: use.opcode)
def test_every_operation_goes_into_a_file_and_back(use: UseOf) -> None:
    module = module_of(use)
    raw = to_bytes(lower(module))
    assert verify(raw) == []
    model = load(raw)
    assert lift(model) == arrange(module)
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
        call, _ = lower_operation(module.operations[-1], tuple(module.input_types.values()))
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
    assert lift(again) == module
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
    assert lift(model) == arrange(module)


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


@pytest.mark.parametrize(
    ("padding", "strides", "calls"),
    [
        ("Valid", (2, 1), ["permute.default", "conv2d.padding", "permute.default"]),
        ("Same", (1, 1), ["permute.default", "conv2d.padding", "permute.default"]),
        ("Same", (2, 2), ["core.Conv2d"]),
        (
            Custom(((1, 1), (2, 2))),
            (1, 1),
            ["permute.default", "conv2d.default", "permute.default"],
        ),
        (Custom(((1, 0), (2, 1))), (1, 1), ["core.Conv2d"]),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_channels_last_become_channels_first_and_come_back(
    padding: object, strides: tuple[int, int], calls: list[str], is_known: bool
) -> None:
    rng = np.random.default_rng(0)
    builder = Builder()
    plane = builder.input("plane", "f32", (2, 6, 5, 3))
    elements = rng.standard_normal((3, 3, 3, 4)).astype(np.float32)
    window = builder.constant(elements) if is_known else builder.input("w", "f32", (3, 3, 3, 4))
    made = builder.add("Conv2d", plane, window, strides=strides, padding=padding)
    module = builder.module(builder.add("Relu", made))
    model = load(to_bytes(lower(module)))
    found = [p.call.name for p in model.program if p.call is not None]
    moved = [] if is_known or len(calls) == 1 else ["permute.default"]
    assert found[:-1] == [*moved, *calls]
    assert lift(model) == canonical(module)
    given = {"plane": rng.standard_normal((2, 6, 5, 3)).astype(np.float32)}
    given |= {} if is_known else {"w": elements}
    (one,), (other,) = model.run(given), core.evaluate(module, given)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)  # sums run in another order


def test_channels_that_come_first_stay_so_between_permutations() -> None:
    builder = Builder()
    plane = builder.input("plane", "f32", (2, 6, 5, 3))
    first = builder.add("Transpose", plane, permutation=(0, 3, 1, 2))
    window = builder.constant(np.ones((4, 3, 3, 3), np.float32))
    made = builder.add("Conv", first, window)
    module = builder.module(builder.add("Transpose", made, permutation=(0, 2, 3, 1)))
    assert lift(load(to_bytes(lower(module)))) == canonical(module)


def test_constants_are_numbered_where_they_are_used() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2, 2))
    late, early = (builder.constant(np.full((2, 2), v, np.float32)) for v in (1, 2))
    first = builder.add("MatMul", x, early)
    module = builder.module(builder.add("MatMul", first, late), late)
    found = canonical(module)
    assert [op.opcode for op in found] == ["Input", *["ConstTensor", "MatMul"] * 2]
    assert found == canonical(found)
    assert lift(load(to_bytes(lower(module)))) == found


def _long(builder: Builder, value: int, count: int) -> int:
    for at in range(count):
        value = builder.add("Relu" if at % 2 else "Neg", value)
    return value


@pytest.mark.full
def test_a_weight_with_a_late_use_is_loaded_again() -> None:
    """An operand lies at most 32,768 instructions back; the same parameter may be loaded twice."""
    builder = Builder()
    x = builder.input("x", "f32", (1,))
    weight = builder.constant(np.array([3], np.float32))
    late = _long(builder, builder.add("BinOp", x, weight, op="Add"), 32_770)
    for op in ("Mul", "Add"):
        late = builder.add("BinOp", late, weight, op=op)
    module = builder.module(late, weight)
    file = lower(arrange(module))
    loads = [i for i in file.instructions if (i.op, i.variant) == (2, 1)]
    assert loads == [loads[0]] * 2  # the two late uses, and the output, share one
    assert len(file.data.tensors) == 1
    raw = to_bytes(file)
    assert verify(raw) == []
    model = load(raw)
    assert memory_map(model).is_complete
    assert [made.tolist() for made in model.run({"x": np.ones(1, np.float32)})] == [[3.0], [3.0]]
    assert lift(model) == arrange(module)


def _late(count: int) -> Module:
    """An input, a state, a constant and two results, used first and last, and little between."""
    builder = Builder()
    x, kept = builder.input("x", "f32", (2,)), builder.input("kept", "f32", (2,))
    weight = builder.constant(np.array([0.1, 3], np.float32))
    sum_ = builder.add("BinOp", x, weight, op="Add")
    is_more = builder.add("Compare", sum_, kept, op="Gt")
    end = _long(builder, sum_, count)
    for value in (x, weight, sum_, kept):
        end = builder.add("BinOp", end, value, op="Mul")
    chosen = builder.add("Where", is_more, end, sum_)
    builder.state("kept", builder.add("BinOp", kept, chosen, op="Add"),
                  builder.constant(np.array([0.5, -1], np.float32)))  # fmt: skip
    return canonical(builder.module(chosen, x))


def _check_relays(module: Module, relays: int) -> int:
    """Of a file that is right; how far the furthest operand lies back."""
    file = lower(module)
    assert sum(i.op == STANDARD_NAMES["nac.clone"].id for i in file.instructions) == relays
    raw = to_bytes(file)
    assert verify(raw) == []
    model = load(raw)
    found = memory_map(model)
    assert (found.is_sound, found.is_complete) == (True, True)
    assert lift(model) == module
    session, other = model.session(), module.session()
    for x in ([1.5, -2.25], [0.3, 7]):
        given = {"x": np.array(x, np.float32)}
        for one, two in zip(session.run(given), other.run(given), strict=True):
            assert one.tobytes() == two.tobytes()
    return max(index - used for index, some in enumerate(operands_of(file)) for used in some)


@pytest.mark.heavy("large on purpose")
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("count", "relays"), [(100, 0), (1600, 4), (2500, 8)])
def test_what_has_a_late_use_is_relayed(
    count: int, relays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a format whose operands lie less far back, so that it takes no long program."""
    for module in (reach, assembly):
        monkeypatch.setattr(module, "MOST_DISTANCE", 2000)
    assert _check_relays(_late(count), relays) <= 2000


@pytest.mark.full
def test_what_has_a_late_use_is_relayed_in_a_long_program() -> None:
    assert _check_relays(_late(40_000), 4) <= 32_768


def test_an_operand_out_of_reach_is_refused_with_a_help() -> None:
    """Of a program that is put together by hand: a branch has no room for relays."""
    assembler = Assembler()
    x = latest = assembler.input("x")
    for _ in range(32_768):
        latest = assembler.call("nac.neg", latest)
    with pytest.raises(InputError, match=r"NAC15.*nac.add.*32,769 instructions before") as refused:
        assembler.call("nac.add", x, latest)
    (found,) = refused.value.diagnostics
    assert found.help is not None
    assert "split the model" in found.help


def test_a_call_of_too_many_arguments_is_refused_by_name() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1,))
    module = builder.module(builder.add("Concat", *[x] * 255, axis=0))
    with pytest.raises(InputError, match=r"NAC15.*%1 = Concat.*256 arguments, at most 255"):
        lower(module)

"""Values whose axes lie in another order: the bits are those of every operation by itself."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.evaluation import plan
from nacre.core.evaluation.axis_orders import keep_order
from nacre.core.evaluation.evaluate import CoreSession
from nacre.core.module import Module
from nacre.core.values import Array, Literal

Feeds = dict[str, Array]


def inputs_of(module: Module, seed: int = 0) -> Feeds:
    random = np.random.default_rng(seed)
    return {
        name: random.standard_normal(type_.shape).astype(type_.element.dtype)
        for name, type_ in module.input_types.items()
    }


def one_by_one(module: Module, feeds: Feeds) -> list[Array]:
    """The outputs of a session in which every value lies as the module has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "arrange", keep_order)
        patch.setattr(plan, "find_finished_steps", lambda module, weights: [])
        return CoreSession(module).run(feeds)


def assert_same_bits(module: Module, seed: int = 0) -> CoreSession:
    feeds, session = inputs_of(module, seed), CoreSession(module)
    wanted = one_by_one(module, feeds)
    for _ in range(2):
        for found, exact in zip(session.run(feeds), wanted, strict=True):
            np.testing.assert_array_equal(found, exact)
    return session


def moves_of(session: CoreSession) -> int:
    """The transpositions that a plan carries out: steps of one operand that keep every element."""
    steps, shapes = session._plan.steps, {v: t.shape for v, t in session._plan.views.items()}
    for step in steps:
        shapes |= {v: t.shape for v, t in zip(step.results, step.types, strict=True)}
    shapes |= {op.value_id: op.type.shape for op in session._module.inputs}
    single = [(shapes[s.operands[0]], s.types[0].shape) for s in steps if len(s.operands) == 1]
    return sum(1 for before, after in single if before != after and sorted(before) == sorted(after))


class Net:
    """A module that grows."""

    def __init__(self, seed: int = 0) -> None:
        self.build = Builder()
        self.random = np.random.default_rng(seed)

    def constant(self, *shape: int) -> int:
        return self.build.constant(self.random.standard_normal(shape).astype(np.float32))

    def conv(self, x: int, outputs: int, window: int = 3, **given: Any) -> int:  # noqa: ANN401
        channels = self.build.type_of(x).shape[1]
        rank = self.build.type_of(x).rank - 2
        per_group = channels // given.get("groups", 1)
        weights = self.constant(outputs, per_group, *(window,) * rank)
        pads = given.pop("pads", (window // 2,) * 2 * rank)
        return self.build.add("Conv", x, weights, self.constant(outputs), pads=pads, **given)


def test_between_convolutions_nothing_is_transposed() -> None:
    net = Net()
    add = net.build.add
    x = net.build.input("x", "f32", (2, 3, 12, 12))
    y = add("ReluNan", net.conv(x, 8))
    y = add("MaxPool", y, kernel=(2, 2), strides=(2, 2))
    z = add("Silu", net.conv(y, 8, groups=8))
    gate = add("Unary", net.conv(add("Mean", z, axes=(2, 3), keepdims=True), 8, 1), op="Sigmoid")
    y = add("BinOp", y, add("BinOp", z, gate, op="Mul"), op="Add")
    y = add("Concat", y, net.conv(y, 4), axis=1)
    y = add("Clip", net.conv(y, 6, strides=(2, 2)), min=0.0, max=6.0)
    last = add("Mean", y, axes=(2, 3), keepdims=False)
    session = assert_same_bits(net.build.module(add("Linear", last, net.constant(5, 6))))
    assert moves_of(session) == 0


def test_what_leaves_lies_as_it_is_declared() -> None:
    net = Net()
    x = net.build.input("x", "f32", (1, 3, 6, 5))
    y = net.conv(x, 4)
    z = net.build.add("ReluNan", y)
    session = assert_same_bits(net.build.module(z, y, x, z))
    assert [out.shape for out in session.run(inputs_of(session._module))] == [
        (1, 4, 6, 5), (1, 4, 6, 5), (1, 3, 6, 5), (1, 4, 6, 5),
    ]  # fmt: skip


def test_states_keep_their_order() -> None:
    net = Net()
    x, memory = (net.build.input(name, "f32", (1, 3, 4, 5)) for name in ("x", "memory"))
    y = net.conv(net.build.add("BinOp", x, memory, op="Add"), 3)
    zeros = net.build.constant(np.zeros((1, 3, 4, 5), np.float32))
    net.build.state("memory", y, zeros)
    module = net.build.module(net.build.add("ReluNan", y))
    session, feeds = CoreSession(module), {"x": inputs_of(module)["x"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "arrange", keep_order)
        plain = CoreSession(module)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(feeds)[0], plain.run(feeds)[0])
        np.testing.assert_array_equal(session.state["memory"], plain.state["memory"])


def test_channels_change_places_in_groups() -> None:
    net = Net()
    x = net.conv(net.build.input("x", "f32", (1, 3, 6, 6)), 8)
    split = net.build.add("Reshape", x, new_shape=(1, 2, 4, 6, 6))
    turned = net.build.add("Transpose", split, permutation=(0, 2, 1, 3, 4))
    joined = net.build.add("Reshape", turned, new_shape=(1, 8, 6, 6))
    session = assert_same_bits(net.build.module(net.conv(net.build.add("ReluNan", joined), 4)))
    assert moves_of(session) == 2  # of channels, and of the result


def test_norms_of_channels_take_them_where_they_lie() -> None:
    net = Net()
    x = net.conv(net.build.input("x", "f32", (1, 3, 6, 6)), 8)
    last = net.build.add("Transpose", x, permutation=(0, 2, 3, 1))
    norm = net.build.add("LayerNorm", last, net.constant(8), net.constant(8), axis=3)
    wide = net.build.add("Gelu", net.build.add("Linear", norm, net.constant(16, 8)))
    narrow = net.build.add("Linear", wide, net.constant(8, 16))
    back = net.build.add("Transpose", narrow, permutation=(0, 3, 1, 2))
    total = net.build.add("BinOp", x, back, op="Add")
    mean = net.build.add("Mean", net.conv(total, 4, groups=4), axes=(2, 3), keepdims=False)
    assert moves_of(assert_same_bits(net.build.module(mean))) == 0


def test_an_error_names_the_operation_of_the_module() -> None:
    net = Net()
    x = net.conv(net.build.input("x", "f32", (1, 3, 4, 4)), 4)
    whole = net.build.add("Cast", net.build.add("ReluNan", x), to="i32")
    zero = net.build.add("BinOp", whole, whole, op="Sub")
    bad = net.build.add("BinOp", whole, zero, op="Div")
    module = net.build.module(net.build.add("Reshape", bad, new_shape=(64,)))
    with pytest.raises(InputError) as caught:
        CoreSession(module).run(inputs_of(module))
    (finding,) = caught.value.diagnostics
    assert f"`BinOp` %{bad}: integer division by zero, at [0, 0, 0, 0]" in finding.message


FUNCTIONS: list[tuple[str, dict[str, Any]]] = [
    ("ReluNan", {}), ("Clip", {"min": -0.5, "max": 0.75}), ("HardSwish", {}), ("Gelu", {}),
    ("Relu", {}), ("Neg", {}), ("LeakyRelu", {"alpha": 0.25}), ("Unary", {"op": "Tanh"}),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "attributes"), FUNCTIONS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_functions_behind_convolutions_are_those_by_themselves(
    opcode: str, attributes: dict[str, Any], groups: int
) -> None:
    net = Net()
    x = net.build.input("x", "f32", (2, 4, 9, 7))
    y = net.build.add(opcode, net.conv(x, 8, groups=groups), **attributes)
    assert_same_bits(net.build.module(net.build.add("Mean", y, axes=(1,), keepdims=True)))


@st.composite
def networks(draw: st.DrawFn) -> Module:  # noqa: C901 - one branch an operation
    """Convolutions, and between them whatever takes values as they lie, or does not."""
    net = Net(draw(st.integers(0, 99)))
    add, rank = net.build.add, draw(st.sampled_from([1, 2, 2, 2, 3]))
    size = tuple(draw(st.lists(st.integers(1, 7), min_size=rank, max_size=rank)))
    values = [
        net.build.input("x", "f32", (draw(st.integers(1, 2)), draw(st.integers(1, 6)), *size))
    ]
    for _ in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(values[-3:]))
        shape = net.build.type_of(x).shape
        axes = range(len(shape))
        kind = draw(st.sampled_from(KINDS))
        is_image = len(shape) == rank + 2
        if kind == "conv" and is_image:
            groups = draw(st.sampled_from([1, 1, shape[1]]))
            y = net.conv(x, groups * draw(st.integers(1, 3)), groups=groups,
                         window=draw(st.integers(1, 3)))  # fmt: skip
        elif kind == "pool" and is_image:
            opcode = draw(st.sampled_from(["MaxPool", "AvgPool"]))
            y = add(opcode, x, kernel=(2,) * rank, pads=(1,) * 2 * rank)
        elif kind == "function":
            opcode, attributes = draw(st.sampled_from(FUNCTIONS))
            y = add(opcode, x, **attributes)
        elif kind == "number":
            one = (1, shape[1]) + (1,) * (len(shape) - 2) if len(shape) > 1 else ()
            y = add("BinOp", x, net.constant(*draw(st.sampled_from([(), one, shape]))), op="Mul")
        elif kind == "same":
            others = [v for v in values if net.build.type_of(v).shape == shape]
            y = add("BinOp", draw(st.sampled_from(others)), x, op="Add")
        elif kind == "join":
            y = add("Concat", x, x, axis=draw(st.sampled_from(axes)))
        elif kind == "reduce":
            some = tuple(sorted(draw(st.sets(st.sampled_from(axes), min_size=1))))
            opcode = draw(st.sampled_from(["Mean", "Sum"]))
            y = add(opcode, x, axes=some, keepdims=draw(st.booleans()))
            if not net.build.type_of(y).shape:
                continue
        elif kind == "turn":
            y = add("Transpose", x, permutation=tuple(draw(st.permutations(axes))))
        elif kind == "reshape":
            y = add("Reshape", x, new_shape=draw(st.sampled_from(reshapes(shape))))
        elif kind == "cut":
            starts = tuple(draw(st.integers(0, dim - 1)) for dim in shape)
            y = add("Slice", x, starts=starts, ends=shape, steps=(1,) * len(shape))
        elif kind == "pad":
            pads = tuple(draw(st.integers(0, 1)) for _ in range(2 * len(shape)))
            y = add("Pad", x, pads=pads)
        elif kind == "softmax":
            y = add("Softmax", x, axis=draw(st.sampled_from(axes)))
        else:
            continue
        values.append(y)
    return net.build.module(*draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))


KINDS = ("conv", "conv", "conv", "pool", "function", "number", "same", "join", "reduce", "turn",
         "reshape", "cut", "pad", "softmax")  # fmt: skip


def reshapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Axes joined, split, added and taken away."""
    total = int(np.prod(shape))
    found = [(total,), (*shape, 1), (1, *shape), tuple(d for d in shape if d != 1) or (1,)]
    if len(shape) > 1:
        found += [(shape[0] * shape[1], *shape[2:]), (*shape[:-2], shape[-2] * shape[-1])]
    if shape[-1] % 2 == 0:
        found.append((*shape[:-1], 2, shape[-1] // 2))
    if len(shape) > 1 and shape[1] % 2 == 0:
        found.append((shape[0], 2, shape[1] // 2, *shape[2:]))
    return [new for new in found if len(new) <= 6]


@given(networks(), st.integers(0, 9))
def test_networks_have_the_bits_of_their_operations(module: Module, seed: int) -> None:
    assert_same_bits(module, seed)


def test_weights_are_in_memory_once() -> None:
    """A session and its module, and further sessions, see the same bytes."""
    net = Net()
    result = net.conv(net.build.input("x", "f32", (1, 8, 10, 10)), 16)
    module = net.build.module(result)
    (data,) = (op.attributes["data"] for op in module.operations if op.type.rank == 4
               and op.opcode == "ConstTensor")  # fmt: skip
    before, text = data.array.copy(), hash(data)
    first, second = (assert_session_keeps(module, data) for _ in range(2))
    assert first is not second
    assert data.shape == before.shape
    assert hash(data) == text
    np.testing.assert_array_equal(data.array, before)
    assert data.array.flags.c_contiguous
    assert not data.array.flags.writeable
    np.testing.assert_array_equal(first.run(inputs_of(module))[0], second.run(inputs_of(module))[0])


def assert_session_keeps(module: Module, data: Literal) -> CoreSession:
    session = CoreSession(module)
    assert any(np.shares_memory(data._array, kept) for kept in session.kept_arrays)
    return session

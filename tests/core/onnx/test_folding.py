"""Nodes on known tensors: what is computed at once is what the reference of onnx computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TypeProto, helper
from onnx.reference import ReferenceEvaluator

from nacre.core.onnx.folding.numpy_folding import fold_with_numpy
from nacre.core.onnx.reading.nodes import Node

Array = np.ndarray[Any, Any]
OPSET = 17
TYPES = ("int64", "int32", "uint8", "bool", "float32", "float64")
CASTS = {1: "f32", 2: "u8", 3: "i8", 6: "i32", 7: "i64", 9: "bool", 11: "f64"}
WRONG = "wrong"  # the reference refuses it


def node(op: str, count: int, opset: int = OPSET, **attributes: object) -> Node:
    inputs = tuple(f"i{at}" for at in range(count))
    return Node(op, "", "", inputs, ("o",), attributes, opset)


def reference(made: Node, arrays: Sequence[Array]) -> Array | str:
    """What the reference implementation gives."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(made.inputs, arrays, strict=True)
    ]
    kept = {name: value for name, value in made.attributes.items() if value not in ([], ())}
    proto = helper.make_node(made.op, made.inputs, made.outputs, **kept)
    results = [helper.make_value_info("o", TypeProto())]
    graph = helper.make_graph([proto], "node", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", made.opset)])
    try:
        (found,) = ReferenceEvaluator(model).run(None, dict(zip(made.inputs, arrays, strict=True)))
    except Exception:
        return WRONG
    return np.asarray(found)


def require_same(made: Node, arrays: Sequence[Array], *, is_sound: bool = False) -> None:
    """The same elements, or none: then the reference is asked. A sound node gives some."""
    found, expected = fold_with_numpy(made, arrays), reference(made, arrays)
    if is_sound:
        assert found is not None
    if found is None:
        return
    assert isinstance(found, np.ndarray)  # no scalar of NumPy: it would not be known later on
    assert not isinstance(expected, str), (made, found)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert found.shape == expected.shape


@st.composite
def arrays(draw: st.DrawFn, least: int = 0) -> Array:
    shape = tuple(draw(st.lists(st.integers(0, 3), min_size=least, max_size=4)))
    values = np.arange(-5, np.prod(shape) - 5, dtype=np.int64).reshape(shape)
    return values.astype(draw(st.sampled_from(TYPES)))


numbers = st.integers(-6, 6)


def ints(values: Sequence[int]) -> Array:
    return np.array(values, np.int64)


@given(arrays(), st.lists(st.integers(-1, 6), max_size=4), st.booleans())
def test_reshape(x: Array, shape: list[int], allows: bool) -> None:
    require_same(node("Reshape", 2, allowzero=int(allows)), [x, ints(shape)])


@given(arrays(), st.sampled_from(list(CASTS)))
def test_cast(x: Array, to: int) -> None:
    is_whole = x.dtype.kind != "f"
    require_same(node("Cast", 1, to=to), [x], is_sound=is_whole)


@given(st.lists(arrays(), min_size=1, max_size=3), numbers)
def test_concat(parts: list[Array], axis: int) -> None:
    require_same(node("Concat", len(parts), axis=axis), parts)


@given(arrays(1), st.lists(st.tuples(numbers, numbers, numbers, st.sampled_from([1, 1, 2, -1]))))
def test_slice(x: Array, cuts: list[tuple[int, int, int, int]]) -> None:
    lists = [ints(values) for values in zip(*cuts, strict=True)] or [ints([])] * 4
    starts, ends, axes, steps = lists
    require_same(node("Slice", 5), [x, starts, ends, axes, steps])
    require_same(node("Slice", 4), [x, starts, ends, axes])
    require_same(node("Slice", 3), [x, starts, ends])


@given(arrays(1), st.lists(numbers), numbers)
def test_gather(x: Array, indices: list[int], axis: int) -> None:
    require_same(node("Gather", 2, axis=axis), [x, ints(indices)])
    if indices:
        require_same(node("Gather", 2), [x, np.array(indices[0])])


@given(arrays(), st.none() | numbers, st.none() | numbers)
def test_shape(x: Array, start: int | None, end: int | None) -> None:
    attributes = {"start": start, "end": end}
    known = {name: value for name, value in attributes.items() if value is not None}
    is_sound = all(-x.ndim <= value <= x.ndim for value in known.values())
    require_same(node("Shape", 1, **known), [x], is_sound=is_sound)


@given(arrays(), st.lists(numbers, max_size=3), st.sampled_from(["Squeeze", "Unsqueeze"]))
def test_axes(x: Array, axes: list[int], op: str) -> None:
    require_same(node(op, 2), [x, ints(axes)])
    # Their order means nothing; in the old form the reference goes by it.
    if axes and min(axes) >= 0:
        require_same(node(op, 1, 11, axes=sorted(axes)), [x])


@given(arrays(), st.randoms())
def test_transpose(x: Array, random: Any) -> None:  # noqa: ANN401 - of hypothesis
    order = random.sample(range(x.ndim), x.ndim)
    require_same(node("Transpose", 1, perm=order), [x], is_sound=True)


SOUND = {
    "reshape": (node("Reshape", 2), [np.arange(6.0), ints([2, -1])]),
    "reshape, kept": (node("Reshape", 2), [np.zeros((2, 3)), ints([0, 3])]),
    "concat": (node("Concat", 2, axis=0), [ints([1]), ints([2, 3])]),
    "slice": (node("Slice", 5), [ints([1, 2, 3]), *map(ints, ([-2], [2**62], [0], [1]))]),
    "gather": (node("Gather", 2), [ints([4, 5]), np.array(-1)]),
    "squeeze": (node("Squeeze", 2), [np.zeros((1, 2)), ints([0])]),
    "unsqueeze": (node("Unsqueeze", 1, 11, axes=(0, -1)), [np.zeros(2)]),
}


@pytest.mark.parametrize(("made", "given_"), SOUND.values(), ids=SOUND)
def test_what_shapes_are_made_of_is_computed_at_once(made: Node, given_: list[Array]) -> None:
    require_same(made, given_, is_sound=True)


def test_operands_that_are_left_out_and_old_forms_are_left_to_others() -> None:
    assert fold_with_numpy(node("Slice", 3, 9), [ints([1]), ints([0]), ints([1])]) is None
    assert fold_with_numpy(node("Reshape", 1, 1, shape=(1,)), [ints([1])]) is None
    assert fold_with_numpy(node("Gather", 2), [ints([1]), None]) is None
    assert fold_with_numpy(node("Erf", 1), [ints([1])]) is None

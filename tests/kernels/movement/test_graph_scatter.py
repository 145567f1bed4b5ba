"""Elements by index, and the largest ones, against naive loops, onnxruntime and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Fault
from tests.kernels.oracle_data import (
    EVERY,
    FLOATS,
    INTEGERS,
    Array,
    Dims,
    Operand,
    attempted,
    computed,
    held,
    layouts,
    made,
    reason,
    same_bits,
    same_values,
    seeds,
    small,
)
from tests.kernels.oracle_views import onnx_result

every_type = st.sampled_from(EVERY)
index_type = st.sampled_from(["i32", "i64"])


def indices(dtype: str, shape: Dims, size: int, seed: int) -> Operand:
    rng = np.random.default_rng(seed)
    return dtype, np.asarray(rng.integers(-size, size, shape)).astype(held(dtype))


MISFITS: tuple[tuple[str, tuple[Dims, ...], dict[str, Any], str], ...] = (
    ("GatherAxis", ((2, 3), (4,)), {"axis": 2}, "`axis` is 2, expected -2 to 1"),
    ("GatherAxis", ((), (4,)), {"axis": 0}, "the tensor is a scalar"),
    ("GatherElements", ((2, 3), (4,)), {"axis": 0}, "`indices` has the shape [4], expected 2"),
    ("GatherElements", ((2, 3), (1, 4)), {"axis": 0}, "expected at most 3 along axis 1"),
    ("GatherNd", ((), (1,)), {}, "`input` has the shape []"),
    ("GatherNd", ((2,), ()), {}, "`indices` has the shape []"),
    ("GatherNd", ((2, 3), (2, 3)), {}, "has the size 3, expected at most 2"),
    ("GatherNd", ((2, 3), (2, 2)), {"batch_dims": 1}, "has the size 2, expected at most 1"),
    ("GatherNd", ((2, 3), (3, 1)), {"batch_dims": 1}, "expected it to begin with [2]"),
    ("GatherNd", ((2, 3), (2, 1)), {"batch_dims": 2}, "`batch_dims` is 2, expected 0 to 1"),
    ("GatherNd", ((2, 3), (2, 1)), {"batch_dims": -1}, "`batch_dims` is -1"),
    ("ScatterElements", ((2, 3), (2, 3), (2, 2)), {"axis": 0}, "`updates` has the shape [2, 2]"),
    ("ScatterElements", ((2,), (3, 1), (3, 1)), {"axis": 0}, "expected 1 axes"),
    ("ScatterElements", ((2,), (2,), (2,)), {"axis": 0, "reduction": "xor"}, "`xor`, expected"),
    ("ScatterNd", ((2, 3), (4, 1), (4, 2)), {}, "[4, 2], expected [4, 3]"),
    ("ScatterNd", ((2, 3), (4, 3), (4,)), {}, "expected at most 2"),
    ("ScatterRows", ((), (), ()), {}, "`input` has the shape []"),
    ("ScatterRows", ((4, 2), (1, 1), (1, 1, 2)), {}, "`indices` has the shape [1, 1]"),
    ("ScatterRows", ((4, 2), (3,), (2, 2)), {}, "`rows` has the shape [2, 2], expected [3, 2]"),
    ("ScatterRows", ((4, 2), (), (2, 2)), {}, "`rows` has the shape [2, 2], expected [2]"),
    ("TopKValues", ((4,),), {"k": 5, "axis": 0}, "`k` is 5, expected 1 to 4"),
    ("TopKValues", ((4,),), {"k": 0, "axis": 0}, "`k` is 0"),
    ("TopKIndices", ((),), {"k": 1, "axis": 0}, "the tensor is a scalar"),
    ("OneHot", ((4,), (3,)), {"depth": 2}, "`values` has the shape [3], expected [2]"),
    ("OneHot", ((4,), (2,)), {"depth": 0}, "`depth` has 0, expected at least 1"),
    ("OneHot", ((4,), (2,)), {"depth": 2, "axis": 2}, "`axis` is 2, expected -2 to 1"),
    ("DynamicSlice", ((), (1,)), {"sizes": ()}, "`input` has the shape []"),
    ("DynamicSlice", ((4, 4), (2,)), {"sizes": (1,)}, "`sizes` has 1 entries, expected 2"),
    ("DynamicSlice", ((4, 4), (1,)), {"sizes": (1, 1)}, "`starts` has the shape [1]"),
    ("DynamicSlice", ((4, 4), (2,)), {"sizes": (1, 5)}, "5 along axis 1, expected 1 to 4"),
    ("DynamicSlice", ((4, 4), (2,)), {"sizes": (0, 1)}, "0 along axis 0"),
    ("DynamicUpdate", ((4, 4), (4,), (2,)), {}, "`update` has the shape [4], expected 2 axes"),
    ("DynamicUpdate", ((4, 4), (5, 1), (2,)), {}, "`update` has 5 along axis 0"),
)


@pytest.mark.parametrize(("opcode", "shapes", "given_", "told"), MISFITS)
def test_misfits(opcode: str, shapes: tuple[Dims, ...], given_: dict[str, Any], told: str) -> None:
    found = reason(opcode, shapes, **given_)
    assert found is not None
    assert told in found


@given(every_type, index_type, small, layouts, seeds, st.data())
def test_gather_axis(
    dtype: str, by: str, dims: Dims, layout: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    x, at = made(dtype, dims, seed), indices(by, shape, dims[axis], seed)
    before = dims[: axis % len(dims)]
    expected = np.empty((*before, *shape, *dims[axis % len(dims) + 1 :]), held(dtype))
    for front in np.ndindex(*before):
        for place in np.ndindex(*shape):
            expected[(*front, *place)] = x[1][(*front, int(at[1][place]))]
    same_bits(computed("GatherAxis", x, at, axis=axis, memory=layout), expected)


def sub_shape(dims: Dims, axis: int, data: st.DataObject) -> Dims:
    """A shape for indices along an axis: as long as one likes there, elsewhere no longer."""
    most = [5 if at == axis % len(dims) else dim for at, dim in enumerate(dims)]
    return tuple(data.draw(st.integers(1, m)) for m in most)


@given(every_type, index_type, small, layouts, seeds, st.data())
def test_gather_elements(
    dtype: str, by: str, dims: Dims, layout: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    shape = sub_shape(dims, axis, data)
    x, at = made(dtype, dims, seed), indices(by, shape, dims[axis], seed)
    expected = np.empty(shape, held(dtype))
    for place in np.ndindex(shape):
        source = list(place)
        source[axis] = int(at[1][place])
        expected[place] = x[1][tuple(source)]
    same_bits(computed("GatherElements", x, at, axis=axis, memory=layout), expected)


@given(every_type, index_type, small, layouts, seeds, st.data())
def test_gather_nd(
    dtype: str, by: str, dims: Dims, layout: str, seed: int, data: st.DataObject
) -> None:
    batch = data.draw(st.integers(0, len(dims) - 1))
    depth = data.draw(st.integers(1, len(dims) - batch))
    middle = data.draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    front = (*dims[:batch], *middle)
    x = made(dtype, dims, seed)
    parts = [indices(by, front, dims[batch + i], seed + i)[1] for i in range(depth)]
    at = by, np.stack(parts, -1)
    expected = np.empty((*front, *dims[batch + depth :]), held(dtype))
    for place in np.ndindex(*front):
        expected[place] = x[1][(*place[:batch], *(int(i) for i in at[1][place]))]
    found = computed("GatherNd", x, at, batch_dims=batch, memory=layout)
    same_bits(found, expected)
    if dtype == "f32" and by == "i64":
        (other,) = onnx_result("GatherND", [x[1], at[1]], {"batch_dims": batch})
        same_bits(found, other)


def combined(word: str, held_value: float, update: float, dtype: str) -> float:
    """One step of a scatter in Python's own numbers."""
    if word == "none":
        return update
    if word in ("min", "max"):
        if held_value != held_value or update != update:
            return float("nan")
        return min(held_value, update) if word == "min" else max(held_value, update)
    elem = GRAPH_TYPES[dtype]
    total: float = held_value + update if word == "add" else held_value * update
    if dtype == "bool":
        return bool(total)
    if elem.is_integer:
        low = int(elem.lowest)
        return (int(total) - low) % (1 << elem.bits) + low
    return total


def scattered(x: Operand, places: list[tuple[int, ...]], updates: Array, word: str) -> Array:
    """Updates put one by one; floats up to 32 bits held in f32."""
    dtype, array = x
    elem = GRAPH_TYPES[dtype]
    wide: Any = np.float64 if elem.bits > 32 else np.float32
    number: Any = int if elem.is_integer else wide
    held_values = {place: number(array[place]) for place in np.ndindex(array.shape)}
    with np.errstate(all="ignore"):
        for place, update in zip(places, updates.reshape(-1), strict=True):
            held_values[place] = combined(word, held_values[place], number(update), dtype)
        result = np.empty_like(array)
        for place, value in held_values.items():
            result[place] = value
    return result


@given(
    every_type,
    index_type,
    small,
    st.sampled_from(["none", "add", "mul", "min", "max"]),
    layouts,
    seeds,
    st.data(),
)
def test_scatter_elements(
    dtype: str, by: str, dims: Dims, word: str, layout: str, seed: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    shape = sub_shape(dims, axis, data)
    x, updates = made(dtype, dims, seed), made(dtype, shape, seed + 1)
    at = indices(by, shape, dims[axis], seed)
    places = []
    for place in np.ndindex(shape):
        target = list(place)
        target[axis] = int(at[1][place]) % dims[axis]
        places.append(tuple(target))
    found = computed("ScatterElements", x, at, updates, axis=axis, reduction=word, memory=layout)
    expected = scattered(x, places, updates[1], word)
    (same_bits if word == "none" else same_values)(found, expected)


@given(
    every_type, index_type, small, st.sampled_from(["none", "add", "mul", "min", "max"]), seeds,
    st.data(),
)  # fmt: skip
def test_scatter_nd(
    dtype: str, by: str, dims: Dims, word: str, seed: int, data: st.DataObject
) -> None:
    depth = data.draw(st.integers(1, len(dims)))
    front = data.draw(st.lists(st.integers(1, 4), max_size=2).map(tuple))
    x, updates = made(dtype, dims, seed), made(dtype, (*front, *dims[depth:]), seed + 1)
    parts = [indices(by, front, dims[i], seed + i)[1] for i in range(depth)]
    at = by, np.stack(parts, -1)
    places = [
        (*(int(v) % dims[i] for i, v in enumerate(at[1][place])), *rest)
        for place in np.ndindex(*front)
        for rest in np.ndindex(*dims[depth:])
    ]
    found = computed("ScatterNd", x, at, updates, reduction=word)
    expected = scattered(x, places, updates[1], word)
    (same_bits if word == "none" else same_values)(found, expected)


@given(every_type, small, layouts, seeds, st.data())
def test_scatter_rows(dtype: str, dims: Dims, layout: str, seed: int, data: st.DataObject) -> None:
    front = data.draw(st.lists(st.integers(1, 5), max_size=1).map(tuple))
    x, rows = made(dtype, dims, seed), made(dtype, (*front, *dims[1:]), seed + 1)
    at = indices("i64", front, dims[0], seed)
    expected = x[1].copy()
    for place in np.ndindex(*front):
        expected[int(at[1][place])] = rows[1][place]
    same_bits(computed("ScatterRows", x, at, rows, memory=layout), expected)
    if not front:
        same_bits(computed("ScatterRows", x, at, (dtype, rows[1][None])), expected)


FAULTS: tuple[tuple[str, tuple[Operand, ...], dict[str, Any], str, Dims], ...] = (
    ("GatherAxis", (("f32", np.zeros((2, 3))), ("i64", np.array([[0, 3], [9, 1]]))), {"axis": 1},
     "index is 3, expected -3 to 2 along axis 1", (0, 1)),
    ("GatherAxis", (("f32", np.zeros(2)), ("i32", np.array(-3))), {"axis": 0},
     "index is -3, expected -2 to 1 along axis 0", ()),
    ("GatherAxis", (("f32", np.zeros(2)), ("i64", np.array([2**63 - 1]))), {"axis": 0},
     f"index is {2**63 - 1}", (0,)),
    ("GatherAxis", (("f32", np.zeros(2)), ("i64", np.array([-(2**63)]))), {"axis": 0},
     f"index is {-2**63}", (0,)),
    ("GatherElements", (("f32", np.zeros((2, 3))), ("i64", np.array([[1, 2, 0]]))), {"axis": 0},
     "index is 2, expected -2 to 1 along axis 0", (0, 1)),
    ("GatherNd", (("f32", np.zeros((2, 3))), ("i64", np.array([[0, 1], [1, 3]]))), {},
     "index is 3, expected -3 to 2 along axis 1", (1, 1)),
    ("ScatterElements", (("f32", np.zeros(2)), ("i64", np.array([5])), ("f32", np.ones(1))),
     {"axis": 0}, "index is 5", (0,)),
    ("ScatterNd", (("f32", np.zeros(2)), ("i64", np.array([[-5]])), ("f32", np.ones(1))), {},
     "index is -5", (0, 0)),
    ("ScatterRows", (("f32", np.zeros(2)), ("i64", np.array([0, 2])), ("f32", np.ones(2))),
     {}, "index is 2, expected -2 to 1 along axis 0", (1,)),
)  # fmt: skip


@pytest.mark.parametrize(("opcode", "operands", "given_", "told", "position"), FAULTS)
@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_faults(
    opcode: str, operands: tuple[Operand, ...], given_: dict[str, Any], told: str, position: Dims,
    layout: str,
) -> None:  # fmt: skip
    cast = [(dtype, array.astype(held(dtype))) for dtype, array in operands]
    _, fault = attempted(opcode, *cast, memory=layout, **given_)
    assert isinstance(fault, Fault)
    assert fault.is_fatal
    assert fault.kind == "index"
    assert told in fault.message
    assert fault.position == position


def order(value: float) -> tuple[bool, float]:
    """How elements compare: NaN above all."""
    return (value != value, 0.0 if value != value else value)


@given(
    st.sampled_from(FLOATS + INTEGERS), small, st.booleans(), layouts, seeds, st.booleans(),
    st.data(),
)  # fmt: skip
def test_top_k(
    dtype: str, dims: Dims, largest: bool, layout: str, seed: int, few: bool, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    dims = tuple(3 * dim if at == axis % len(dims) else dim for at, dim in enumerate(dims))
    k = data.draw(st.integers(1, dims[axis]))
    x = made(dtype, dims, seed)
    if few:  # many ties
        low = 0 if GRAPH_TYPES[dtype].kind == "unsigned" else -1
        x = dtype, np.random.default_rng(seed).integers(low, 2, dims).astype(held(dtype))
    lines, number = np.moveaxis(x[1], axis, -1), int if GRAPH_TYPES[dtype].is_integer else float
    expected = np.empty((*lines.shape[:-1], k), np.int64)
    for place in np.ndindex(lines.shape[:-1]):
        ranks = [order(number(value)) for value in lines[place]]
        # A reversed sort keeps equal ones in order too.
        places = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=largest)
        expected[place] = places[:k]
    found = computed("TopKIndices", x, k=k, axis=axis, largest=largest, memory=layout)
    same_bits(found, np.ascontiguousarray(np.moveaxis(expected, -1, axis)))
    values = computed("TopKValues", x, k=k, axis=axis, largest=largest, memory=layout)
    same_bits(values, np.take_along_axis(x[1], found, axis))


@given(index_type, every_type, st.lists(st.integers(1, 4), max_size=2).map(tuple), seeds, st.data())
def test_one_hot(by: str, dtype: str, dims: Dims, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(dims) - 1, len(dims)))
    depth = data.draw(st.integers(1, 4))
    at, values = indices(by, dims, depth + 2, seed), made(dtype, (2,), seed)
    shape = list(dims)
    shape.insert(axis % (len(dims) + 1), depth)
    expected = np.full(shape, values[1][0])
    for place in np.ndindex(dims):
        index = int(at[1][place])
        if -depth <= index < depth:
            target = list(place)
            target.insert(axis % (len(dims) + 1), index)
            expected[tuple(target)] = values[1][1]
    found = computed("OneHot", at, values, depth=depth, axis=axis)
    same_bits(found, expected)
    if dtype == "f32" and by == "i64" and dims:
        arrays = [at[1], np.array(depth, np.int64), values[1]]
        (other,) = onnx_result("OneHot", arrays, {"axis": axis}, [np.float32])
        same_bits(found, other)


@given(every_type, index_type, small, layouts, seeds, st.data())
def test_dynamic_parts(
    dtype: str, by: str, dims: Dims, layout: str, seed: int, data: st.DataObject
) -> None:
    sizes = tuple(data.draw(st.integers(1, dim)) for dim in dims)
    starts = [data.draw(st.integers(-9, 9) | st.just(2**31 - 1)) for _ in dims]
    moved = [min(max(s, 0), d - n) for s, d, n in zip(starts, dims, sizes, strict=True)]
    part = tuple(slice(at, at + n) for at, n in zip(moved, sizes, strict=True))
    x, update = made(dtype, dims, seed), made(dtype, sizes, seed + 1)
    at = by, np.array(starts, held(by))
    same_bits(computed("DynamicSlice", x, at, sizes=sizes, memory=layout), x[1][part].copy())
    expected = x[1].copy()
    expected[part] = update[1]
    same_bits(computed("DynamicUpdate", x, update, at, memory=layout), expected)


@given(small, st.sampled_from(["add", "mul", "min", "max"]), seeds, st.data())
def test_scatter_as_pytorch(dims: Dims, word: str, seed: int, data: st.DataObject) -> None:
    torch = pytest.importorskip("torch")
    axis = data.draw(st.integers(0, len(dims) - 1))
    shape = sub_shape(dims, axis, data)
    assume(all(s <= d for s, d in zip(shape, dims, strict=True)))
    x, updates = made("f64", dims, seed), made("f64", shape, seed + 1)
    at = np.abs(indices("i64", shape, dims[axis], seed)[1]) % dims[axis]
    names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
    expected = torch.from_numpy(x[1].copy()).scatter_reduce(
        axis, torch.from_numpy(at), torch.from_numpy(updates[1]), names[word]
    )
    found = computed("ScatterElements", x, ("i64", at), updates, axis=axis, reduction=word)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-14)

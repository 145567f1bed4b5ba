"""The ops of Core IR against element-by-element Python, and against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import trunc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.core_ops import CORE_OPS
from nacre.kernels.interface.call import Call, Fault, Work
from tests.kernels.oracle_views import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Array,
    Dims,
    assert_same,
    onnx_result,
    perform,
    random_values,
    seeds,
    tensor,
)

OPS = {row.name.removeprefix("core."): row for row in CORE_OPS}
WHOLE, REAL = [*INTEGERS, "i64"], [*FLOATS, "f64"]

any_elem = st.sampled_from(WHOLE + REAL)
layouts = st.sampled_from(LAYOUTS)
dims = st.lists(st.integers(1, 4), max_size=3).map(tuple)


def run(
    op: str,
    elem: str,
    arrays: Sequence[Array],
    attributes: dict[str, Any] | None = None,
    *,
    layout: str = "dense",
    ordered: bool = False,
    by: str | None = None,
) -> Array:
    """The output of an op that cannot fail; `by` is the type of its second operand."""
    shape = OPS[op].shape([array.shape for array in arrays], attributes or {})
    assert shape is not None
    types = [tensor(elem, array.shape) for array in arrays]
    if by is not None:
        types[1] = tensor(by, arrays[1].shape)
    (found,), fault = perform(
        OPS[op],
        arrays,
        types,
        [tensor(elem, shape[0])],
        attributes or {},
        layout=layout,
        ordered=ordered,
    )
    assert fault is None
    return found


def wrapped(value: int, elem: str) -> int:
    lowest, span = int(ELEMENTS[elem].lowest), 1 << ELEMENTS[elem].bits
    return (value - lowest) % span + lowest


def wide(elem: str) -> Callable[[Any], Any]:
    """The numbers that an element type is computed in."""
    if ELEMENTS[elem].is_integer:
        return int
    return np.float64 if elem == "f64" else np.float32


def stored(values: Sequence[Any], shape: Sequence[int], elem: str) -> Array:
    if ELEMENTS[elem].is_integer:
        values = [wrapped(int(value), elem) for value in values]
    with np.errstate(all="ignore"):
        return np.array(values).astype(tensor(elem, ()).dtype).reshape(tuple(shape))


@given(st.data(), any_elem, st.sampled_from(["Add", "Sub", "Mul"]), dims, layouts, seeds)
def test_binary_operations_broadcast_and_wrap(
    data: st.DataObject, elem: str, op: str, shape: Dims, layout: str, seed: int
) -> None:
    other = tuple(data.draw(st.sampled_from((1, dim))) for dim in shape)
    other = other[data.draw(st.integers(0, len(shape))) :]
    a = random_values(elem, shape, seed, odd=True)
    b = random_values(elem, other, seed + 1, odd=True)
    if data.draw(st.booleans()):
        a, b = b, a
    number = wide(elem)
    calculate = {"Add": lambda p, q: p + q, "Sub": lambda p, q: p - q, "Mul": lambda p, q: p * q}
    pairs = zip(*(side.ravel().tolist() for side in np.broadcast_arrays(a, b)), strict=True)
    with np.errstate(all="ignore"):
        expected = [calculate[op](number(p), number(q)) for p, q in pairs]

    found = run("BinOp", elem, [a, b], {"op": op}, layout=layout)

    assert_same(found, stored(expected, shape, elem))


@st.composite
def reductions(draw: st.DrawFn) -> tuple[Dims, dict[str, Any]]:
    shape = draw(dims)
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    signed = tuple(axis - draw(st.sampled_from((0, len(shape)))) for axis in axes)
    return shape, {"axes": signed, "keepdims": draw(st.booleans())}


def groups(x: Array, axes: Dims) -> list[list[Any]]:
    """The elements that fall together, in row-major order; no axis means all of them."""
    gone = {axis % x.ndim for axis in axes} if axes else set(range(x.ndim))
    found: dict[Dims, list[Any]] = {}
    for place in product(*(range(dim) for dim in x.shape)):
        key = tuple(at for axis, at in enumerate(place) if axis not in gone)
        found.setdefault(key, []).append(x[place])
    return list(found.values())


def reduced_shape(shape: Dims, axes: Dims, keepdims: bool) -> Dims:
    if not axes:
        return ()
    gone = {axis % len(shape) for axis in axes}
    if keepdims:
        return tuple(1 if axis in gone else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in gone)


def total_of(members: list[Any], elem: str) -> Any:  # noqa: ANN401
    number = wide(elem)
    total = number(members[0])
    for member in members[1:]:
        total = total + number(member)
    return total


@given(reductions(), any_elem, layouts, seeds)
def test_sums_and_means(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    members = groups(x, attributes["axes"])
    with np.errstate(all="ignore"):
        sums = [total_of(group, elem) for group in members]
        if ELEMENTS[elem].is_integer:
            means = [trunc(Fraction(s, len(g))) for s, g in zip(sums, members, strict=True)]
        else:
            means = [s / wide(elem)(len(g)) for s, g in zip(sums, members, strict=True)]
    result = reduced_shape(shape, **attributes)

    found = run("Sum", elem, [x], attributes, layout=layout, ordered=True)
    mean = run("Mean", elem, [x], attributes, layout=layout, ordered=True)

    assert_same(found, stored(sums, result, elem))
    assert_same(mean, stored(means, result, elem))


@given(reductions(), seeds)
def test_sums_and_means_in_any_order_are_close(
    case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    for elem, error in (("f32", 2.0**-23), ("f64", 2.0**-52)):
        x = random_values(elem, shape, seed)
        size = float(np.abs(x).sum()) * x.size
        for op in ("Sum", "Mean"):
            found = run(op, elem, [x], attributes)
            exact = run(op, elem, [x], attributes, ordered=True)
            np.testing.assert_allclose(found, exact, rtol=0, atol=size * error)


def test_a_missing_keepdims_means_false() -> None:
    assert OPS["Sum"].shape([(2, 3)], {"axes": (1,)}) == [(2,)]


def test_the_mean_of_integers_is_exact_where_their_sum_leaves_64_bits() -> None:
    ends = np.iinfo(np.int64)
    for values in ([ends.max] * 3, [ends.min] * 3, [ends.max, ends.max - 1], [ends.min, -1]):
        x = np.array(values)
        expected = trunc(Fraction(sum(values), len(values)))
        assert run("Mean", "i64", [x], {"axes": (), "keepdims": False}) == expected


@given(dims, any_elem, layouts, seeds)
def test_ops_that_only_move_elements(shape: Dims, elem: str, layout: str, seed: int) -> None:
    x = random_values(elem, shape, seed, odd=True)
    rank = len(shape)

    def moved(op: str, **attributes: Any) -> Array:  # noqa: ANN401
        return run(op, elem, [x], attributes, layout=layout)

    assert_same(moved("Reshape", new_shape=(1, -1)), x.reshape(1, -1))
    assert_same(moved("Transpose", permutation=tuple(range(rank))[::-1]), x.T)
    new = (1, *shape[:-1], 1, *shape[-1:])  # the first is in by the time of the second
    assert_same(moved("ExpandDims", axes=(rank, 0)), x.reshape(new))
    ones = tuple(axis for axis, dim in enumerate(shape) if dim == 1)
    assert_same(moved("Squeeze", axes=ones), x.reshape([dim for dim in shape if dim != 1]))
    last = tuple(dim - 1 for dim in shape)
    assert_same(moved("Index", indices=last), np.asarray(x[last]))


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((3, 4), (0, 2), (1, 3, 1, 4)),
        ((3, 4), (2, 0), (1, 3, 1, 4)),
        ((3,), (0, 0), (1, 1, 3)),
        ((), (0,), (1,)),
        ((3, 4), (5,), None),
        ((3, 4), (-1,), None),
    ],
)
def test_new_axes_are_inserted_one_after_the_other(
    shape: Dims, axes: Dims, expected: Dims | None
) -> None:
    found = OPS["ExpandDims"].shape([shape], {"axes": axes})

    assert found == (None if expected is None else [expected])


@given(st.data(), any_elem, layouts, seeds)
def test_a_slice_stops_at_the_ends_of_its_axes(
    data: st.DataObject, elem: str, layout: str, seed: int
) -> None:
    shape = data.draw(dims)
    starts = tuple(data.draw(st.integers(-3, dim - 1)) for dim in shape)
    ends = tuple(max(start, 0) + data.draw(st.integers(1, 6)) for start in starts)
    steps = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    x = random_values(elem, shape, seed, odd=True)
    parts = zip(shape, starts, ends, steps, strict=True)
    chosen = [[i for i in range(max(s, 0), e, t) if i < dim] for dim, s, e, t in parts]
    taken = np.array([x[place] for place in product(*chosen)], x.dtype)

    attributes = {"starts": starts, "ends": ends, "steps": steps}
    found = run("Slice", elem, [x], attributes, layout=layout)

    assert_same(found, taken.reshape([len(part) for part in chosen]))


@given(any_elem, st.sampled_from(["i32", "i64"]), dims, dims, layouts, seeds)
def test_gathering_along_the_first_axis(
    elem: str, by: str, rest: Dims, index_shape: Dims, layout: str, seed: int
) -> None:
    x = random_values(elem, (3, *rest), seed, odd=True)
    indices = np.asarray(np.random.default_rng(seed).integers(0, 3, index_shape))

    found = run("Gather", elem, [x, indices], layout=layout, by=by)

    rows = [x[int(at)] for at in indices.ravel()]
    assert_same(found, np.array(rows, x.dtype).reshape(index_shape + rest))


def test_an_index_outside_of_the_tensor_is_a_fault() -> None:
    x, output = np.zeros((2, 3), np.int8), tensor("i8", ())
    types = [tensor("i8", x.shape)]
    for indices, message in (
        ((0, 3), "index is 3, expected 0 to 2 along axis 1"),
        ((-1, 0), "index is -1, expected 0 to 1 along axis 0"),
    ):
        (found,), fault = perform(OPS["Index"], [x], types, [output], {"indices": indices})
        assert fault == Fault("index", message, indices)
        assert found == 77

    types.append(tensor("i64", (1,)))
    (_,), fault = perform(OPS["Gather"], [x, np.array([-1])], types, [tensor("i8", (1, 3))], {})
    assert fault == Fault("index", "index is -1, expected 0 to 1 along axis 0", (0,))


def multiplied(a: Array, b: Array, elem: str) -> Array:
    """A product of matrices, every sum in ascending order of k."""
    number = wide(elem)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    shape = (*batch, a.shape[-2], b.shape[-1])
    sums = []
    with np.errstate(all="ignore"):
        for *outer, m, n in product(*(range(dim) for dim in shape)):
            total = number(0)
            for k in range(a.shape[-1]):
                total = total + number(left[*outer, m, k]) * number(right[*outer, k, n])
            sums.append(total)
    return stored(sums, shape, elem)


sizes = st.integers(1, 4)


@given(st.data(), any_elem, layouts, seeds)
def test_matrix_products(data: st.DataObject, elem: str, layout: str, seed: int) -> None:
    m, k, n = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    batch = data.draw(st.sampled_from([((), ()), ((2,), ()), ((2, 1), (3,)), ((1,), (2,))]))
    a = random_values(elem, (*batch[0], m, k), seed, odd=True)
    b = random_values(elem, (*batch[1], k, n), seed + 1, odd=True)

    found = run("MatMul", elem, [a, b], layout=layout, ordered=True)

    assert_same(found, multiplied(a, b, elem))


@given(st.data(), any_elem, layouts, seeds)
def test_products_of_vectors(data: st.DataObject, elem: str, layout: str, seed: int) -> None:
    m, k, n = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    a = random_values(elem, data.draw(st.sampled_from([(k,), (m, k)])), seed)
    b = random_values(elem, data.draw(st.sampled_from([(k,), (k, n)])), seed + 1)
    full = multiplied(np.atleast_2d(a), b if b.ndim == 2 else b[:, None], elem)

    found = run("Dot", elem, [a, b], layout=layout, ordered=True)

    assert_same(found, full.reshape(a.shape[:-1] + b.shape[1:]))


@given(st.data(), st.sampled_from(REAL), seeds)
def test_products_in_any_order_are_close(data: st.DataObject, elem: str, seed: int) -> None:
    m, k, n = data.draw(sizes), data.draw(st.integers(1, 40)), data.draw(sizes)
    a, b = random_values(elem, (m, k), seed), random_values(elem, (k, n), seed + 1)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    # An error for each product and sum, and the one of rounding the result.
    computed = k * {"f64": 2.0**-52}.get(elem, 2.0**-23)
    rounding = {"f16": 2.0**-11, "bf16": 2.0**-8}.get(elem, 0.0)

    found = run("MatMul", elem, [a, b]).astype(np.float64)

    assert np.all(np.abs(found - exact) <= size * (computed + rounding))


def test_long_sums_of_integers_wrap_and_do_not_saturate() -> None:
    for elem in WHOLE:
        lowest, highest = int(ELEMENTS[elem].lowest), int(ELEMENTS[elem].highest)
        a = np.full((1, 3000), highest, tensor(elem, ()).dtype)
        b = np.full((3000, 1), lowest or highest, a.dtype)
        expected = wrapped(3000 * highest * (lowest or highest), elem)
        assert run("MatMul", elem, [a, b]).item() == expected


def padding_of(padding: Any, size: int, window: int, stride: int, axis: int) -> tuple[int, int]:  # noqa: ANN401
    if padding == "Valid":
        return 0, 0
    if padding == "Same":
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        return total // 2, total - total // 2
    begin, end = padding[axis]
    return begin, end


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Dims, Dims, dict[str, Any]]:
    window = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size = tuple(draw(st.integers(extent, 5)) for extent in window)
    channels, filters = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pair = st.tuples(st.integers(0, 2), st.integers(0, 2))
    padding = draw(st.sampled_from(["Same", "Valid"]) | st.tuples(pair, pair))
    strides = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    x = (draw(st.integers(1, 2)), *size, channels)
    return x, (*window, channels, filters), {"strides": strides, "padding": padding}


def convolved(x: Array, w: Array, attributes: dict[str, Any], elem: str) -> Array:
    """Every window of the padded tensor as a row, times the weights."""
    kernel, strides = w.shape[:2], attributes["strides"]
    pads = [
        padding_of(attributes["padding"], x.shape[1 + i], kernel[i], strides[i], i) for i in (0, 1)
    ]
    wide_x = np.pad(x, [(0, 0), *pads, (0, 0)])
    counts = [(wide_x.shape[1 + i] - kernel[i]) // strides[i] + 1 for i in (0, 1)]
    rows = []
    for n, i, j in product(range(x.shape[0]), *(range(count) for count in counts)):
        top, left = i * strides[0], j * strides[1]
        rows.append(wide_x[n, top : top + kernel[0], left : left + kernel[1]].ravel())
    result = multiplied(np.array(rows), w.reshape(-1, w.shape[-1]), elem)
    return result.reshape(x.shape[0], *counts, w.shape[-1])


@given(convolutions(), any_elem, layouts, seeds)
def test_convolutions(
    case: tuple[Dims, Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    x_shape, w_shape, attributes = case
    x, w = random_values(elem, x_shape, seed), random_values(elem, w_shape, seed + 1)

    found = run("Conv2d", elem, [x, w], attributes, layout=layout, ordered=True)

    assert_same(found, convolved(x, w, attributes, elem))


@given(convolutions(), seeds)
def test_convolutions_are_those_of_onnxruntime(
    case: tuple[Dims, Dims, dict[str, Any]], seed: int
) -> None:
    x_shape, w_shape, attributes = case
    x, w = random_values("f32", x_shape, seed), random_values("f32", w_shape, seed + 1)
    padding = attributes["padding"]
    other: dict[str, Any] = {"strides": attributes["strides"]}
    if padding == "Same":
        other["auto_pad"] = "SAME_UPPER"
    elif padding != "Valid":
        (top, bottom), (left, right) = padding
        other["pads"] = (top, left, bottom, right)
    inputs = [x.transpose(0, 3, 1, 2).copy(), w.transpose(3, 2, 0, 1).copy()]
    (expected,) = onnx_result("Conv", inputs, other)

    found = run("Conv2d", "f32", [x, w], attributes)

    bound = float(np.abs(x).max() * np.abs(w).max()) * w.size**2 * 2.0**-23
    np.testing.assert_allclose(found, expected.transpose(0, 2, 3, 1), rtol=0, atol=bound)


@given(dims, any_elem, layouts, seeds)
def test_relu_and_negation(shape: Dims, elem: str, layout: str, seed: int) -> None:
    x = random_values(elem, shape, seed, odd=True)
    number = wide(elem)
    values = [number(value) for value in x.ravel()]

    relu = run("Relu", elem, [x], layout=layout)
    negative = run("Neg", elem, [x], layout=layout)

    assert_same(relu, stored([v if v > 0 else number(0) for v in values], shape, elem))
    assert_same(negative, stored([-v for v in values], shape, elem))
    if not ELEMENTS[elem].is_integer:
        assert not np.signbit(relu.astype(np.float64)).any()  # of -0.0 and NaN too


@pytest.mark.parametrize(("op", "exact"), [("Exp", np.exp), ("Log", np.log)])
@given(shape=dims, elem=st.sampled_from(REAL), layout=layouts, seed=seeds)
def test_exponentials_and_logarithms(
    op: str,
    exact: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    shape: Dims,
    elem: str,
    layout: str,
    seed: int,
) -> None:
    x = random_values(elem, shape, seed, odd=True)
    with np.errstate(all="ignore"):
        expected = np.asarray(exact(x.astype(np.float64))).astype(x.dtype)

    found = run(op, elem, [x], layout=layout)

    # Half floats round the f32 value: one unit where that falls to the other side of a half.
    ulps = {"f32": 4, "f64": 4}.get(elem, 1)
    bits = np.dtype(f"i{x.dtype.itemsize}")
    known = ~np.isnan(expected.astype(np.float64))
    distance = found.view(bits).astype(object) - expected.view(bits).astype(object)
    assert np.all(np.abs(np.where(known, distance, 0)) <= ulps)
    assert np.array_equal(np.isnan(found.astype(np.float64)), ~known)


@pytest.mark.parametrize("op", ["Exp", "Log"])
def test_integers_have_no_exponential(op: str) -> None:
    type_ = tensor("i32", (2,))

    with pytest.raises(ValueError, match="of i32, expected floats"):
        OPS[op].bind(Call((type_,), (type_,)))


@pytest.mark.parametrize("op", ["Relu", "Neg", "Exp"])
def test_elementwise_ops_may_write_over_their_input(op: str) -> None:
    x = np.array([-1.5, 0.0, 2.0], np.float32)
    type_ = tensor("f32", x.shape)
    expected = run(op, "f32", [x])

    OPS[op].bind(Call((type_,), (type_,)))([x], [x])

    assert_same(x, expected)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("BinOp", [(3, 4), (3, 5)], {"op": "Add"}),
        ("BinOp", [(3,), (3,)], {"op": "Divide"}),
        ("BinOp", [(3,)], {"op": "Add"}),
        ("Sum", [(2, 3)], {"axes": (2,)}),
        ("Sum", [(2, 3)], {"axes": (1, -1)}),
        ("Mean", [(2, 3)], {}),
        ("Reshape", [(2, 3)], {"new_shape": (2, 4)}),
        ("Reshape", [(2, 3)], {"new_shape": (-1, 4)}),
        ("Reshape", [(2, 3)], {"new_shape": (-1, -1)}),
        ("Reshape", [(2, 3)], {"new_shape": (-2, -3)}),
        ("Reshape", [(2, 3)], {"new_shape": (0, 6)}),
        ("Transpose", [(2, 3)], {"permutation": (0, 0)}),
        ("Squeeze", [(1, 3)], {"axes": (1,)}),
        ("Squeeze", [(1, 3)], {"axes": (0, 0)}),
        ("Squeeze", [(1, 3)], {"axes": (2,)}),
        ("Squeeze", [(1, 3)], {"axes": (-2,)}),
        ("Index", [(2, 3)], {"indices": (0,)}),
        ("Slice", [(4,)], {"starts": (0,), "ends": (4,), "steps": (0,)}),
        ("Slice", [(4,)], {"starts": (3,), "ends": (0,), "steps": (-1,)}),
        ("Slice", [(4,)], {"starts": (2,), "ends": (2,), "steps": (1,)}),
        ("Slice", [(4, 4)], {"starts": (2,), "ends": (3,), "steps": (1,)}),
        ("Gather", [(), (2,)], {}),
        ("Dot", [(2, 3, 4), (4,)], {}),
        ("Dot", [(3,), (4,)], {}),
        ("Dot", [(), (4,)], {}),
        ("MatMul", [(3,), (3, 4)], {}),
        ("MatMul", [(2, 3), (4, 5)], {}),
        ("MatMul", [(2, 3, 4), (3, 4, 5)], {}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 3, 1)], {"strides": (1, 1), "padding": "Same"}),
        ("Conv2d", [(1, 3, 3, 2), (5, 5, 2, 1)], {"strides": (1, 1), "padding": "Valid"}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 2, 1)], {"strides": (1, 0), "padding": "Same"}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 2, 1)], {"strides": (1,), "padding": "Same"}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 2, 1)], {"strides": (1, 1), "padding": "Full"}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 2, 1)], {"strides": (1, 1), "padding": ((1, 1),)}),
        ("Conv2d", [(1, 3, 3, 2), (1, 1, 2, 1)], {"strides": (1, 1), "padding": ((1, 1), (-1, 0))}),
        ("Conv2d", [(3, 3, 2), (1, 1, 2, 1)], {"strides": (1, 1), "padding": "Same"}),
        ("Relu", [], {}),
        ("Relu", [(1,), (1,)], {}),
        ("Relu", [None], {}),
    ],
)
def test_what_does_not_fit_has_no_shape(
    op: str, inputs: list[Dims | None], attributes: dict[str, Any]
) -> None:
    assert OPS[op].shape(inputs, attributes) is None


def test_the_work_of_ops() -> None:
    def work(op: str, inputs: list[Dims], output: Dims, **attributes: Any) -> Work:  # noqa: ANN401
        types = tuple(tensor("f32", shape) for shape in inputs)
        return OPS[op].work(Call(types, (tensor("f32", output),), attributes))

    assert work("BinOp", [(3,), (2, 3)], (2, 3)) == Work(elements=6)
    assert work("Sum", [(2, 3)], ()) == Work(elements=6)
    assert work("Slice", [(9,)], (4,)) == Work(elements=4)
    assert work("Dot", [(5,), (5,)], ()) == Work(macs=5)
    assert work("MatMul", [(2, 3, 4, 5), (2, 3, 5, 6)], (2, 3, 4, 6)) == Work(macs=144 * 5)
    windows = work("Conv2d", [(1, 4, 4, 2), (3, 3, 2, 5)], (1, 2, 2, 5), padding="Valid")
    assert windows == Work(macs=20 * 18)

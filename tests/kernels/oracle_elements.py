"""How the tests of graph ops run a primitive on any element type, and what they compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Fault, TensorType
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_views import perform

Array = npt.NDArray[Any]
Dims = tuple[int, ...]

INTEGERS = [n for n, e in GRAPH_TYPES.items() if e.kind in ("signed", "unsigned")]
FLOATS = [n for n, e in GRAPH_TYPES.items() if e.kind == "float"]
ODD = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0)

shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)


def typed(elem: str, shape: Sequence[int]) -> TensorType:
    return TensorType(GRAPH_TYPES[elem], tuple(shape))


def dtype_of(elem: str) -> np.dtype[Any]:
    return typed(elem, ()).dtype


def attempt(
    op: str,
    elems: Sequence[str],
    arrays: Sequence[Array],
    result: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    ordered: bool = False,
    layout: str = "dense",
) -> tuple[Array, Fault | None]:
    """An op of the given element types, its attributes filled as the evaluator does."""
    spec, primitive = OPS[op], PRIMITIVES[f"core.{op}"]
    defaults = {a.name: a.default for a in spec.attributes if a.default is not None}
    filled = {**defaults, **(attributes or {})}
    shape = primitive.shape([array.shape for array in arrays], filled)
    assert shape is not None
    types = [typed(elem, array.shape) for elem, array in zip(elems, arrays, strict=True)]
    (found,), fault = perform(
        primitive,
        arrays,
        types,
        [typed(result, shape[0])],
        filled,
        ordered=ordered,
        layout=layout,
    )
    return found, fault


def run(
    op: str,
    elem: str,
    arrays: Sequence[Array],
    attributes: Mapping[str, Any] | None = None,
    *,
    result: str | None = None,
    ordered: bool = False,
    layout: str = "dense",
) -> Array:
    """The result of an op whose operands have one type, and which does not fail."""
    found, fault = attempt(
        op, [elem] * len(arrays), arrays, result or elem, attributes, ordered=ordered, layout=layout
    )
    assert fault is None, fault
    return found


def wrapped(value: int, elem: str) -> int:
    lowest, span = int(GRAPH_TYPES[elem].lowest), 1 << GRAPH_TYPES[elem].bits
    return (value - lowest) % span + lowest


def whole_numbers(elem: str, shape: Dims, seed: int) -> Array:
    """Integers from all of the type, small ones and its ends more often."""
    rng = np.random.default_rng(seed)
    low, high = int(GRAPH_TYPES[elem].lowest), int(GRAPH_TYPES[elem].highest)
    values = rng.integers(low, high, shape, np.int64, endpoint=True)
    small = rng.integers(max(low, -4), 4, shape, np.int64, endpoint=True)
    ends = rng.choice(np.array([low, high]), shape)
    pick = rng.integers(0, 4, shape)
    chosen = np.where(pick < 2, small, np.where(pick == 2, ends, values))
    return np.asarray(chosen).astype(dtype_of(elem))


def reals(elem: str, shape: Dims, seed: int, scale: float = 3.0, odd: bool = True) -> Array:
    """Floats around zero, with NaN, infinities and zeros of both signs among them."""
    rng = np.random.default_rng(seed)
    values = np.asarray(rng.standard_normal(shape) * scale)
    if odd:
        pick = rng.integers(0, 15, shape)
        for index, special in enumerate(ODD):
            values = np.where(pick == index, special, values)
    with np.errstate(all="ignore"):
        return values.astype(dtype_of(elem))


def numbers(elem: str, shape: Dims, seed: int) -> Array:
    """Values of any element type."""
    if elem == "bool":
        return np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)
    return (reals if elem in FLOATS else whole_numbers)(elem, shape, seed)


def rounded(values: Array, elem: str) -> Array:
    """Floats in an element type; NumPy and ml_dtypes round f32 once."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype_of(elem))


def doubles(values: Array) -> npt.NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def assert_equal(found: Array, expected: Array) -> None:
    """The same type, shape and values; NaN equals NaN, and -0.0 equals 0.0."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_array_equal(doubles(found), doubles(expected))


def assert_close(
    found: Array, exact: Array, elem: str, ulps: float | Array, least: float = 0.0
) -> None:
    """Within so many ulps of the type's exact result, an absolute error aside."""
    element = dtype_of(elem)
    near = rounded(exact, elem)
    values, wanted = doubles(found), np.asarray(exact, np.float64)
    is_finite = np.isfinite(doubles(near))
    assert found.dtype == element
    np.testing.assert_array_equal(values[~is_finite], doubles(near)[~is_finite])
    with np.errstate(all="ignore"):
        size = np.abs(near.astype(np.float32) if element.itemsize < 4 else near)
        ulp = np.spacing(np.maximum(size, np.finfo(size.dtype).smallest_subnormal))
        ulp = doubles(ulp) * {"f16": 2.0**13, "bf16": 2.0**16}.get(elem, 1.0)
        ulp = np.maximum(ulp, {"f16": 2.0**-24, "bf16": 2.0**-133}.get(elem, 0.0))
        allowed = ulp * ulps + least
        error = np.abs(values - wanted)
    beyond = is_finite & ~(error <= allowed)
    assert not beyond.any(), (values[beyond][:3], wanted[beyond][:3])

"""How the tests of views, pooling, reductions and Core ops run a primitive, and ask onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES, ElementType
from nacre.kernels.interface.call import (
    Call,
    Constant,
    Fault,
    Primitive,
    Quantization,
    TensorType,
)

Array = npt.NDArray[Any]
Dims = tuple[int, ...]

F64 = ElementType("f64", "float", 64, "float64", float(np.finfo(np.float64).max))
I64 = ElementType("i64", "signed", 64, "int64", 0.0)
ELEMENTS = {**ELEMENT_TYPES, "f64": F64, "i64": I64}

INTEGERS = [name for name, elem in ELEMENT_TYPES.items() if elem.is_integer]
FLOATS = [name for name, elem in ELEMENT_TYPES.items() if not elem.is_integer]
LAYOUTS = ["dense", "strided", "unaligned"]

seeds = st.integers(0, 2**32 - 1)
dims = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def tensor(elem: str, shape: Sequence[int], quant: Quantization | None = None) -> TensorType:
    return TensorType(ELEMENTS[elem], tuple(shape), quant)


def laid_out(values: Array, layout: str) -> Array:
    """The same values in memory as a machine may hand them over."""
    if layout == "strided":
        room = np.zeros((*values.shape, 2), values.dtype)
        view: Array = room[..., 0]
    elif layout == "unaligned":
        room = np.zeros(values.nbytes + 1, np.uint8)
        view = room[1:].view(values.dtype).reshape(values.shape)
    else:
        view = np.empty_like(values)
    view[...] = values
    return view


def perform(
    primitive: Primitive,
    arrays: Sequence[Array],
    types: Sequence[TensorType],
    outputs: Sequence[TensorType],
    attributes: Mapping[str, Any],
    *,
    ordered: bool = False,
    layout: str = "dense",
    heat: bool | None = None,
) -> tuple[list[Array], Fault | None]:
    """The outputs, which held something else before, and the fault.

    With a `heat` all inputs but the first are known when the primitive is bound, hot or not.
    """
    given = [laid_out(np.asarray(a, t.dtype), layout) for a, t in zip(arrays, types, strict=True)]
    known = {} if heat is None else {i: Constant(a, heat) for i, a in enumerate(given) if i}
    call = Call(tuple(types), tuple(outputs), attributes, ordered, known)
    before = [array.copy() for array in given]
    results = [laid_out(np.full(t.shape, 77 % t.elem.highest, t.dtype), layout) for t in outputs]
    fault = primitive.bind(call)(given, results)
    for array, copy in zip(given, before, strict=True):
        assert array.tobytes() == copy.tobytes(), "an input was changed"
    return results, fault


def result_of(
    primitive: Primitive,
    array: Array,
    type_: TensorType,
    attributes: Mapping[str, Any],
    *,
    elem: str | None = None,
    quant: Quantization | None = None,
    ordered: bool = False,
    layout: str = "dense",
) -> Array:
    """The one output of a primitive with one input, of the shape that the primitive says."""
    shape = primitive.shape([type_.shape], attributes)
    assert shape is not None
    output = tensor(elem or type_.elem.name, shape[0], quant)
    (found,), fault = perform(
        primitive, [array], [type_], [output], attributes, ordered=ordered, layout=layout
    )
    assert fault is None
    return found


def random_values(elem: str, shape: Sequence[int], seed: int, *, odd: bool = False) -> Array:
    """Values from all of an integer type, or floats with few digits; odd ones among them."""
    rng = np.random.default_rng(seed)
    element = ELEMENTS[elem]
    type_ = tensor(elem, shape)
    if element.is_integer:
        low, high = int(element.lowest), int(element.highest)
        whole = rng.integers(low, high, tuple(shape), np.int64, endpoint=True)
        return np.asarray(whole).astype(type_.dtype)
    values = np.asarray(rng.standard_normal(tuple(shape)) * 8)
    if odd:
        pick = rng.integers(0, 12, tuple(shape))
        for index, special in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
            values[pick == index] = special
    return values.astype(type_.dtype)


def assert_same(found: Array, expected: Array) -> None:
    """Equal in type, shape and every value; a NaN equals a NaN."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def onnx_result(
    op: str,
    arrays: Sequence[Array],
    attributes: Mapping[str, Any],
    outputs: Sequence[npt.DTypeLike] | None = None,
    opset: int = 18,
) -> list[Array]:
    """What onnxruntime makes of the same."""
    names = [f"x{i}" for i in range(len(arrays))]
    types = outputs if outputs is not None else [arrays[0].dtype]
    results = [f"y{i}" for i in range(len(types))]
    info = onnx.helper.make_tensor_value_info
    code = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, names, results, **attributes)],
        "one",
        [info(n, code(a.dtype), a.shape) for n, a in zip(names, arrays, strict=True)],
        [info(n, code(np.dtype(t)), None) for n, t in zip(results, types, strict=True)],
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found: list[Array] = session.run(None, dict(zip(names, arrays, strict=True)))
    return found

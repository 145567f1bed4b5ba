"""What the tests of elementwise ops, normalisations and conversions share: calls, ulps, ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Fault, Primitive, Quantization, TensorType

INTEGERS = ("i4", "i8", "i16", "i32", "u8", "u16", "u32")
FLOATS = ("f16", "bf16", "f32")


def type_of(elem: str, shape: Sequence[int], quant: Quantization | None = None) -> TensorType:
    return TensorType(ELEMENT_TYPES[elem], tuple(shape), quant)


def bounds(elem: str) -> tuple[int, int]:
    element = ELEMENT_TYPES[elem]
    return int(element.lowest), int(element.highest)


def run(
    primitive: Primitive,
    inputs: Sequence[Array],
    elems: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
    quants: Sequence[Quantization | None] | None = None,
    *,
    ordered: bool = False,
) -> Array:
    """The output of one call; `elems` and `quants` name the inputs, then the output."""
    given = quants or [None] * len(elems)
    types = [type_of(e, x.shape, q) for e, x, q in zip(elems, inputs, given, strict=False)]
    result = type_of(elems[-1], inputs[0].shape, given[-1])
    output = np.zeros(result.shape, result.dtype)
    fault = fault_of(
        primitive, Call(tuple(types), (result,), attributes or {}, ordered), inputs, output
    )
    assert fault is None
    return output


def fault_of(
    primitive: Primitive, call: Call, inputs: Sequence[Array], output: Array
) -> Fault | None:
    arrays = [x.astype(t.dtype, copy=False) for x, t in zip(inputs, call.inputs, strict=True) if t]
    return primitive.bind(call)(arrays, [output])


def ulps(found: Array, exact: Array, unit_of: Array | None = None) -> npt.NDArray[np.float64]:
    """Distances in ulps of f32, of the exact value or of another; none between infinities."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        base = np.abs(nearest if unit_of is None else unit_of.astype(np.float32))
        unit = np.spacing(np.clip(base, np.float32(2.0**-126), np.float32(3e38)))
        distance = np.abs(found.astype(np.float64) - exact) / unit.astype(np.float64)
    is_same = (found.astype(np.float32) == nearest) & ~np.isfinite(nearest)
    both_nan = np.isnan(found.astype(np.float32)) & np.isnan(nearest)
    return np.where(is_same | both_nan, 0.0, distance)


_ONNX_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16,
    "int32": TensorProto.INT32,
    "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64,
}


def onnx_result(op: str, inputs: Sequence[Array], result: str = "", **attributes: Any) -> Array:  # noqa: ANN401
    """What onnxruntime gives for one node; `result`: the type, else that of the first input."""
    names = [f"x{index}" for index in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attributes)
    infos = [
        helper.make_tensor_value_info(name, _ONNX_TYPES[str(x.dtype)], x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    out = helper.make_tensor_value_info("y", _ONNX_TYPES[result or str(inputs[0].dtype)], None)
    graph = helper.make_graph([node], "one", infos, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        onnx.ModelProto.SerializeToString(model), options, providers=["CPUExecutionProvider"]
    )
    found: Array = session.run(None, dict(zip(names, inputs, strict=True)))[0]
    return found

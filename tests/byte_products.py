"""Whether onnxruntime is an oracle for products of u8 by i8 on this processor.

x86 without VNNI adds pairs of such products in 16 bits, and they saturate; its option for precise
ones covers some of its kernels only. What is compared to the bit is left out on such a processor.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from onnx import TensorProto, helper


@cache
def byte_products_saturate() -> bool:
    """Whether 255 * 127 + 255 * 127 is not what onnxruntime says it is."""
    import onnxruntime

    x, w = np.full((1, 8), 255, np.uint8), np.full((8, 16), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 16))],
        [helper.make_tensor("w", TensorProto.INT8, w.shape, w.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"x": x})
    return not np.array_equal(found, x.astype(np.int32) @ w.astype(np.int32))


def skip_where_they_saturate() -> None:
    """Skip the test that calls it on a processor where the oracle is wrong."""
    if byte_products_saturate():
        pytest.skip("onnxruntime's products of u8 by i8 saturate on this processor")

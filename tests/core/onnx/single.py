"""Models of one node, run by nacre and by onnxruntime."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import helper

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array | None]


def single(
    op: str,
    inputs: Arrays,
    opset: int,
    outputs: int = 1,
    domain: str = "",
    **given: Any,  # noqa: ANN401
) -> bytes:
    """A model of one node; None is an input that is left out."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, domain=domain, **given)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, inputs, strict=True)
        if a is not None
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph([node], "graph", infos, results)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    raw: bytes = model.SerializeToString()
    return raw


def by_nacre(raw: bytes, inputs: Arrays, bound: Collection[int] = ()) -> list[Array]:
    """The outputs by the module, some inputs bound."""
    arrays = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    constants = {f"x{i}": arrays[f"x{i}"] for i in bound if f"x{i}" in arrays}
    module = from_onnx(raw, constants=constants)
    return list(evaluate(module, {name: arrays[name] for name in module.input_types}))


def by_runtime(raw: bytes, inputs: Arrays) -> list[Array]:
    """The outputs by onnxruntime."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    given = {f"x{i}": array for i, array in enumerate(inputs) if array is not None}
    return list(session.run(None, given))


def assert_agrees(
    op: str,
    inputs: Arrays,
    opset: int,
    bound: Collection[int] = (),
    outputs: int = 1,
    tolerance: float = 1e-5,
    **given: Any,  # noqa: ANN401
) -> None:
    """Both give the same, integers exactly."""
    raw = single(op, inputs, opset, outputs, **given)
    for own, other in zip(by_nacre(raw, inputs, bound), by_runtime(raw, inputs), strict=True):
        assert own.dtype == other.dtype
        assert own.shape == other.shape
        if own.dtype.kind in "biu":
            assert np.array_equal(own, other)
        else:
            np.testing.assert_allclose(own, other, tolerance, tolerance)

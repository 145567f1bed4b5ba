"""Models of one node, computed by onnxruntime and by a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx

Array = np.ndarray[Any, Any]
MICROSOFT = "com.microsoft"
_IR_VERSION = 10
_CONTRIB_OPSET = 17  # of the standard domain, beside which com.microsoft has its version 1


class NodeModel:
    """A model of one node; operands whose index is `known` are initialisers, the rest inputs.

    `further` has attributes whose names are those of parameters.
    """

    def __init__(
        self,
        op: str,
        operands: Sequence[Array | None],
        *,
        opset: int = _CONTRIB_OPSET,
        domain: str = "",
        outputs: Sequence[str] = ("y",),
        known: Collection[int] = (),
        types: Sequence[int] | None = None,
        further: Mapping[str, Any] = MappingProxyType({}),
        **attributes: Any,  # noqa: ANN401 - whatever the node has
    ) -> None:
        names = [f"i{i}" if operand is not None else "" for i, operand in enumerate(operands)]
        node = helper.make_node(op, names, outputs, "node", domain=domain, **attributes, **further)
        given = [(i, n, a) for i, (n, a) in enumerate(zip(names, operands, strict=True)) if n]
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for i, n, a in given
            if i not in known and a is not None
        ]
        held = [numpy_helper.from_array(a, n) for i, n, a in given if i in known and a is not None]
        kinds = types or [0] * len(outputs)  # 0: whatever the node makes
        results = [
            helper.make_tensor_value_info(n, kind, None)
            if kind
            else helper.make_empty_tensor_value_info(n)
            for n, kind in zip(outputs, kinds, strict=True)
            if n
        ]
        graph = helper.make_graph([node], "graph", inputs, results, held)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
        self.raw: bytes = model.SerializeToString()
        self.feeds = {n: a for i, n, a in given if i not in known and a is not None}

    def by_onnxruntime(self) -> list[Array]:
        """What onnxruntime gives, one thread, nothing fused."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            self.raw, options, providers=["CPUExecutionProvider"]
        )
        return [np.asarray(found) for found in session.run(None, self.feeds)]

    def module(self) -> Module:
        """The module of the model."""
        return from_onnx(self.raw)

    def by_module(self) -> list[Array]:
        """What the module gives."""
        module = self.module()
        return list(evaluate(module, {name: self.feeds[name] for name in module.input_types}))

    def refused(self) -> str:
        """Why there is no module."""
        with pytest.raises(InputError) as found:
            self.module()
        return "\n".join(d.message for d in found.value.diagnostics)


def opcodes(model: NodeModel) -> list[str]:
    """The operations of a model's module, inputs and constants aside."""
    left = {"Input", "ConstTensor"}
    return [op.opcode for op in model.module().operations if op.opcode not in left]


def expect_same(model: NodeModel) -> None:
    """Both give the same bits."""
    for found, wanted in zip(model.by_module(), model.by_onnxruntime(), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def expect_close(model: NodeModel, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Both give the same reals, up to rounding."""
    for found, wanted in zip(model.by_module(), model.by_onnxruntime(), strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol
        )


def expect_one_step(model: NodeModel, one_in: int = 10) -> None:
    """Both give the same integers, but for one step where reals round differently."""
    for found, wanted in zip(model.by_module(), model.by_onnxruntime(), strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        apart = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= max(1, apart.size // one_in)


def rng(*seed: int) -> np.random.Generator:
    """Random numbers that a test can repeat."""
    return np.random.default_rng(seed)


def onnx_type(dtype: object) -> int:
    """The TensorProto.DataType of an array type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))  # type: ignore[call-overload]

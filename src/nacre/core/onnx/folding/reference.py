"""Nodes on known tensors, computed at import by the reference implementation of onnx.

Shapes are made of such nodes, and they hold empty tensors on the way, which Core IR lacks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.onnx.findings import TENSORS
from nacre.core.onnx.folding.numpy_folding import fold_with_numpy
from nacre.core.onnx.folding.sizes import result_size
from nacre.core.onnx.handlers.refusals import NEVER_FOLDED
from nacre.core.onnx.onnx_node import Tensor
from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import Node
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_ELEMENTS = 1 << 24  # of all operands together, and of a result: the rest is left to the run
_LARGEST_NUMBER = 1 << 24  # of an attribute: it may be a count
# What must not be decided at import, or has a meaning of its own here.
_LEFT = NEVER_FOLDED | {"Loop", "If", "Scan", "SequenceMap"}
# A handler is quicker with a constant, and the integers of quantised weights are worth keeping.
_HANDLED = frozenset({"Constant", "DequantizeLinear"})
# The reference implementation goes through these element by element; they have handlers.
_SLOW = frozenset({"Attention", "AveragePool", "CausalConvWithState", "Col2Im", "Conv",
                   "ConvInteger", "ConvTranspose", "DeformConv", "Det", "Einsum", "GRU",
                   "GridSample", "LSTM", "LpPool", "MaxPool", "MaxRoiPool", "MaxUnpool",
                   "NegativeLogLikelihoodLoss", "QLinearConv", "RNN", "Resize", "RoiAlign", "STFT",
                   "SoftmaxCrossEntropyLoss", "Upsample"})  # fmt: skip
# Their attributes may be as large as they like: ends are cut, and values only stored.
_UNBOUNDED = frozenset({"Constant", "ConstantOfShape", "Shape", "Slice"})
# Operations whose results have elements of the first operand in another order, shape or type.
LAID_OUT = frozenset({"Cast", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements",
                      "GatherND", "Identity", "Reshape", "Slice", "SpaceToDepth", "Split",
                      "Squeeze", "Tile", "Transpose", "Unsqueeze"})  # fmt: skip
# Operations that only ask for the shape of an operand.
MEASURES = frozenset({"Shape", "Size", "ConstantOfShape"})


def can_fold(node: Node, operands: Sequence[Tensor | None]) -> bool:
    """Whether every operand is known, and neither they nor the result are large."""
    if (
        node.domain
        or node.op in _LEFT | _HANDLED
        or node.op in _SLOW
        or not _has_small_attributes(node)
    ):
        return False
    known = [o for o in operands if o is not None]
    if not all(isinstance(o, np.ndarray) for o in known):
        return False
    count = sum(np.size(o) for o in known)
    if count > _MOST_ELEMENTS:
        return False
    arrays = [o if isinstance(o, np.ndarray) else None for o in operands]
    return result_size(node, arrays) <= _MOST_ELEMENTS


def _has_small_attributes(node: Node) -> bool:
    """Whether no attribute asks for very much of anything."""
    if node.op in _UNBOUNDED:
        return True
    for value in node.attributes.values():
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(n, int) and abs(n) > _LARGEST_NUMBER for n in numbers):
            return False
    return True


def _model(node: Node, arrays: Sequence[Array | None]) -> Any:  # noqa: ANN401 - onnx.ModelProto
    """A model of this node alone, or None where there can be none."""
    names = [f"i{i}" if array is not None else "" for i, array in enumerate(arrays)]
    outputs = [f"o{i}" if name else "" for i, name in enumerate(node.outputs)]
    helper = onnx.helper
    try:
        proto = helper.make_node(node.op, names, outputs, **_attributes(node))
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays, strict=True)
            if a is not None
        ]
        results = [helper.make_value_info(n, onnx.TypeProto()) for n in outputs if n]
        graph = helper.make_graph([proto], "node", infos, results)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.opset)])
    except Exception:  # attributes of no known kind, types that onnx has no name for
        return None


def fold(node: Node, arrays: Sequence[Array | None]) -> list[Array] | None:
    """The outputs of a node; None where they cannot be computed, for whatever reason."""
    if node.op == "Identity" and arrays[0] is not None:
        return [arrays[0]]
    folded = fold_with_numpy(node, arrays)
    if folded is not None:
        return [folded]
    from onnx.reference import ReferenceEvaluator

    model = _model(node, arrays)
    if model is None:
        return None
    given = {f"i{i}": array for i, array in enumerate(arrays) if array is not None}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = iter(ReferenceEvaluator(model).run(None, given))
    except Exception:  # of NumPy, of onnx: the handler says it in words of its own
        return None
    return [_array(next(results)) if name else np.zeros(0) for name in node.outputs]


def _attributes(node: Node) -> dict[str, Any]:
    return {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }


def _array(value: object) -> Array:
    if isinstance(value, list):
        raise Unsupported("it gives a sequence, which Core IR lacks", TENSORS)
    return np.asarray(value)

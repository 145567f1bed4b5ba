"""Nodes on known tensors, computed at import by the reference implementation of onnx.

Shapes are made of such nodes, and they hold empty tensors on the way, which Core IR lacks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.onnx.files import onnx
from nacre.core.onnx.findings import NoForm
from nacre.core.onnx.nodes import Node
from nacre.core.onnx.use import Tensor
from nacre.core.values import Array

_MOST_ELEMENTS = 1 << 24  # of all operands together: large products are left to the run
# What must not be decided at import, or has a meaning of its own here.
_LEFT = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike",
                   "Multinomial", "Bernoulli", "Loop", "If", "Scan"})  # fmt: skip


def can_fold(node: Node, operands: Sequence[Tensor | None]) -> bool:
    """Whether every operand is known, and few."""
    if node.domain or node.op in _LEFT:
        return False
    known = [o for o in operands if o is not None]
    if not all(isinstance(o, np.ndarray) for o in known):
        return False
    return sum(np.size(o) for o in known) <= _MOST_ELEMENTS


def folded(node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """The outputs of a node."""
    from onnx.reference import ReferenceEvaluator

    names = [f"i{i}" if array is not None else "" for i, array in enumerate(arrays)]
    outputs = [f"o{i}" if name else "" for i, name in enumerate(node.outputs)]
    proto = onnx.helper.make_node(node.op, names, outputs, **_given(node))
    infos = [onnx.helper.make_tensor_value_info(n, 1, None) for n in names if n]
    results = [onnx.helper.make_tensor_value_info(n, 1, None) for n in outputs if n]
    graph = onnx.helper.make_graph([proto], "node", infos, results)
    imports = [onnx.helper.make_opsetid("", node.opset)]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = onnx.helper.make_model(graph, opset_imports=imports)
            given = {n: a for n, a in zip(names, arrays, strict=True) if n}
            found = list(ReferenceEvaluator(model).run(None, given))
    except Exception as error:
        raise NoForm(f"its operands are known, but computing it failed: {error}") from None
    made = iter(found)
    return [_array(next(made)) if name else np.zeros(0) for name in outputs]


def _given(node: Node) -> dict[str, Any]:
    return {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }


def _array(value: object) -> Array:
    if isinstance(value, list):
        raise NoForm("it gives a sequence, which Core IR lacks")
    return np.asarray(value)

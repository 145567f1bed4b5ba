"""Second stage: the order of axes that the device wants, channels last.

A convolution with channels first is put between two transpositions, its weights are turned at
once, and transpositions that meet cancel. Those that are left stay as operations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nacre.compile.legalise import Legal
from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluation_plan import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def layout(legal: Legal) -> Legal:
    """The module with every convolution in NHWC by HWIO."""
    if not any(map(_is_first, legal.module.operations)):
        return legal
    builder = Builder()
    ids: dict[int, int] = {}
    for op in legal.module.operations:
        ids[op.value_id] = (_turned if _is_first(op) else _copied)(builder, op, legal.module, ids)
    made = canonicalise(builder.module(*(ids[value] for value in legal.module.outputs)))
    origins = {ids[value]: source for value, source in legal.origins.items() if value in ids}
    return replace(legal, module=made, origins=origins)


def _is_first(op: CoreOperation) -> bool:
    return op.opcode == "Conv" and OPS["Conv"].filled(op.attributes)["layout"] == "NCHW"


def _copied(builder: Builder, op: CoreOperation, module: Module, ids: dict[int, int]) -> int:
    if op.opcode == "Input":
        return builder.input(str(op.attributes["name"]), op.type.dtype, op.type.shape)
    return builder.add(op.opcode, *(ids[o] for o in op.operands), **op.attributes)


def _turned(builder: Builder, op: CoreOperation, module: Module, ids: dict[int, int]) -> int:
    x = builder.add("Transpose", ids[op.operands[0]], permutation=_TO_LAST)
    weights = constant_array(module.by_id[op.operands[1]])
    assert weights is not None  # legal convolutions have constant weights
    turned = np.ascontiguousarray(weights.transpose(2, 3, 1, 0))
    w = builder.constant(turned, module.by_id[op.operands[1]].type.dtype)
    rest = (ids[o] for o in op.operands[2:])
    given = {**op.attributes, "layout": "NHWC"}
    return builder.add(
        "Transpose", builder.add("Conv", x, w, *rest, **given), permutation=_TO_FIRST
    )

"""Convolutions of ONNX whose windows are bent by offsets that are computed."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.sampling import Edge, sample
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.handlers.windows import window_attributes
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported


@handles("DeformConv")
def deform_conv(node: OnnxNode) -> int:
    """Every element of a window is looked up between elements, then weighted and added."""
    batch, channels, *sizes = node.shape(0)
    outputs, per_group, *kernel = node.shape(1)
    counts = node.shape(2)[2:]
    rank, taps = len(sizes), prod(kernel)
    groups, bends = int(node.attribute("group", 1)), int(node.attribute("offset_group", 1))
    if rank != 2:
        raise Unsupported(f"windows of {rank} axes, expected 2", "reshape to planes")
    if (
        min(groups, bends) < 1
        or channels != per_group * groups
        or outputs % groups
        or channels % bends
        or node.shape(2) != (batch, bends * taps * rank, *counts)
    ):
        raise Unsound(f"shapes {[list(node.shape(i)) for i in range(3)]}, groups {groups}, {bends}")
    given = window_attributes(node, tuple(kernel))
    x = operand(node, 0)
    places = _sample_positions(node, batch * bends, tuple(kernel), counts, given)
    edges = [Edge(size, "zeros", 0.0, size - 1.0) for size in sizes]
    table = x.reshape(batch * bends, channels // bends, *sizes)
    taken = sample(table, places, edges, "linear")
    if node.has(4):
        taken = taken * operand(node, 4).reshape(batch * bends, taps * prod(counts), 1)
    # [batch, bend, tap, place, channel] to [batch, group, channel and tap, place]
    spread = taken.reshape(batch, bends, taps, prod(counts), channels // bends)
    columns = spread.transpose(0, 1, 4, 2, 3)
    columns = columns.reshape(batch, groups, per_group * taps, prod(counts))
    weights = operand(node, 1).reshape(groups, outputs // groups, per_group * taps)
    products = Expr(node, node.add("MatMul", weights.value, columns.value))
    result = products.reshape(batch, outputs, *counts)
    return (result + operand(node, 3).reshape(outputs, 1, 1)).value if node.has(3) else result.value


def _sample_positions(
    node: OnnxNode,
    count: int,
    kernel: tuple[int, ...],
    outs: tuple[int, ...],
    given: dict[str, Any],
) -> list[Expr]:
    """For each axis the coordinates [batch and bend, tap and place]."""
    offsets = operand(node, 2).reshape(count * prod(kernel), len(kernel), prod(outs))
    offsets_last = offsets.transpose(1, 0, 2)
    positions = []
    for axis, window in enumerate(kernel):
        taps = np.arange(window) * given["dilations"][axis]
        starts = np.arange(outs[axis]) * given["strides"][axis] - given["pads"][axis]
        shape = [1] * (2 * len(kernel))
        shape[axis], shape[len(kernel) + axis] = window, outs[axis]
        base = (taps[:, None] + starts).reshape(shape)
        whole = np.broadcast_to(base, (*kernel, *outs)).reshape(1, prod(kernel) * prod(outs))
        own = offsets_last.rows(known_expr(node, np.array(axis, np.int64)))
        flat = own.reshape(count, prod(kernel) * prod(outs))
        positions.append(flat + known_expr(node, whole, flat.dtype))
    return positions

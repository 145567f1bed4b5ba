"""Operations of ONNX that normalise."""

from __future__ import annotations

from math import prod

from nacre.core.onnx.findings import NoForm
from nacre.core.onnx.handlers import handles
from nacre.core.onnx.use import Use


@handles("BatchNormalization")
def batch_norm(use: Use) -> int:
    """Each channel by a mean and variance that are given."""
    if use.attribute("training_mode", 0) or not use.attribute("spatial", 1):
        raise NoForm("it is in training mode, or not per channel")
    dtype = use.type(0).dtype
    values = [use.value(0), *(use.cast(use.value(i), dtype) for i in range(1, 5))]
    return use.add("BatchNorm", *values, epsilon=float(use.attribute("epsilon", 1e-5)))


@handles("InstanceNormalization")
def instance_norm(use: Use) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    values = [use.value(i) for i in range(3)]
    return use.add("InstanceNorm", *values, epsilon=float(use.attribute("epsilon", 1e-5)))


@handles("LRN")
def lrn(use: Use) -> int:
    """By the squares of neighbouring channels."""
    given = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    found = {name: float(use.attribute(name, default)) for name, default in given.items()}
    return use.add("Lrn", use.value(0), size=int(use.require("size")), **found)


@handles("Softmax", "LogSoftmax")
def softmax(use: Use) -> int:
    """Along an axis; before opset 13, over all axes from one on together."""
    opcode = use.node.op
    if use.opset >= 13:
        return use.add(opcode, use.value(0), axis=use.axis(default=-1))
    axis, dims = use.axis(default=1), use.shape(0)
    flat = use.reshaped(use.value(0), (prod(dims[:axis]), prod(dims[axis:])))
    return use.reshaped(use.add(opcode, flat, axis=1), dims)


@handles("LpNormalization")
def lp_norm(use: Use) -> int:
    """Over the 1-norm or 2-norm along an axis; 0 stays 0."""
    p = int(use.attribute("p", 2))
    if p not in (1, 2):
        raise NoForm(f"`p` is {p}, expected 1 or 2")
    x, dtype = use.value(0), use.type(0).dtype
    norm = use.add("Reduce", x, op=f"L{p}", axes=(use.axis(default=-1),), keepdims=True)
    zero = use.scalar(0.0, dtype)
    is_zero = use.add("Compare", norm, zero, op="Eq")
    safe = use.add("Where", is_zero, use.scalar(1.0, dtype), norm)
    return use.add("BinOp", x, safe, op="Div")

"""Operations of ONNX that bend each element."""

from __future__ import annotations

from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode


@handles("LeakyRelu")
def leaky_relu(node: OnnxNode) -> int:
    """x, below 0 times alpha."""
    return node.add("LeakyRelu", node.value(0), alpha=float(node.attribute("alpha", 0.01)))


@handles("Elu")
def elu(node: OnnxNode) -> int:
    """x, below 0 alpha * (e^x - 1)."""
    return node.add("Elu", node.value(0), alpha=float(node.attribute("alpha", 1.0)))


@handles("Celu")
def celu(node: OnnxNode) -> int:
    """Elu of x / alpha, times alpha: with the slope 1 at 0."""
    alpha = float(node.attribute("alpha", 1.0))
    dtype = node.type(0).dtype
    scale = node.scalar(alpha, dtype)
    inner = node.add("Elu", node.add("BinOp", node.value(0), scale, op="Div"))
    return node.add("BinOp", inner, scale, op="Mul")


@handles("Selu")
def selu(node: OnnxNode) -> int:
    """Scaled Elu."""
    alpha = float(node.attribute("alpha", 1.67326319217681884765625))
    gamma = float(node.attribute("gamma", 1.05070102214813232421875))
    return node.add("Selu", node.value(0), alpha=alpha, gamma=gamma)


@handles("HardSigmoid")
def hard_sigmoid(node: OnnxNode) -> int:
    """A line held between 0 and 1."""
    alpha, beta = float(node.attribute("alpha", 0.2)), float(node.attribute("beta", 0.5))
    return node.add("HardSigmoid", node.value(0), alpha=alpha, beta=beta)


@handles("Gelu", "com.microsoft.Gelu")
def gelu(node: OnnxNode) -> int:
    """X times the normal distribution function."""
    return node.add("Gelu", node.value(0), approximate=node.attribute("approximate", "none"))


@handles("Swish")
def swish(node: OnnxNode) -> int:
    """X times Sigmoid of alpha x."""
    alpha = float(node.attribute("alpha", 1.0))
    if alpha == 1.0:
        return node.add("Silu", node.value(0))
    scaled = node.add("BinOp", node.value(0), node.scalar(alpha, node.type(0).dtype), op="Mul")
    return node.add("BinOp", node.value(0), node.add("Unary", scaled, op="Sigmoid"), op="Mul")


@handles("Mish")
def mish(node: OnnxNode) -> int:
    """X times Tanh of Softplus."""
    inner = node.add("Unary", node.add("Unary", node.value(0), op="Softplus"), op="Tanh")
    return node.add("BinOp", node.value(0), inner, op="Mul")


@handles("ThresholdedRelu")
def thresholded_relu(node: OnnxNode) -> int:
    """X where it is greater than alpha, else 0."""
    dtype = node.type(0).dtype
    limit = node.scalar(float(node.attribute("alpha", 1.0)), dtype)
    above = node.add("Compare", node.value(0), limit, op="Gt")
    return node.add("Where", above, node.value(0), node.scalar(0.0, dtype))


@handles("Shrink")
def shrink(node: OnnxNode) -> int:
    """X moved towards 0 by bias, between -lambd and lambd 0."""
    own = node.type(0)
    dtype = "f64" if own.element.is_integer else own.dtype
    x = node.cast(node.value(0), dtype)
    bias, limit = float(node.attribute("bias", 0.0)), float(node.attribute("lambd", 0.5))
    zero = node.scalar(0, dtype)
    above = node.add("Compare", x, node.scalar(limit, dtype), op="Gt")
    below = node.add("Compare", x, node.scalar(-limit, dtype), op="Lt")
    down = node.add("BinOp", x, node.scalar(bias, dtype), op="Sub")
    up = node.add("BinOp", x, node.scalar(bias, dtype), op="Add")
    return node.cast(node.add("Where", above, down, node.add("Where", below, up, zero)), own.dtype)


@handles("PRelu")
def prelu(node: OnnxNode) -> int:
    """x, below 0 times a slope; before opset 7 one for each channel."""
    rank, slopes = len(node.shape(0)), node.shape(1)
    slope = node.value(1)
    if node.opset < 7 and len(slopes) == 1 and rank > 1:
        slope = node.reshape(slope, (*slopes, *[1] * (rank - 2)))
    return node.add("PRelu", node.value(0), slope)

"""Operations of ONNX that bend each element."""

from __future__ import annotations

from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.use import OnnxNode


@handles("LeakyRelu")
def leaky_relu(use: OnnxNode) -> int:
    """x, below 0 times alpha."""
    return use.add("LeakyRelu", use.value(0), alpha=float(use.attribute("alpha", 0.01)))


@handles("Elu")
def elu(use: OnnxNode) -> int:
    """x, below 0 alpha * (e^x - 1)."""
    return use.add("Elu", use.value(0), alpha=float(use.attribute("alpha", 1.0)))


@handles("Celu")
def celu(use: OnnxNode) -> int:
    """Elu of x / alpha, times alpha: with the slope 1 at 0."""
    alpha = float(use.attribute("alpha", 1.0))
    dtype = use.type(0).dtype
    scale = use.scalar(alpha, dtype)
    inner = use.add("Elu", use.add("BinOp", use.value(0), scale, op="Div"))
    return use.add("BinOp", inner, scale, op="Mul")


@handles("Selu")
def selu(use: OnnxNode) -> int:
    """Scaled Elu."""
    alpha = float(use.attribute("alpha", 1.67326319217681884765625))
    gamma = float(use.attribute("gamma", 1.05070102214813232421875))
    return use.add("Selu", use.value(0), alpha=alpha, gamma=gamma)


@handles("HardSigmoid")
def hard_sigmoid(use: OnnxNode) -> int:
    """A line held between 0 and 1."""
    alpha, beta = float(use.attribute("alpha", 0.2)), float(use.attribute("beta", 0.5))
    return use.add("HardSigmoid", use.value(0), alpha=alpha, beta=beta)


@handles("Gelu", "com.microsoft.Gelu")
def gelu(use: OnnxNode) -> int:
    """X times the normal distribution function."""
    return use.add("Gelu", use.value(0), approximate=use.attribute("approximate", "none"))


@handles("Swish")
def swish(use: OnnxNode) -> int:
    """X times Sigmoid of alpha x."""
    alpha = float(use.attribute("alpha", 1.0))
    if alpha == 1.0:
        return use.add("Silu", use.value(0))
    scaled = use.add("BinOp", use.value(0), use.scalar(alpha, use.type(0).dtype), op="Mul")
    return use.add("BinOp", use.value(0), use.add("Unary", scaled, op="Sigmoid"), op="Mul")


@handles("Mish")
def mish(use: OnnxNode) -> int:
    """X times Tanh of Softplus."""
    inner = use.add("Unary", use.add("Unary", use.value(0), op="Softplus"), op="Tanh")
    return use.add("BinOp", use.value(0), inner, op="Mul")


@handles("ThresholdedRelu")
def thresholded_relu(use: OnnxNode) -> int:
    """X where it is greater than alpha, else 0."""
    dtype = use.type(0).dtype
    limit = use.scalar(float(use.attribute("alpha", 1.0)), dtype)
    above = use.add("Compare", use.value(0), limit, op="Gt")
    return use.add("Where", above, use.value(0), use.scalar(0.0, dtype))


@handles("Shrink")
def shrink(use: OnnxNode) -> int:
    """X moved towards 0 by bias, between -lambd and lambd 0."""
    own = use.type(0)
    dtype = "f64" if own.element.is_integer else own.dtype
    x = use.cast(use.value(0), dtype)
    bias, limit = float(use.attribute("bias", 0.0)), float(use.attribute("lambd", 0.5))
    zero = use.scalar(0, dtype)
    above = use.add("Compare", x, use.scalar(limit, dtype), op="Gt")
    below = use.add("Compare", x, use.scalar(-limit, dtype), op="Lt")
    down = use.add("BinOp", x, use.scalar(bias, dtype), op="Sub")
    up = use.add("BinOp", x, use.scalar(bias, dtype), op="Add")
    return use.cast(use.add("Where", above, down, use.add("Where", below, up, zero)), own.dtype)


@handles("PRelu")
def prelu(use: OnnxNode) -> int:
    """x, below 0 times a slope; before opset 7 one for each channel."""
    rank, slopes = len(use.shape(0)), use.shape(1)
    slope = use.value(1)
    if use.opset < 7 and len(slopes) == 1 and rank > 1:
        slope = use.reshape(slope, (*slopes, *[1] * (rank - 2)))
    return use.add("PRelu", use.value(0), slope)

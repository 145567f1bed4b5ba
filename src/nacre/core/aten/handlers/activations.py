"""Activations that have numbers of their own."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall
from nacre.core.aten.handlers.parts import slice_part
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

# From here on, e^-x is lost in the rounding of x for every type of at most 32 bits.
_LINEAR_FROM = 17.0


@handles("gelu.default")
def gelu(use: AtenCall) -> int:
    """X times the normal distribution function."""
    return use.add("Gelu", use.value("self"), approximate=str(use.get("approximate", "none")))


@handles("leaky_relu.default")
def leaky_relu(use: AtenCall) -> int:
    """x, below 0 times a slope."""
    return use.add("LeakyRelu", use.value("self"), alpha=float(use.number("negative_slope", 0.01)))


@handles("elu.default", "celu.default", "selu.default")
def elu(use: AtenCall) -> int:
    """X times a scale, below 0 scale * alpha * (e^(input_scale x) - 1)."""
    x, dtype = use.value("self"), use.dtype_of("self")
    if use.name == "selu":
        return use.add("Selu", x)
    alpha = float(use.number("alpha", 1))
    scale = float(use.number("scale", 1))
    steep = 1 / alpha if use.name == "celu" else float(use.number("input_scale", 1))
    if steep == 1.0:
        if scale == 1.0:
            return use.add("Elu", x, alpha=alpha)
        return use.add("Selu", x, alpha=alpha, gamma=scale)
    inner = use.unary("Expm1", use.binary("Mul", x, use.scalar(steep, dtype)))
    below = use.binary("Mul", inner, use.scalar(alpha * scale, dtype))
    above = x if scale == 1.0 else use.binary("Mul", x, use.scalar(scale, dtype))
    return use.add("Where", use.add("Compare", x, use.scalar(0, dtype), op="Gt"), above, below)


@handles("hardsigmoid.default")
def hard_sigmoid(use: AtenCall) -> int:
    """A line, x / 6 + 1 / 2, held between 0 and 1."""
    return use.add("HardSigmoid", use.value("self"), alpha=1 / 6, beta=0.5)


@handles("softplus.default")
def softplus(use: AtenCall) -> int:
    """log(1 + e^(beta x)) / beta; x itself where beta x is above a threshold."""
    beta, threshold = float(use.number("beta", 1)), float(use.number("threshold", 20))
    x, dtype = use.value("self"), use.dtype_of("self")
    scaled = x if beta == 1.0 else use.binary("Mul", x, use.scalar(beta, dtype))
    made = use.unary("Softplus", scaled)
    made = made if beta == 1.0 else use.binary("Div", made, use.scalar(beta, dtype))
    if dtype != "f64" and threshold >= _LINEAR_FROM and beta == 1.0:
        return made
    above = use.add("Compare", scaled, use.scalar(threshold, dtype), op="Gt")
    return use.add("Where", above, x, made)


@handles("mish.default")
def mish(use: AtenCall) -> int:
    """X times the hyperbolic tangent of softplus of x."""
    x = use.value("self")
    return use.binary("Mul", x, use.unary("Tanh", use.unary("Softplus", x)))


@handles("log_sigmoid.default")
def log_sigmoid(use: AtenCall) -> int:
    """The logarithm of Sigmoid: less the softplus of -x."""
    x = use.value("self")
    return use.add("Neg", use.unary("Softplus", use.add("Neg", x)))


@handles("prelu.default", "_prelu_kernel.default")
def prelu(use: AtenCall) -> int:
    """x, below 0 times a slope for all or for each channel."""
    slope, x = use.value("weight"), use.value("self")
    count, rank = use.type_of(slope).shape, use.type_of(x).rank
    if use.name == "prelu" and len(count) == 1 and rank > 1:
        slope = use.reshape(slope, (*count, *[1] * (rank - 2)))
    return use.add("PRelu", x, slope)


@handles("glu.default")
def glu(use: AtenCall) -> int:
    """One half times Sigmoid of the other."""
    axis, dims = use.axis(default=-1), use.shape_of("self")
    if not dims or dims[axis] % 2:
        raise Unsupported("the axis has an odd size")
    half, x = dims[axis] // 2, use.value("self")
    a, b = (slice_part(use, x, {axis: (s, s + half, 1)}) for s in (0, half))
    return use.binary("Mul", a, use.unary("Sigmoid", b))

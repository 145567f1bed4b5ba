"""Activations that have numbers of their own."""

from __future__ import annotations

from nacre.core.aten.call import AtenCall
from nacre.core.aten.handlers.parts import slice_part
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

# From here on, e^-x is lost in the rounding of x for every type of at most 32 bits.
_LINEAR_FROM = 17.0


@handles("gelu.default")
def gelu(call: AtenCall) -> int:
    """X times the normal distribution function."""
    return call.add("Gelu", call.value("self"), approximate=str(call.get("approximate", "none")))


@handles("leaky_relu.default")
def leaky_relu(call: AtenCall) -> int:
    """x, below 0 times a slope."""
    return call.add(
        "LeakyRelu", call.value("self"), alpha=float(call.number("negative_slope", 0.01))
    )


@handles("elu.default", "celu.default", "selu.default")
def elu(call: AtenCall) -> int:
    """X times a scale, below 0 scale * alpha * (e^(input_scale x) - 1)."""
    x, dtype = call.value("self"), call.dtype_of("self")
    if call.name == "selu":
        return call.add("Selu", x)
    alpha = float(call.number("alpha", 1))
    scale = float(call.number("scale", 1))
    steep = 1 / alpha if call.name == "celu" else float(call.number("input_scale", 1))
    if steep == 1.0:
        if scale == 1.0:
            return call.add("Elu", x, alpha=alpha)
        return call.add("Selu", x, alpha=alpha, gamma=scale)
    inner = call.unary("Expm1", call.binary("Mul", x, call.scalar(steep, dtype)))
    below = call.binary("Mul", inner, call.scalar(alpha * scale, dtype))
    above = x if scale == 1.0 else call.binary("Mul", x, call.scalar(scale, dtype))
    return call.add("Where", call.add("Compare", x, call.scalar(0, dtype), op="Gt"), above, below)


@handles("hardsigmoid.default")
def hard_sigmoid(call: AtenCall) -> int:
    """A line, x / 6 + 1 / 2, held between 0 and 1."""
    return call.add("HardSigmoid", call.value("self"), alpha=1 / 6, beta=0.5)


@handles("softplus.default")
def softplus(call: AtenCall) -> int:
    """log(1 + e^(beta x)) / beta; x itself where beta x is above a threshold."""
    beta, threshold = float(call.number("beta", 1)), float(call.number("threshold", 20))
    x, dtype = call.value("self"), call.dtype_of("self")
    scaled = x if beta == 1.0 else call.binary("Mul", x, call.scalar(beta, dtype))
    result = call.unary("Softplus", scaled)
    result = result if beta == 1.0 else call.binary("Div", result, call.scalar(beta, dtype))
    if dtype != "f64" and threshold >= _LINEAR_FROM and beta == 1.0:
        return result
    above = call.add("Compare", scaled, call.scalar(threshold, dtype), op="Gt")
    return call.add("Where", above, x, result)


@handles("mish.default")
def mish(call: AtenCall) -> int:
    """X times the hyperbolic tangent of softplus of x."""
    x = call.value("self")
    return call.binary("Mul", x, call.unary("Tanh", call.unary("Softplus", x)))


@handles("log_sigmoid.default")
def log_sigmoid(call: AtenCall) -> int:
    """The logarithm of Sigmoid: less the softplus of -x."""
    x = call.value("self")
    return call.add("Neg", call.unary("Softplus", call.add("Neg", x)))


@handles("prelu.default", "_prelu_kernel.default")
def prelu(call: AtenCall) -> int:
    """x, below 0 times a slope for all or for each channel."""
    slope, x = call.value("weight"), call.value("self")
    count, rank = call.type_of(slope).shape, call.type_of(x).rank
    if call.name == "prelu" and len(count) == 1 and rank > 1:
        slope = call.reshape(slope, (*count, *[1] * (rank - 2)))
    return call.add("PRelu", x, slope)


@handles("glu.default")
def glu(call: AtenCall) -> int:
    """One half times Sigmoid of the other."""
    axis, dims = call.axis(default=-1), call.shape_of("self")
    if not dims or dims[axis] % 2:
        raise Unsupported("the axis has an odd size")
    half, x = dims[axis] // 2, call.value("self")
    a, b = (slice_part(call, x, {axis: (s, s + half, 1)}) for s in (0, half))
    return call.binary("Mul", a, call.unary("Sigmoid", b))

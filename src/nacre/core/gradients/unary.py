"""Gradients of functions of one element. At kinks: 0 for `Abs` and `Relu`, else as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, pi, sqrt
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.writer import Value, where

Formula = Callable[[Value, Value, Value], Value]  # of g, x, y


def rule_of_formula(formula: Formula) -> Rule:
    """The rule of a formula of g, x and y."""
    return lambda site: formula(site.compact_g, site.x, site.y)


def _unit_root(x: Value) -> Value:
    # As a product: 1 - x^2 loses the digits of x near 1.
    return ((1.0 - x) * (x + 1.0)).unary("Rsqrt")


_BY_WORD: Mapping[str, Formula] = MappingProxyType(
    {
        "Abs": lambda g, x, y: g * x.unary("Sign"),
        "Sqrt": lambda g, x, y: g / (y * 2.0),
        "Rsqrt": lambda g, x, y: g * (y * y * y) * -0.5,
        "Reciprocal": lambda g, x, y: -(g * (y * y)),
        "Erf": lambda g, x, y: g * ((-(x * x)).exp() * (2.0 / sqrt(pi))),
        "Sin": lambda g, x, y: g * x.unary("Cos"),
        "Cos": lambda g, x, y: -(g * x.unary("Sin")),
        "Tan": lambda g, x, y: g * (y * y + 1.0),
        "Asin": lambda g, x, y: g * _unit_root(x),
        "Acos": lambda g, x, y: -(g * _unit_root(x)),
        "Atan": lambda g, x, y: g / (x * x + 1.0),
        "Sinh": lambda g, x, y: g * x.unary("Cosh"),
        "Cosh": lambda g, x, y: g * x.unary("Sinh"),
        "Asinh": lambda g, x, y: g * (x * x + 1.0).unary("Rsqrt"),
        "Acosh": lambda g, x, y: g * ((x - 1.0) * (x + 1.0)).unary("Rsqrt"),
        "Atanh": lambda g, x, y: g / ((1.0 - x) * (x + 1.0)),
        "Tanh": lambda g, x, y: g * (1.0 - y * y),
        "Sigmoid": lambda g, x, y: g * (y * (1.0 - y)),
        "Softplus": lambda g, x, y: g * x.unary("Sigmoid"),
        "Softsign": lambda g, x, y: g / _square(x.unary("Abs") + 1.0),
        "Log1p": lambda g, x, y: g / (x + 1.0),
        "Expm1": lambda g, x, y: g * x.exp(),
        "Log2": lambda g, x, y: g / (x * log(2.0)),
        "Log10": lambda g, x, y: g / (x * log(10.0)),
        "Exp2": lambda g, x, y: g * (y * log(2.0)),
    }
)
UNARY: Mapping[str, Rule] = MappingProxyType(
    {word: rule_of_formula(formula) for word, formula in _BY_WORD.items()}
)


def _square(value: Value) -> Value:
    return value * value


def relu(site: GradientSite) -> Value:
    """Of `Relu` and `ReluNan`: 0 at 0."""
    return where(site.x.compare("Gt", 0.0), site.compact_g, 0.0)


def leaky_relu(site: GradientSite) -> Value:
    """Alpha at 0."""
    scaled = site.compact_g * site.attributes["alpha"]
    return where(site.x.compare("Gt", 0.0), site.compact_g, scaled)


def elu(site: GradientSite) -> Value:
    """Of `Elu` and `Selu`; at 0 the side below decides."""
    alpha, gamma = site.attributes["alpha"], site.attributes.get("gamma", 1.0)
    # The exponential of what is above 0 is not used, and must not become infinite.
    below = site.x.binop("Min", 0.0).exp() * alpha
    g = site.compact_g * gamma
    return where(site.x.compare("Gt", 0.0), g, g * below)


def hard_sigmoid(site: GradientSite) -> Value:
    """Alpha inside, 0 where it is held, the ends included."""
    is_free = site.y.compare("Gt", 0.0).binop("And", site.y.compare("Lt", 1.0))
    return where(is_free, site.compact_g * site.attributes["alpha"], 0.0)


def hard_swish(site: GradientSite) -> Value:
    """0 up to -3, x / 3 + 1 / 2, 1 from 3 on."""
    g, x = site.compact_g, site.x
    # Asked in this way round, NaN goes to the middle and stays NaN.
    above = where(x.compare("Ge", 3.0), g, g * (x * (1.0 / 3.0) + 0.5))
    return where(x.compare("Le", -3.0), 0.0, above)


def silu(site: GradientSite) -> Value:
    """With s of the sigmoid, s (1 + x (1 - s))."""
    s = site.x.unary("Sigmoid")
    return site.compact_g * (s * (site.x * (1.0 - s) + 1.0))


def gelu(site: GradientSite) -> Value:
    """The derivative of whichever form `approximate` says."""
    is_tanh = site.attributes["approximate"] == "tanh"
    return site.compact_g * (_gelu_tanh(site.x) if is_tanh else _gelu_erf(site.x))


def _gelu_erf(x: Value) -> Value:
    share = ((x * sqrt(0.5)).unary("Erf") + 1.0) * 0.5
    density = (x * x * -0.5).exp() * (1.0 / sqrt(2.0 * pi))
    return share + x * density


def _gelu_tanh(x: Value) -> Value:
    square, slope, cubic = x * x, sqrt(2.0 / pi), 0.044715
    t = (x * (square * cubic + 1.0) * slope).unary("Tanh")
    inner = (square * (3.0 * cubic) + 1.0) * slope
    return (t + 1.0) * 0.5 + x * (1.0 - t * t) * inner * 0.5


def clip(site: GradientSite) -> Value:
    """1 between both ends, which are included, as in `torch.clamp`."""
    low, high = (float(site.attributes[name]) for name in ("min", "max"))
    is_free = site.x.compare("Ge", low).binop("And", site.x.compare("Le", high))
    return where(is_free, site.compact_g, 0.0)


def cast(site: GradientSite) -> Value:
    """The gradient in the type of the operand."""
    return site.compact_g.op("Cast", to=site.x.dtype)


FUNCTIONS: Mapping[str, Rule] = MappingProxyType(
    {
        "Neg": rule_of_formula(lambda g, x, y: -g),
        "Exp": rule_of_formula(lambda g, x, y: g * y),
        "Log": rule_of_formula(lambda g, x, y: g / x),
        "Relu": relu,
        "ReluNan": relu,
        "LeakyRelu": leaky_relu,
        "Elu": elu,
        "Selu": elu,
        "HardSigmoid": hard_sigmoid,
        "HardSwish": hard_swish,
        "Gelu": gelu,
        "Silu": silu,
        "Clip": clip,
        "Cast": cast,
    }
)

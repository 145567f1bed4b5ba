"""Functions of one element, spelled out in those that the device has.

No step goes beyond the range of its operands where the function itself does not: 16 bits hold 65504
at most.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from nacre.core.rewrite.site import Rewrite, RewriteSite, Rules


class ElementwiseWriter:
    """Maps written one after the other."""

    def __init__(self, site: RewriteSite) -> None:
        self._site = site
        self._dtype = site.op.type.dtype

    def number(self, value: float) -> int:
        """A constant without axes."""
        return self._site.literal(np.array(value), self._dtype)

    def binary(self, op: str, a: int, b: int | float) -> int:
        """A function of two."""
        other = self.number(b) if isinstance(b, float) else b
        return self._site.add("BinOp", a, other, op=op)

    def unary(self, op: str, x: int) -> int:
        """A function of one that `Unary` has."""
        return self._site.add("Unary", x, op=op)

    def clip(self, x: int, low: float, high: float) -> int:
        """X between two numbers."""
        return self._site.add("Clip", x, min=low, max=high)

    def below(self, x: int) -> int:
        """X where it is negative, else 0."""
        return self.clip(x, -float("inf"), 0.0)

    def above(self, x: int) -> int:
        """X where it is positive, else 0."""
        return self._site.add("ReluNan", x)


def _attribute(site: RewriteSite, name: str) -> float:
    value = site.attributes[name]
    assert isinstance(value, float | int)
    return float(value)


def _is_float(site: RewriteSite) -> bool:
    return not site.op.type.element.is_integer


def _relu(site: RewriteSite) -> int | None:
    """NaN stays NaN on the device."""
    return site.add("ReluNan", site.operands[0]) if _is_float(site) else None


def _hard_sigmoid(site: RewriteSite) -> int | None:
    """Clip(alpha * x + beta, 0, 1)."""
    steps = ElementwiseWriter(site)
    sloped = steps.binary("Mul", site.operands[0], _attribute(site, "alpha"))
    return steps.clip(steps.binary("Add", sloped, _attribute(site, "beta")), 0.0, 1.0)


def _hard_swish(site: RewriteSite) -> int | None:
    """X * (Clip(x + 3, 0, 6) / 6)."""
    steps, x = ElementwiseWriter(site), site.operands[0]
    gate = steps.clip(steps.binary("Add", x, 3.0), 0.0, 6.0)
    return steps.binary("Mul", x, steps.binary("Mul", gate, 1 / 6))


def curve_below_zero(site: RewriteSite, *, is_exact: bool = False) -> int:
    """Gamma * Relu(x) + gamma * alpha * (exp(min(x, 0)) - 1); `Elu` has no gamma."""
    steps, x = ElementwiseWriter(site), site.operands[0]
    above, factor = steps.above(x), _attribute(site, "alpha")
    if site.op.opcode == "Selu":
        gamma = _attribute(site, "gamma")
        above, factor = steps.binary("Mul", above, gamma), factor * gamma
    below = steps.below(x)
    if is_exact:
        grown = _expm1(steps, site, below)
    else:
        grown = steps.binary("Sub", site.add("Exp", below), 1.0)
    return steps.binary("Add", above, grown if factor == 1 else steps.binary("Mul", grown, factor))


def _prelu(site: RewriteSite) -> int | None:
    """`LeakyRelu` where the slope is one number, else Relu(x) + slope * min(x, 0)."""
    x, slope = site.operands
    number = site.number(slope)
    if number is not None and np.isfinite(number):
        return site.add("LeakyRelu", x, alpha=number)
    steps = ElementwiseWriter(site)
    return steps.binary("Add", steps.above(x), steps.binary("Mul", steps.below(x), slope))


def _clip(site: RewriteSite) -> int | None:
    """Nothing where there are no bounds."""
    low, high = _attribute(site, "min"), _attribute(site, "max")
    if low == -np.inf and high == np.inf:
        return site.operands[0]
    if low == 0.0 and high == np.inf and _is_float(site):
        return site.add("ReluNan", site.operands[0])
    return None


def _leaky_relu(site: RewriteSite) -> int | None:
    """A slope that is no number has no `leaky_relu`: Relu(x) + alpha * min(x, 0)."""
    alpha = _attribute(site, "alpha")
    if np.isfinite(alpha):
        return None
    steps, x = ElementwiseWriter(site), site.operands[0]
    return steps.binary("Add", steps.above(x), steps.binary("Mul", steps.below(x), alpha))


# Functions of `Unary` in maps; each takes the steps and x.
_Spelled = Callable[[ElementwiseWriter, RewriteSite, int], int]


def _softplus(steps: ElementwiseWriter, site: RewriteSite, x: int) -> int:
    """Relu(x) + log(1 + exp(-|x|)): no exponential above 1.

    How the logarithm is written, `near_zero` decides once the precision is known.
    """
    small = site.add("Exp", site.add("Neg", steps.unary("Abs", x)))
    return steps.binary("Add", steps.above(x), steps.unary("Log1p", small))


def _softsign(steps: ElementwiseWriter, site: RewriteSite, x: int) -> int:
    return steps.binary("Div", x, steps.binary("Add", steps.unary("Abs", x), 1.0))


def _cosh(steps: ElementwiseWriter, site: RewriteSite, x: int) -> int:
    """Half of exp(x) and half of exp(-x)."""
    both = site.add("Exp", x), site.add("Exp", site.add("Neg", x))
    halves = [steps.binary("Mul", one, 0.5) for one in both]
    return steps.binary("Add", halves[0], halves[1])


def _sinh(steps: ElementwiseWriter, site: RewriteSite, x: int) -> int:
    """Tanh(x) * cosh(x): a difference of exponentials would lose what is small."""
    return steps.binary("Mul", steps.unary("Tanh", x), _cosh(steps, site, x))


def _expm1(steps: ElementwiseWriter, site: RewriteSite, x: int) -> int:
    """Tanh(x / 2) * (exp(x) + 1): a difference would lose what is small."""
    half = steps.unary("Tanh", steps.binary("Mul", x, 0.5))
    return steps.binary("Mul", half, steps.binary("Add", site.add("Exp", x), 1.0))


def _reciprocal(steps: ElementwiseWriter, x: int) -> int:
    return steps.binary("Div", steps.number(1.0), x)


def _times(factor: float) -> Callable[[ElementwiseWriter, int], int]:
    return lambda steps, x: steps.binary("Mul", x, factor)


_UNARY: dict[str, _Spelled] = {
    "Reciprocal": lambda steps, site, x: _reciprocal(steps, x),
    "Rsqrt": lambda steps, site, x: _reciprocal(steps, steps.unary("Sqrt", x)),
    "Softplus": _softplus,
    "Sinh": _sinh,
    "Cosh": _cosh,
    "Expm1": _expm1,
    "Softsign": _softsign,
    "Log2": lambda steps, site, x: _times(1 / log(2))(steps, site.add("Log", x)),
    "Log10": lambda steps, site, x: _times(1 / log(10))(steps, site.add("Log", x)),
    "Exp2": lambda steps, site, x: site.add("Exp", _times(log(2))(steps, x)),
}


def _unary(site: RewriteSite) -> int | None:
    op = site.attributes["op"]
    spelled = _UNARY.get(str(op))
    if spelled is None or not _is_float(site):
        return None
    return spelled(ElementwiseWriter(site), site, site.operands[0])


_ACTIVATIONS: dict[str, Rewrite] = {
    "Relu": _relu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Elu": curve_below_zero,
    "Selu": curve_below_zero,
    "PRelu": _prelu,
    "Clip": _clip,
    "LeakyRelu": _leaky_relu,
    "Unary": _unary,
}


def _tanh_of_softplus(site: RewriteSite) -> int | None:
    """The gate of Mish: p / (2 - p), where s is Sigmoid(x) and p is s * (2 - s)."""
    is_tanh = site.attributes["op"] == "Tanh" and _is_float(site)
    inner = site.maker(site.operands[0], "Unary", op="Softplus") if is_tanh else None
    if inner is None:
        return None
    steps = ElementwiseWriter(site)
    gate, two = steps.unary("Sigmoid", inner.operands[0]), steps.number(2.0)
    product = steps.binary("Mul", gate, steps.binary("Sub", two, gate))
    return steps.binary("Div", product, steps.binary("Sub", two, product))


GATE_FORMS: Rules = {"Unary": [_tanh_of_softplus]}  # while softplus has its name
ACTIVATION_FORMS: Rules = {name: [form] for name, form in _ACTIVATIONS.items()}

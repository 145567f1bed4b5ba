"""Activations as models spell them out, each beside the operation that it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from math import pi, sqrt

from tests.core.rewrite.test_inference import Chain

Spelling = Callable[[Chain], int]
Step = Callable[[Chain, int], int]


def exp(c: Chain, x: int) -> int:
    return c.builder.add("Exp", x)


def log(c: Chain, x: int) -> int:
    return c.builder.add("Log", x)


def times(c: Chain, x: int, number: float) -> int:
    return c.op("Mul", x, c.number(number))


def plus(c: Chain, x: int, number: float) -> int:
    return c.op("Add", x, c.number(number))


def over(c: Chain, x: int, number: float) -> int:
    return c.op("Div", x, c.number(number))


def neg(c: Chain, x: int) -> int:
    return c.builder.add("Neg", x)


NEGATIONS: dict[str, Step] = {
    "neg": neg,
    "times": lambda c, x: times(c, x, -1.0),
    "from zero": lambda c, x: c.op("Sub", c.number(0.0), x),
}


# Sigmoid, Silu


def one_plus_power(c: Chain, negate: Step) -> int:
    return plus(c, exp(c, negate(c, c.x)), 1.0)


SIGMOIDS: dict[str, Callable[[Chain, Step], int]] = {
    "division": lambda c, negate: c.op("Div", c.number(1.0), one_plus_power(c, negate)),
    "reciprocal": lambda c, negate: c.unary("Reciprocal", one_plus_power(c, negate)),
    "power": lambda c, negate: c.op("Pow", one_plus_power(c, negate), c.number(-1.0)),
}
SILUS: dict[str, Callable[[Chain, Step], int]] = {
    "division": lambda c, negate: c.op("Div", c.x, one_plus_power(c, negate)),
    "product": lambda c, negate: c.op("Mul", c.x, SIGMOIDS["division"](c, negate)),
}


def with_sign(spelt: Callable[[Chain, Step], int], negate: Step) -> Spelling:
    return lambda c: spelt(c, negate)


def sigmoid_of_powers(c: Chain) -> int:
    power = exp(c, c.x)
    return c.op("Div", power, plus(c, power, 1.0))


def sigmoid_of_the_opposite(c: Chain) -> int:
    return c.op("Div", c.number(1.0), plus(c, exp(c, c.x), 1.0))


def silu_of_the_opposite(c: Chain) -> int:
    return c.op("Div", neg(c, c.x), plus(c, exp(c, c.x), 1.0))


def quick_gelu(c: Chain) -> int:
    gate = c.op("Div", c.number(1.0), plus(c, exp(c, times(c, c.x, -1.702)), 1.0))
    return c.op("Mul", c.x, gate)


# Softplus, Mish


def softplus(c: Chain) -> int:
    return log(c, plus(c, exp(c, c.x), 1.0))


def softplus_by_log1p(c: Chain) -> int:
    return c.unary("Log1p", exp(c, c.x))


def softplus_of_parts(c: Chain) -> int:
    small = exp(c, neg(c, c.unary("Abs", c.x)))
    return c.op("Add", c.builder.add("ReluNan", c.x), c.unary("Log1p", small))


def softplus_of_parts_by_maximum(c: Chain) -> int:
    small = exp(c, neg(c, c.unary("Abs", c.x)))
    return c.op("Add", c.op("Max", c.x, c.number(0.0)), log(c, plus(c, small, 1.0)))


def mish(c: Chain, inner: Spelling) -> int:
    return c.op("Mul", c.x, c.unary("Tanh", inner(c)))


# HardSwish

BOUNDS: dict[str, Step] = {
    "clip": lambda c, x: c.builder.add("Clip", x, min=0.0, max=6.0),
    "min of max": lambda c, x: c.op("Min", c.op("Max", x, c.number(0.0)), c.number(6.0)),
    "max of min": lambda c, x: c.op("Max", c.op("Min", x, c.number(6.0)), c.number(0.0)),
    "min of relu": lambda c, x: c.op("Min", c.builder.add("Relu", x), c.number(6.0)),
    "clip of relu": lambda c, x: c.builder.add("Clip", c.builder.add("ReluNan", x), max=6.0),
}


# A product of x, a gate and a number, in every order

PRODUCTS: dict[str, Callable[[Chain, int, float], int]] = {
    "(x g) n": lambda c, g, n: times(c, c.op("Mul", c.x, g), n),
    "(x g) / n": lambda c, g, n: over(c, c.op("Mul", c.x, g), 1 / n),
    "(x n) g": lambda c, g, n: c.op("Mul", times(c, c.x, n), g),
    "(x / n) g": lambda c, g, n: c.op("Mul", over(c, c.x, 1 / n), g),
    "x (g n)": lambda c, g, n: c.op("Mul", c.x, times(c, g, n)),
    "x (g / n)": lambda c, g, n: c.op("Mul", c.x, over(c, g, 1 / n)),
}


def hard_swish(c: Chain, bound: Step, order: str) -> int:
    return PRODUCTS[order](c, bound(c, plus(c, c.x, 3.0)), 1 / 6)


# Gelu


def by_erf(c: Chain) -> int:
    return c.unary("Erf", over(c, c.x, sqrt(2)))


def by_power(c: Chain) -> int:
    cube = c.op("Pow", c.x, c.number(3.0))
    return c.unary("Tanh", times(c, c.op("Add", c.x, times(c, cube, 0.044715)), sqrt(2 / pi)))


def by_products(c: Chain) -> int:
    cube = c.op("Mul", c.op("Mul", c.x, c.x), c.x)
    return c.unary("Tanh", times(c, c.op("Add", c.x, times(c, cube, 0.044715)), sqrt(2 / pi)))


def by_factored_square(c: Chain) -> int:
    """X * sqrt(2 / pi) * (1 + 0.044715 * x * x)."""
    square = plus(c, c.op("Mul", times(c, c.x, 0.044715), c.x), 1.0)
    return c.unary("Tanh", c.op("Mul", times(c, c.x, sqrt(2 / pi)), square))


def by_sum_of_powers(c: Chain) -> int:
    cube = c.op("Mul", c.x, c.op("Pow", c.x, c.number(2.0)))
    third = times(c, cube, 0.044715 * sqrt(2 / pi))
    return c.unary("Tanh", c.op("Add", times(c, c.x, sqrt(2 / pi)), third))


def gelu(c: Chain, function: Spelling, order: str) -> int:
    return PRODUCTS[order](c, plus(c, function(c), 1.0), 0.5)


def gelu_with_halves_in_the_gate(c: Chain, function: Spelling) -> int:
    return c.op("Mul", c.x, plus(c, times(c, function(c), 0.5), 0.5))


def operation(opcode: str, **attributes: object) -> Spelling:
    return lambda c: c.builder.add(opcode, c.x, **attributes)


SIGMOID = operation("Unary", op="Sigmoid")
SOFTPLUS = operation("Unary", op="Softplus")
TANHS = (by_power, by_products, by_factored_square, by_sum_of_powers)
ERF_AND_TANHS: dict[Spelling, Spelling] = {
    by_erf: operation("Gelu"),
    **dict.fromkeys(TANHS, operation("Gelu", approximate="tanh")),
}

# How it is spelt, and the same by name.
ACTIVATIONS: dict[str, tuple[Spelling, Spelling]] = {
    **{
        f"sigmoid by {how}, {sign}": (with_sign(spelt, negate), SIGMOID)
        for (how, spelt), (sign, negate) in product(SIGMOIDS.items(), NEGATIONS.items())
    },
    **{
        f"silu by {how}, {sign}": (with_sign(spelt, negate), operation("Silu"))
        for (how, spelt), (sign, negate) in product(SILUS.items(), NEGATIONS.items())
    },
    "sigmoid of powers": (sigmoid_of_powers, SIGMOID),
    "sigmoid of -x": (sigmoid_of_the_opposite, lambda c: c.unary("Sigmoid", neg(c, c.x))),
    "silu of -x": (silu_of_the_opposite, lambda c: c.builder.add("Silu", neg(c, c.x))),
    "quick gelu": (
        quick_gelu,
        lambda c: c.op("Mul", c.x, c.unary("Sigmoid", times(c, c.x, 1.702))),
    ),
    "softplus": (softplus, SOFTPLUS),
    "softplus by log1p": (softplus_by_log1p, SOFTPLUS),
    "softplus of parts": (softplus_of_parts, SOFTPLUS),
    "softplus of parts by maximum": (softplus_of_parts_by_maximum, SOFTPLUS),
    "mish": (partial(mish, inner=softplus), partial(mish, inner=SOFTPLUS)),
    **{
        f"hard swish, {how}, {order}": (
            partial(hard_swish, bound=bound, order=order),
            operation("HardSwish"),
        )
        for (how, bound), order in product(BOUNDS.items(), PRODUCTS)
    },
    **{
        f"gelu {function.__name__}, {order}": (partial(gelu, function=function, order=order), named)
        for (function, named), order in product(ERF_AND_TANHS.items(), PRODUCTS)
    },
    **{
        f"gelu {function.__name__}, halves": (
            partial(gelu_with_halves_in_the_gate, function=function),
            named,
        )
        for function, named in ERF_AND_TANHS.items()
    },
}

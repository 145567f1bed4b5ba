"""Short chains of functions that f16 is bad at, at scales from 1e-6 to 1e4."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.values import Array

SHAPE = (4, 32)
Step = Callable[[Builder, int], int]


class Chain(NamedTuple):
    """The names of the steps that a graph is made of, in order, and a seed for its weights."""

    steps: tuple[str, ...]
    seed: int = 0


def _number(b: Builder, value: float) -> int:
    return b.constant(np.array(value, np.float32))


def _binary(b: Builder, op: str, x: int, y: int | float) -> int:
    return b.add("BinOp", x, _number(b, y) if isinstance(y, float) else y, op=op)


def _unary(b: Builder, op: str, x: int) -> int:
    return b.add("Unary", x, op=op)


def _mean(b: Builder, x: int) -> int:
    return b.add("Mean", x, axes=(1,), keepdims=True)


def _sum(b: Builder, x: int) -> int:
    return b.add("Sum", x, axes=(1,), keepdims=True)


def _reduce(b: Builder, op: str, x: int) -> int:
    return b.add("Reduce", x, axes=(1,), keepdims=True, op=op)


def _square(b: Builder, x: int) -> int:
    return _binary(b, "Mul", x, x)


def _above(b: Builder, x: int, least: float) -> int:
    """Magnitudes, kept from 0."""
    return _binary(b, "Add", _unary(b, "Abs", x), least)


def _centred(b: Builder, x: int) -> int:
    return _binary(b, "Sub", x, _mean(b, x))


def _norm_by_root(b: Builder, x: int) -> int:
    centred = _centred(b, x)
    spread = _binary(b, "Add", _mean(b, _square(b, centred)), 1e-12)
    return _binary(b, "Div", centred, _unary(b, "Sqrt", spread))


def _norm_by_reciprocal(b: Builder, x: int) -> int:
    centred = _centred(b, x)
    spread = _binary(b, "Mul", _reduce(b, "SumSquare", centred), 1 / 32)
    root = _unary(b, "Sqrt", _binary(b, "Add", spread, 1e-10))
    return _binary(b, "Mul", centred, _unary(b, "Reciprocal", root))


def _norm_by_power(b: Builder, x: int) -> int:
    power = _binary(b, "Pow", _binary(b, "Add", _mean(b, _square(b, x)), 1e-12), -0.5)
    return _binary(b, "Mul", power, x)


def _unit_rows(b: Builder, x: int) -> int:
    length = b.add("Clip", _reduce(b, "L2", x), min=1e-12, max=float("inf"))
    return _binary(b, "Div", x, length)


def _softmax(b: Builder, x: int) -> int:
    power = b.add("Exp", _binary(b, "Sub", x, _reduce(b, "Max", x)))
    return _binary(b, "Div", power, _sum(b, power))


def _linear(b: Builder, x: int, size: float = 1.0) -> int:
    random = np.random.default_rng(3)
    weights = random.standard_normal((32, 32)) * (size / 32**0.5)
    return b.add("Linear", x, b.constant(weights.astype(np.float32)))


STEPS: dict[str, Step] = {
    **{
        f"times 1e{power}": lambda b, x, power=power: _binary(b, "Mul", x, 10.0**power)  # type: ignore[misc]
        for power in (-6, -5, -4, -3, -2, 2, 4)
    },
    "linear": _linear,
    "linear of 1e-6": lambda b, x: _linear(b, x, 1e-6),
    "linear of 1e5": lambda b, x: _linear(b, x, 1e5),
    "over 1e6": lambda b, x: _binary(b, "Div", x, 1e6),
    "plus 1": lambda b, x: _binary(b, "Add", x, 1.0),
    "square": _square,
    "cube": lambda b, x: _binary(b, "Pow", x, 3.0),
    "cube root": lambda b, x: _binary(b, "Pow", _above(b, x, 1e-8), 1 / 3),
    "root": lambda b, x: _unary(b, "Sqrt", _above(b, x, 1e-10)),
    "reciprocal": lambda b, x: _unary(b, "Reciprocal", _above(b, x, 1e-3)),
    "over a length": lambda b, x: _binary(b, "Div", x, _above(b, x, 1e-6)),
    "log": lambda b, x: b.add("Log", _above(b, x, 1e-10)),
    "log of a square": lambda b, x: b.add("Log", _binary(b, "Add", _square(b, x), 1e-10)),
    "log1p": lambda b, x: _unary(b, "Log1p", _unary(b, "Abs", x)),
    "log of 1 + x": lambda b, x: b.add("Log", _above(b, x, 1.0)),
    "exp": lambda b, x: b.add("Exp", _binary(b, "Min", x, 8.0)),
    "exp - 1": lambda b, x: _binary(b, "Sub", b.add("Exp", _binary(b, "Min", x, 8.0)), 1.0),
    "expm1": lambda b, x: _unary(b, "Expm1", _binary(b, "Min", x, 8.0)),
    "softplus": lambda b, x: _unary(b, "Softplus", x),
    "softplus far left": lambda b, x: _unary(b, "Softplus", _binary(b, "Sub", x, 13.0)),
    "elu": lambda b, x: b.add("Elu", x),
    "tanh": lambda b, x: _unary(b, "Tanh", x),
    "norm": lambda b, x: b.add("LayerNorm", x, axis=1, epsilon=1e-12),
    "norm by root": _norm_by_root,
    "norm by reciprocal": _norm_by_reciprocal,
    "norm by power": _norm_by_power,
    "unit rows": _unit_rows,
    "softmax": _softmax,
    "log softmax": lambda b, x: b.add("Log", _softmax(b, x)),
}


def module_of(chain: Chain) -> Module:
    """The graph of a chain."""
    builder = Builder()
    value = builder.input("x", "f32", SHAPE)
    for name in chain.steps:
        value = STEPS[name](builder, value)
    return builder.module(value)


def feeds_of(chain: Chain) -> dict[str, Array]:
    """Inputs around 1."""
    random = np.random.default_rng(chain.seed)
    return {"x": random.standard_normal(SHAPE).astype(np.float32)}


chains = st.builds(
    Chain,
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4).map(tuple),
    st.integers(0, 9),
)

"""Gradients of operations of two tensors. At a tie `Min` and `Max` share, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.writer import Value, where

Formula = Callable[[Value, Value, Value, Value], Value]  # of g, a, b, y


def _pow_base(g: Value, a: Value, b: Value, y: Value) -> Value:
    return where(b.compare("Eq", 0.0), 0.0, g * b * a.binop("Pow", b - 1.0))


def _pow_exponent(g: Value, a: Value, b: Value, y: Value) -> Value:
    # 0 to a power is 0 around it too, where the logarithm would make it NaN.
    is_flat = a.compare("Eq", 0.0).binop("And", b.compare("Ge", 0.0))
    return where(is_flat, 0.0, g * y * a.op("Log"))


def _extremum(losing_relation: str, is_first: bool) -> Formula:
    def formula(g: Value, a: Value, b: Value, y: Value) -> Value:
        mine, other = (a, b) if is_first else (b, a)
        shared = where(mine.compare("Eq", other), g * 0.5, g)
        return where(mine.compare(losing_relation, other), 0.0, shared)

    return formula


def _whole_quotients(rounding: str) -> Formula:
    return lambda g, a, b, y: -(g * (a / b).unary(rounding))


def _pass_through(g: Value, a: Value, b: Value, y: Value) -> Value:
    return g


_FORMULAS: Mapping[str, tuple[Formula, Formula]] = MappingProxyType(
    {
        "Add": (_pass_through, _pass_through),
        "Sub": (_pass_through, lambda g, a, b, y: -g),
        "Mul": (lambda g, a, b, y: g * b, lambda g, a, b, y: g * a),
        "Div": (lambda g, a, b, y: g / b, lambda g, a, b, y: -(g * (y / b))),
        "Pow": (_pow_base, _pow_exponent),
        "Mod": (_pass_through, _whole_quotients("Floor")),
        "Rem": (_pass_through, _whole_quotients("Trunc")),
        "Min": (_extremum("Gt", True), _extremum("Gt", False)),
        "Max": (_extremum("Lt", True), _extremum("Lt", False)),
    }
)


def _rule(formula: Formula) -> Rule:
    def rule(site: GradientSite) -> Value:
        a, b = site.operands
        return site.unbroadcast(formula(site.compact_g, a, b, site.y))

    return rule


BINARY: Mapping[str, tuple[Rule, Rule]] = MappingProxyType(
    {word: (_rule(lhs), _rule(rhs)) for word, (lhs, rhs) in _FORMULAS.items()}
)


def where_true(site: GradientSite) -> Value:
    """Of `Where` by the first of both."""
    return site.unbroadcast(where(site.operands[0], site.compact_g, 0.0))


def where_false(site: GradientSite) -> Value:
    """Of `Where` by the second of both."""
    return site.unbroadcast(where(site.operands[0], 0.0, site.compact_g))


def prelu_input(site: GradientSite) -> Value:
    """Of `PRelu` by x."""
    x, slope = site.operands
    return where(x.compare("Gt", 0.0), site.compact_g, site.compact_g * slope)


def prelu_slope(site: GradientSite) -> Value:
    """Of `PRelu` by the slope."""
    return site.unbroadcast(where(site.x.compare("Gt", 0.0), 0.0, site.compact_g * site.x))

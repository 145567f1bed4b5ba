"""Algebraic identities that hold for every value, bit for bit."""

from __future__ import annotations

from math import copysign, prod

import numpy as np

from nacre.core.module import Module
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.exact.fold_constants import MAX_ELEMENTS
from nacre.core.rewrite.site import RewriteSite, Rules, either_order

_NUMBERS = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "f16", "f32", "f64"})


def identities(module: Module) -> Module:
    """Apply identities that no value breaks.

    - x + 0 to x for integers, x + -0.0 to x for floats (-0.0 + 0.0 is 0.0, so x + 0.0 stays)
    - x - 0 to x for integers, x - 0.0 to x for floats (x - -0.0 stays)
    - x * 1 to x; the constant may also stand on the left of + and *
    - x * 0 to 0 for integers (of floats, NaN, infinities and -0.0 speak against it)
    - `Neg(Neg(x))` to x, `Relu(Relu(x))` to `Relu(x)`
    """
    return simplify(module, IDENTITIES)


def repeated_function(site: RewriteSite) -> int | None:
    """`Neg` and `Relu` of themselves."""
    inner = site.maker(site.operands[0], site.op.opcode)
    if inner is None:
        return None
    return inner.operands[0] if site.op.opcode == "Neg" else site.operands[0]


def neutral_operand(site: RewriteSite) -> int | None:
    """What an operation comes to whose constant makes it simple."""
    kind, type_ = site.op.attributes["op"], site.op.type
    if kind not in ("Add", "Sub", "Mul") or type_.dtype not in _NUMBERS:
        return None
    for x, constant in either_order(site.op):
        fill = _fill(site, constant)
        if fill is None:
            continue
        if _is_neutral(kind, fill) and site.type(x) == type_:
            return x
        is_zero = kind == "Mul" and type(fill) is int and fill == 0
        if is_zero and prod(type_.shape) <= MAX_ELEMENTS:
            return site.replace_by_constant(np.zeros(type_.shape, type_.element.dtype))
    return None


def _fill(site: RewriteSite, value: int) -> int | float | None:
    """0 or 1 (or -0.0) where every element of a constant is that, sign included; or None.

    None for a parameter, too: a norm that is not trained yet has ones, and is there all the same.
    """
    number = None if value in site.parameters else site.number(value)
    array = None if number not in (0, 1) else site.constant(value)
    if number is None or array is None:
        return None
    if array.dtype.kind != "f":
        return int(number)
    signs = np.signbit(array)
    return number if bool((signs == signs.flat[0]).all()) else None


def _is_neutral(kind: str, fill: int | float) -> bool:
    """Whether x kind fill is x for every x."""
    if kind == "Mul":
        return fill == 1
    if fill != 0:
        return False
    if isinstance(fill, int):
        return True
    return copysign(1.0, fill) == (-1.0 if kind == "Add" else 1.0)


IDENTITIES: Rules = {
    "BinOp": [neutral_operand],
    "Neg": [repeated_function],
    "Relu": [repeated_function],
}

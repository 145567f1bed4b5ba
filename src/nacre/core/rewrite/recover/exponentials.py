"""`Sigmoid`, `Silu` and `Softplus`, spelt out in exponentials.

Where e^x is beyond the floats the spelling is infinite or 0; the operation is what it should be.
"""

from __future__ import annotations

from math import inf

from nacre.core.module import CoreOperation
from nacre.core.rewrite.recover.expressions import is_float, without_bounds
from nacre.core.rewrite.site import RewriteSite, either_order


def sigmoid_or_silu(site: RewriteSite) -> int | None:
    """1 / (1 + Exp(-x)), Exp(x) / (1 + Exp(x)); x / (1 + Exp(-x))."""
    if site.attributes["op"] != "Div" or not is_float(site):
        return None
    above, below = site.operands
    exponent = _exponent_beside_one(site, below)
    if exponent is None:
        return None
    if site.number(above) == 1.0:
        return site.add("Unary", _negate(site, exponent), op="Sigmoid")
    power = site.maker(above, "Exp")
    if power is not None and power.operands[0] == exponent:
        return site.add("Unary", exponent, op="Sigmoid")
    if _negated(site, exponent) == above or _negated(site, above) == exponent:
        return site.add("Silu", above)
    return None


def sigmoid_by_power(site: RewriteSite) -> int | None:
    """Pow(1 + Exp(-x), -1)."""
    base, exponent = site.operands
    is_inverse = site.attributes["op"] == "Pow" and site.number(exponent) == -1.0
    return _sigmoid_of_inverse(site, base) if is_inverse and is_float(site) else None


def sigmoid_by_reciprocal(site: RewriteSite) -> int | None:
    """Reciprocal(1 + Exp(-x))."""
    is_inverse = site.attributes["op"] == "Reciprocal"
    return _sigmoid_of_inverse(site, site.operands[0]) if is_inverse else None


def _sigmoid_of_inverse(site: RewriteSite, value: int) -> int | None:
    exponent = _exponent_beside_one(site, value)
    return None if exponent is None else site.add("Unary", _negate(site, exponent), op="Sigmoid")


def silu(site: RewriteSite) -> int | None:
    """X * Sigmoid(x)."""
    for x, other in either_order(site.op) if site.attributes["op"] == "Mul" else ():
        gate = site.maker(other, "Unary", op="Sigmoid")
        if gate is not None and gate.operands[0] == x:
            return site.add("Silu", x)
    return None


def softplus(site: RewriteSite) -> int | None:
    """Log(1 + Exp(x)), or by `Log1p`; not of -|x|, of which it would take more steps."""
    x = _argument_of_softplus(site, site.op)
    if x is None or _size_below_zero(site, x) is not None:
        return None
    return site.add("Unary", x, op="Softplus")


def softplus_of_parts(site: RewriteSite) -> int | None:
    """Relu(x) + Log(1 + Exp(-|x|))."""
    for above, rest in either_order(site.op) if site.attributes["op"] == "Add" else ():
        logarithm = site.maker(rest, "Log", "Unary")
        exponent = None if logarithm is None else _argument_of_softplus(site, logarithm)
        x, bounds = without_bounds(site, above)
        if exponent is not None and bounds == (0.0, inf) and _size_below_zero(site, exponent) == x:
            return site.add("Unary", x, op="Softplus")
    return None


def _argument_of_softplus(site: RewriteSite, op: CoreOperation) -> int | None:
    """X of Log(1 + Exp(x)) or Log1p(Exp(x))."""
    if op.opcode == "Log":
        return _exponent_beside_one(site, op.operands[0])
    power = site.maker(op.operands[0], "Exp") if op.attributes["op"] == "Log1p" else None
    return None if power is None else power.operands[0]


def _size_below_zero(site: RewriteSite, value: int) -> int | None:
    """X of -|x|."""
    size = _negated(site, value)
    function = None if size is None else site.maker(size, "Unary", op="Abs")
    return None if function is None else function.operands[0]


def _exponent_beside_one(site: RewriteSite, value: int) -> int | None:
    """X of 1 + Exp(x)."""
    for power, one in either_order(site.maker(value, "BinOp", op="Add")):
        function = site.maker(power, "Exp")
        if function is not None and site.number(one) == 1.0:
            return function.operands[0]
    return None


def _negated(site: RewriteSite, value: int) -> int | None:
    """X of -x, -1 * x or 0 - x."""
    opposite = site.maker(value, "Neg")
    if opposite is not None:
        return opposite.operands[0]
    op = site.maker(value, "BinOp")
    if op is None:
        return None
    if op.attributes["op"] == "Sub":
        return op.operands[1] if site.number(op.operands[0]) == 0 else None
    for x, other in either_order(op) if op.attributes["op"] in ("Mul", "Div") else ():
        if site.number(other) == -1.0:
            return x
    return None


def _negate(site: RewriteSite, value: int) -> int:
    """The opposite of a value; the sign goes into the number that it is multiplied by."""
    x = _negated(site, value)
    if x is not None:
        return x
    for x, factor in either_order(site.maker(value, "BinOp", op="Mul")):
        number = site.constant(factor) if site.number(factor) is not None else None
        if number is not None:
            return site.add("BinOp", x, site.literal(-number, site.op.type.dtype), op="Mul")
    return site.add("Neg", value)

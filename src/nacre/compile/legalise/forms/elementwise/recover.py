"""What some exporters spell out, put back into one operation.

Beside saving work this saves digits: in 16 bits a mean of squares less the square of a mean is
noise, where a norm of the device keeps its sums in f32.
"""

from __future__ import annotations

from math import isclose, pi, sqrt

import numpy as np

from nacre.compile.legalise.forms.elementwise.recover_norms import along, behind_views, kept
from nacre.compile.legalise.forms.windows.windows import reshaped
from nacre.core.module import CoreOperation
from nacre.core.rewrite.site import RewriteSite, Rules, per_channel


def kept_axes(site: RewriteSite) -> int | None:
    """A reduction whose axes a view puts back: one that keeps them."""
    found = site.maker(site.operands[0], "Mean", "Sum", "Reduce")
    if found is None or found.attributes.get("keepdims"):
        return None
    shape = site.type(found.operands[0]).shape
    axes = tuple(axis % len(shape) for axis in found.attributes["axes"])
    if not axes or site.op.type.shape != kept(shape, axes):
        return None
    return site.add(found.opcode, found.operands[0], **{**found.attributes, "keepdims": True})


def mean_of_sum(site: RewriteSite) -> int | None:
    """A sum times 1 / count, or over the count: a mean."""
    kind = site.attributes["op"]
    if kind not in ("Mul", "Div"):
        return None
    orders = (site.operands, site.operands[::-1]) if kind == "Mul" else (site.operands,)
    for value, other in orders:
        total, number = site.maker(value, "Sum"), site.number(other)
        if total is None or number is None or site.op.type != total.type:
            continue
        shape = site.type(total.operands[0]).shape
        axes = total.attributes["axes"] or tuple(range(len(shape)))
        count = float(np.prod([shape[axis] for axis in axes]))
        if isclose(number, 1 / count if kind == "Mul" else count, rel_tol=1e-6):
            return site.add("Mean", total.operands[0], **total.attributes)
    return None


def layer_norm(site: RewriteSite) -> int | None:
    """(x - mean) * (scale / sqrt(mean of squares - square of mean + epsilon))."""
    if site.attributes["op"] != "Mul":
        return None
    for centred, factor in (site.operands, site.operands[::-1]):
        less = site.maker(centred, "BinOp", op="Sub")
        if less is None:
            continue
        x = less.operands[0]
        mean = site.maker(behind_views(site, less.operands[1]), "Mean")
        if mean is None or mean.operands[0] != x or len(mean.attributes["axes"]) != 1:
            continue
        scale, root = _scaled_root(site, factor)
        epsilon = None if root is None else _spread(site, root, mean)
        axis = mean.attributes["axes"][0] % site.type(x).rank
        if epsilon is None or site.type(less.operands[1]).shape != kept(
            site.type(x).shape, (axis,)
        ):
            continue
        return _norm(site, x, axis, epsilon, scale)
    return None


def _scaled_root(site: RewriteSite, factor: int) -> tuple[int | None, int | None]:
    """A constant scale, and what the root is taken of, of scale * (1 / sqrt(..))."""
    found = site.maker(factor, "BinOp", op="Mul")
    if found is not None:
        split = site.split(found)
        if split is None:
            return None, None
        scale = next(o for o in found.operands if o != split[0])
        return scale, _root(site, split[0])
    return None, _root(site, factor)


def _root(site: RewriteSite, value: int) -> int | None:
    value = behind_views(site, value)
    direct = site.maker(value, "Unary", op="Rsqrt")
    if direct is not None:
        return direct.operands[0]
    over = site.maker(value, "Unary", op="Reciprocal")
    root = None if over is None else site.maker(over.operands[0], "Unary", op="Sqrt")
    return None if root is None else root.operands[0]


def _spread(site: RewriteSite, value: int, mean: CoreOperation) -> float | None:
    """Epsilon, where a value is the variance that goes with a mean, plus epsilon."""
    total = site.maker(behind_views(site, value), "BinOp", op="Add")
    split = None if total is None else site.split(total)
    if split is None or split[1].size != 1:
        return None
    epsilon, variance = float(np.ravel(split[1])[0]), behind_views(site, split[0])
    held = site.maker(variance, "BinOp", op="Max")
    if held is not None:
        inner = site.split(held)
        if inner is None or bool((inner[1] != 0).any()):
            return None
        variance = behind_views(site, inner[0])
    less = site.maker(variance, "BinOp", op="Sub")
    if less is None:
        return None
    squares = site.maker(behind_views(site, less.operands[0]), "Mean")
    if squares is None or squares.attributes["axes"] != mean.attributes["axes"]:
        return None
    if _squared(site, squares.operands[0]) != mean.operands[0]:
        return None
    centre = _squared(site, less.operands[1])
    is_same = centre is not None and behind_views(site, centre) == mean.value_id
    return epsilon if is_same else None


def _squared(site: RewriteSite, value: int) -> int | None:
    found = site.maker(behind_views(site, value), "BinOp", op="Mul")
    if found is None or behind_views(site, found.operands[0]) != behind_views(
        site, found.operands[1]
    ):
        return None
    return found.operands[0]


def _norm(site: RewriteSite, x: int, axis: int, epsilon: float, scale: int | None) -> int:
    """A norm along an axis, times a scale where there is one."""
    made = along(site, "LayerNorm", x, (axis,), epsilon)
    if scale is None:
        return reshaped(site, made, site.op.type.shape)
    return site.add("BinOp", made, scale, op="Mul")


def norm_parameters(site: RewriteSite) -> int | None:
    """A constant that a norm between two transpositions is multiplied by, or that is added."""
    kind = site.attributes["op"]
    split = site.split(site.op) if kind in ("Mul", "Add") else None
    turn = None if split is None else site.only(split[0], "Transpose")
    norm = None if turn is None else site.only(turn.operands[0], "LayerNorm")
    if split is None or turn is None or norm is None or site.op.type != turn.type:
        return None
    axis = tuple(turn.attributes["permutation"]).index(norm.type.rank - 1)
    numbers = per_channel(split[1], turn.type.shape, axis)
    if numbers is None or norm.attributes["axis"] != norm.type.rank - 1:
        return None
    x, *given = norm.operands
    literal, dtype = site.literal(numbers, norm.type.dtype), norm.type.dtype
    if kind == "Mul":
        if given:
            return None
        made = site.add("LayerNorm", x, literal, **norm.attributes)
    else:
        if len(given) > 1:
            return None
        scale = given or [site.literal(np.ones(numbers.shape), dtype)]
        made = site.add("LayerNorm", x, *scale, literal, **norm.attributes)
    return site.add("Transpose", made, permutation=turn.attributes["permutation"])


def softmax(site: RewriteSite) -> int | None:
    """Exp(x - max) / Sum(Exp(x - max)), or without the maximum, which plays no part."""
    if site.attributes["op"] != "Div":
        return None
    powers, total = site.operands
    sums = site.maker(behind_views(site, total), "Sum")
    exp = site.maker(powers, "Exp")
    if sums is None or exp is None or sums.operands[0] != powers:
        return None
    if len(sums.attributes["axes"]) != 1:
        return None
    axis = sums.attributes["axes"][0] % exp.type.rank
    if site.type(total).shape != kept(site.type(powers).shape, (axis,)):
        return None
    return site.add("Softmax", _centred(site, exp.operands[0], axis), axis=axis)


def _centred(site: RewriteSite, value: int, axis: int) -> int:
    """X of x - max(x), whatever else holds the maximum from below."""
    less = site.maker(value, "BinOp", op="Sub")
    if less is None:
        return value
    x, most = less.operands[0], behind_views(site, less.operands[1])
    held = site.maker(most, "BinOp", op="Max")
    split = None if held is None else site.split(held)
    if split is not None and bool(np.isneginf(split[1].astype(np.float64)).all()):
        most = behind_views(site, split[0])
    top = site.maker(most, "Reduce", op="Max")
    is_top = top is not None and top.operands[0] == x
    rank = site.type(x).rank
    is_along = top is not None and [a % rank for a in top.attributes["axes"]] == [axis]
    return x if is_top and is_along else value


def gelu_by_tanh(site: RewriteSite) -> int | None:
    """X * (0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))), the factors in any order."""
    if site.attributes["op"] != "Mul":
        return None
    for x, other in (site.operands, site.operands[::-1]):
        gate, factor = _times(site, other)
        if factor is not None and isclose(factor, 0.5) and _is_gate(site, gate, x):
            return site.add("Gelu", x, approximate="tanh")
        half = _times(site, x)
        if half[1] is not None and isclose(half[1], 0.5) and _is_gate(site, other, half[0]):
            return site.add("Gelu", half[0], approximate="tanh")
    value, factor = _times_of(site, site.op)
    if factor is not None and isclose(factor, 0.5):
        inner = site.maker(value, "BinOp", op="Mul")
        for x, gate in () if inner is None else (inner.operands, inner.operands[::-1]):
            if _is_gate(site, gate, x):
                return site.add("Gelu", x, approximate="tanh")
    return None


def _times(site: RewriteSite, value: int) -> tuple[int, float | None]:
    """A value and the number that it is multiplied by."""
    found = site.maker(value, "BinOp", op="Mul")
    return (value, None) if found is None else _times_of(site, found)


def _times_of(site: RewriteSite, op: CoreOperation) -> tuple[int, float | None]:
    operands = site.operands if op is site.op else op.operands
    for value, other in (operands, operands[::-1]):
        number = site.number(other)
        if number is not None:
            return value, number
    return op.value_id if op is not site.op else operands[0], None


def _is_gate(site: RewriteSite, value: int, x: int) -> bool:
    """Whether a value is 1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3))."""
    total = site.maker(value, "BinOp", op="Add")
    split = None if total is None else site.split(total)
    if split is None or not bool((split[1] == 1).all()):
        return False
    gate = site.maker(split[0], "Unary", op="Tanh")
    if gate is None:
        return False
    inner, factor = _times(site, gate.operands[0])
    if factor is None or not isclose(factor, sqrt(2 / pi), rel_tol=1e-4):
        return False
    cubic = site.maker(inner, "BinOp", op="Add")
    if cubic is None:
        return False
    return any(
        one == x and _is_cube(site, other, x)
        for one, other in (cubic.operands, cubic.operands[::-1])
    )


def _is_cube(site: RewriteSite, value: int, x: int) -> bool:
    """Whether a value is 0.044715 * x * x * x, in whatever order, or by `Pow`."""
    factors, number, todo = 0, 1.0, [value]
    while todo:
        at = todo.pop()
        found, known = site.maker(at, "BinOp"), site.number(at)
        if known is not None:
            number *= known
        elif at == x:
            factors += 1
        elif found is not None and found.attributes["op"] == "Mul":
            todo.extend(found.operands)
        elif found is not None and found.attributes["op"] == "Pow" and found.operands[0] == x:
            power = site.number(found.operands[1])
            factors += int(power) if power in (2.0, 3.0) else 100
        else:
            return False
    return factors == 3 and isclose(number, 0.044715, rel_tol=1e-3)


def relu(site: RewriteSite) -> int | None:
    """X where it is above 0, else 0, as `to_onnx` writes it, from either side."""
    condition, a, b = site.operands
    compared = site.maker(condition, "Compare")
    if compared is None or site.op.type.element.kind != "float":
        return None
    left, right = compared.operands
    kind = str(compared.attributes["op"])
    if site.number(left) == 0:  # 0 < x: x > 0
        left, right, kind = right, left, _MIRRORED.get(kind, "")
    x, zero, opcode = (a, b, "Relu") if kind in ("Gt", "Ge") else (b, a, "ReluNan")
    is_relu = left == x and site.number(right) == 0 and site.number(zero) == 0
    return site.add(opcode, x) if is_relu and kind in _MIRRORED else None


_MIRRORED = {"Gt": "Lt", "Ge": "Le", "Lt": "Gt", "Le": "Ge"}
VIEW_FORMS: Rules = {"Reshape": [kept_axes], "ExpandDims": [kept_axes]}
RECOVER_FORMS: Rules = {
    "BinOp": [mean_of_sum, gelu_by_tanh, softmax, layer_norm, norm_parameters],
    "Where": [relu],
}

"""Norms in whatever order their parts are spelt, put back into one operation.

Beside saving work this saves digits: in 16 bits a mean of squares less the square of a mean is
noise, where a norm of the device keeps its sums in f32.
"""

from __future__ import annotations

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.rewrite.inexact.transposes import inverse
from nacre.core.rewrite.recover.moments import Axes, Moments, Polynomial
from nacre.core.rewrite.recover.parts import norm_along
from nacre.core.rewrite.site import Rewrite, RewriteSite, Rules
from nacre.core.values import Array

_MOST_SEEN = 48  # operations behind the one at hand
_ROOTS = frozenset({"Sqrt", "Rsqrt"})
_REDUCTIONS = ("Mean", "Sum", "Reduce")
_INSIDE = frozenset(
    {"BinOp", "Unary", "Neg", "Reshape", "ExpandDims", "Squeeze", "Broadcast", "Clip", "Relu",
     "ReluNan", "Where", *_REDUCTIONS}
)  # fmt: skip


def norm_rule(most_guard: float) -> Rewrite:
    """The rule; how large a number may keep a root from 0, so that it counts as its epsilon."""

    def norm(site: RewriteSite) -> int | None:
        """A product or sum that comes to (x - mean) / sqrt(variance + epsilon) * scale + bias.

        Or the same without the mean. What stands between may be in any order, and multiplied out.
        """
        if site.attributes["op"] not in ("Add", "Sub", "Mul", "Div") or not _is_float(site):
            return None
        for x, axes in _candidates(site):
            if site.type(x).shape != site.op.type.shape:
                continue
            read = Moments(site, x, axes, most_guard)
            polynomial = read.of_site()
            if polynomial is None or read.root is None:
                continue
            parameters = _scale_and_bias(polynomial, read.root.is_centred)
            if parameters is not None:
                opcode = "LayerNorm" if read.root.is_centred else "RmsNorm"
                return _with_scale_and_bias(
                    site, norm_along(site, opcode, x, axes, read.root.epsilon), *parameters
                )
        return None

    return norm


def _is_float(site: RewriteSite) -> bool:
    return site.op.type.element.kind == "float"


def _candidates(site: RewriteSite) -> dict[tuple[int, Axes], None]:
    """Tensors whose moments stand behind a root, with the axes that they are taken over."""
    candidates: dict[tuple[int, Axes], None] = {}
    pending, seen, has_root = list(site.operands), set[int](), False
    while pending and len(seen) < _MOST_SEEN:
        value = pending.pop(0)
        if value in seen:
            continue
        seen.add(value)
        op = site.maker(value)
        assert op is not None
        if op.opcode not in _INSIDE:
            continue
        has_root = has_root or _is_root(site, op)
        if op.opcode in _REDUCTIONS:
            shape = site.type(op.operands[0]).shape
            given = op.attributes["axes"] or range(len(shape))
            axes = tuple(sorted({axis % len(shape) for axis in given}))
            for x in (op.operands[0], *_centred_or_squared(site, op.operands[0])):
                candidates.setdefault((x, axes))
        pending += op.operands
    return candidates if has_root else {}


def _centred_or_squared(site: RewriteSite, value: int) -> list[int]:
    """What is squared, or what a mean is taken off, in the operand of a reduction."""
    inner: list[int] = []
    for _ in range(2):
        op = site.maker(value, "BinOp")
        if op is None or site.constant(op.operands[0]) is not None:
            break
        value = op.operands[0]
        inner.append(value)
    return inner


def _is_root(site: RewriteSite, op: CoreOperation) -> bool:
    name = op.attributes.get("op")
    if op.opcode == "Unary":
        return name in _ROOTS
    if op.opcode == "Reduce":
        return name == "L2"
    is_power = op.opcode == "BinOp" and name == "Pow"
    return is_power and site.number(op.operands[1]) in (0.5, -0.5)


def _scale_and_bias(polynomial: Polynomial, is_centred: bool) -> tuple[Array, Array] | None:
    """The coefficients of a norm, where a polynomial is nothing else."""
    terms = {term: array for term, array in polynomial.items() if bool((array != 0).any())}
    bias = terms.pop((), np.array(0.0))
    scale = terms.pop(("root", "x"), None)
    minus = terms.pop(("mean", "root"), None)
    if terms or scale is None or (minus is not None) != is_centred:
        return None
    if minus is not None:
        size = float(np.max(np.abs(scale)))
        # Of f32: what the model multiplies out it rounds on the way.
        if not _broadcasts(scale, minus) or float(np.max(np.abs(scale + minus))) > 1e-5 * size:
            return None
    return scale, bias


def _broadcasts(a: Array, b: Array) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


def _with_scale_and_bias(site: RewriteSite, norm: int, scale: Array, bias: Array) -> int:
    dtype, shape = site.op.type.dtype, site.op.type.shape
    for name, array, idle in (("Mul", scale, 1.0), ("Add", bias, 0.0)):
        if bool((array == idle).all()):
            continue
        norm = site.add("BinOp", norm, site.literal(array, dtype), op=name)
    return site.reshape(norm, shape)


def scale_and_bias(site: RewriteSite) -> int | None:
    """A norm times a constant, and plus one: its scale and bias; axes may be turned in between."""
    kind = site.attributes["op"]
    split = site.split(site.op) if kind in ("Mul", "Add") else None
    if split is None or site.type(split[0]) != site.op.type:
        return None
    turn = site.only(split[0], "Transpose")
    norm = site.only(split[0] if turn is None else turn.operands[0], "LayerNorm", "RmsNorm")
    whole = None if norm is None else _row_constant(norm, turn, split[1])
    if norm is None or whole is None:
        return None
    x, *given = norm.operands
    if kind == "Mul" and not given:
        given = [site.literal(whole, norm.type.dtype)]
    elif kind == "Add" and norm.opcode == "LayerNorm" and len(given) < 2:
        scale = given or [site.literal(np.ones(whole.shape), norm.type.dtype)]
        given = [*scale, site.literal(whole, norm.type.dtype)]
    else:
        return None
    scaled_norm = site.add(norm.opcode, x, *given, **norm.attributes)
    return scaled_norm if turn is None else site.add("Transpose", scaled_norm, **turn.attributes)


def _row_constant(norm: CoreOperation, turn: CoreOperation | None, constant: Array) -> Array | None:
    """A constant for each element of a row that is normalised, if that is what it comes to."""
    rank = norm.type.rank
    if constant.ndim > rank:
        return None
    whole = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    if turn is not None:
        whole = whole.transpose(inverse(turn.attributes["permutation"]))
    axis = norm.attributes["axis"] % rank
    if any(size != 1 for size in whole.shape[:axis]):
        return None
    return np.broadcast_to(whole.reshape(whole.shape[axis:]), norm.type.shape[axis:])


# Beside a root near 1, f32 does not see the first, and f16 not the second.
NORMS: Rules = {"BinOp": [norm_rule(1e-8)]}
NORMS_OF_HALVES: Rules = {"BinOp": [norm_rule(1e-5)]}
SCALES_AND_BIASES: Rules = {"BinOp": [scale_and_bias]}

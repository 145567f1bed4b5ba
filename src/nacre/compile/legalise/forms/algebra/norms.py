"""Norms in whatever order their parts are spelt, put back into one operation."""

from __future__ import annotations

import numpy as np

from nacre.compile.legalise.forms.algebra.moments import Axes, Moments, Polynomial
from nacre.compile.legalise.forms.elementwise.recover_norms import along, kept
from nacre.compile.legalise.forms.windows.windows import reshaped
from nacre.core.module import CoreOperation
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array

_LEAST_EPSILON = 1e-30  # so that the norm of nothing but zeros is zeros
_MOST_SEEN = 48  # operations behind the one at hand
_ROOTS = frozenset({"Sqrt", "Rsqrt"})
_REDUCTIONS = ("Mean", "Sum", "Reduce")
_INSIDE = frozenset(
    {"BinOp", "Unary", "Neg", "Reshape", "ExpandDims", "Squeeze", "Broadcast", "Clip", "Relu",
     "ReluNan", "Where", *_REDUCTIONS}
)  # fmt: skip


def norm(site: RewriteSite) -> int | None:
    """A product or sum that comes to (x - mean) / sqrt(variance + epsilon) * scale + bias.

    Or the same without the mean. What stands between may be in any order, and multiplied out.
    """
    if site.attributes["op"] not in ("Add", "Sub", "Mul", "Div") or not _is_float(site):
        return None
    for x, axes in _candidates(site):
        if site.type(x).shape != site.op.type.shape:
            continue
        read = Moments(site, x, axes)
        polynomial = read.of_site()
        if polynomial is None or read.root is None:
            continue
        found = _scale_and_bias(polynomial, read.root.is_centred)
        if found is not None:
            epsilon = max(read.root.epsilon, _LEAST_EPSILON)
            opcode = "LayerNorm" if read.root.is_centred else "RmsNorm"
            return _applied(site, along(site, opcode, x, axes, epsilon), *found)
    return None


def _is_float(site: RewriteSite) -> bool:
    return site.op.type.element.kind == "float"


def _candidates(site: RewriteSite) -> dict[tuple[int, Axes], None]:
    """Tensors whose moments stand behind a root, with the axes that they are taken over."""
    found: dict[tuple[int, Axes], None] = {}
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
            for x in (op.operands[0], *_inside(site, op.operands[0])):
                found.setdefault((x, axes))
        pending += op.operands
    return found if has_root else {}


def _inside(site: RewriteSite, value: int) -> list[int]:
    """What is squared, or what a mean is taken off, in the operand of a reduction."""
    found: list[int] = []
    for _ in range(2):
        op = site.maker(value, "BinOp")
        if op is None or site.constant(op.operands[0]) is not None:
            break
        value = op.operands[0]
        found.append(value)
    return found


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


def _applied(site: RewriteSite, made: int, scale: Array, bias: Array) -> int:
    dtype, shape = site.op.type.dtype, site.op.type.shape
    for name, array, idle in (("Mul", scale, 1.0), ("Add", bias, 0.0)):
        if bool((array == idle).all()):
            continue
        made = site.add("BinOp", made, site.literal(array, dtype), op=name)
    return reshaped(site, made, shape)


def batch_norm(site: RewriteSite) -> int | None:
    """With statistics of the tensor itself: written out, so that it is found to be a norm."""
    x, scale, bias, mean, variance = site.operands
    if site.constant(mean) is not None and site.constant(variance) is not None:
        return None
    shape, axis = site.type(x).shape, site.attributes.get("axis", 1)
    assert isinstance(axis, int)
    wide = kept(shape, tuple(a for a in range(len(shape)) if a != axis % len(shape)))
    scale, bias, mean, variance = (reshaped(site, v, wide) for v in (scale, bias, mean, variance))
    epsilon = site.literal(np.array(site.attributes["epsilon"]), site.op.type.dtype)
    root = site.add("Unary", site.add("BinOp", variance, epsilon, op="Add"), op="Sqrt")
    made = site.add("BinOp", site.add("BinOp", x, mean, op="Sub"), root, op="Div")
    made = site.add("BinOp", made, scale, op="Mul")
    return site.add("BinOp", made, bias, op="Add")


SPELT_OUT: Rules = {"BinOp": [norm], "BatchNorm": [batch_norm]}

"""Operations on constants, done ahead of time where that is exact."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import V1_TYPES
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.folding import compute, known_operands
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array
from nacre.kernels.interface.runs import quietly

MAX_ELEMENTS = 65_536  # of a result: a module is not to grow into an image of its memory
# Results that are larger than this count towards what one walk may fold: a short text with many
# large broadcasts would otherwise become gigabytes.
_SMALL = 1024
_BUDGET = 1 << 25

_MOVES = frozenset({"Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Index", "Gather"})
_FLOATS = _MOVES | {"BinOp", "Neg", "Relu"}
_INTEGERS = _MOVES | {"BinOp", "Neg", "Sum", "Mean"}
_EXACT: Mapping[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}


def fold_constants(module: Module) -> Module:
    """Compute operations whose operands are constants, with the kernels that would run them.

    - `BinOp` Add, Sub, Mul and `Neg`: integers where nothing wraps; floats where the result is
      finite (`Neg` always), with the bits that the run would give
    - `Relu`
    - `Sum` of integers where nothing wraps, `Mean` of integers
    - `Reshape`, `Transpose`, `ExpandDims`, `Squeeze`, `Slice`, and `Index` and `Gather` inside of
      the tensor

    Parameters that have names are only moved, and only where they are used once: with their
    elements in other numbers they would be none, and in two places they would be two. Only i32,
    i64, f32 and f64, and at most 65,536 elements. What depends on the order of summation or on the
    platform's mathematics (float sums, products of matrices, `Exp`, `Log`) is left to the run.
    Scalars become `ConstI64`, `ConstF32` or `ConstF64`.
    """
    return simplify(module, fold_rules())


def fold_rules() -> Rules:
    """The rule, with a budget of its own."""
    left = _BUDGET

    def fold(site: RewriteSite) -> int | None:
        nonlocal left
        op = site.op
        if not _may_fold(op) or _changes_parameter(site):
            return None
        arrays = known_operands(site)
        if arrays is None:
            return None
        # Moves cost what they move, the rest what it reads.
        sizes = () if op.opcode in _MOVES else (a.size for a in arrays)
        work = max(prod(op.type.shape), *sizes, 0)
        if work > MAX_ELEMENTS or work > left:
            return None
        left -= work if work > _SMALL else 0
        result = compute_safely(site, arrays)
        if result is None:
            return None
        if op.opcode in _MOVES and op.operands[0] in site.parameters:
            site.parameters[op.value_id] = site.parameters[op.operands[0]]
        return site.replace_by_constant(result)

    return {opcode: [fold] for opcode in _FLOATS | _INTEGERS}


def _may_fold(op: CoreOperation) -> bool:
    if op.type.dtype not in V1_TYPES:
        return False
    known = _INTEGERS if op.type.element.is_integer else _FLOATS
    return op.opcode in known and (op.opcode != "BinOp" or op.attributes["op"] in _EXACT)


def _changes_parameter(site: RewriteSite) -> bool:
    """Whether a fold would give a parameter other elements, or some of them a second time."""
    changed = [value for value in site.operands if value in site.parameters]
    if not changed or site.op.opcode not in _MOVES:
        return bool(changed)
    if not site.is_single(changed[0]):
        return True
    indices = site.constant(site.operands[1]) if site.op.opcode == "Gather" else None
    return indices is not None and np.unique(indices).size < indices.size


def compute_safely(site: RewriteSite, arrays: Sequence[Array]) -> Array | None:
    """The result of an operation on constants; None where it is not safe to have it now."""
    element = site.op.type.element
    if element.is_integer and not _stays_inside(site.op, arrays, element):
        return None
    result = compute(site, arrays)
    if result is None or site.op.opcode != "BinOp" or element.is_integer:
        return result
    # NumPy warns of NaN that signal.
    return result if quietly(np.isfinite, result).all() else None


def _stays_inside(op: CoreOperation, arrays: Sequence[Array], element: ElementType) -> bool:
    """Whether the exact result of integer arithmetic fits its type."""
    if op.opcode == "BinOp":
        return _fits_binop(op.attributes["op"], arrays[0], arrays[1], element)
    if op.opcode == "Neg":
        return int(arrays[0].min()) > element.lowest
    if op.opcode == "Sum":
        return _fits_sum(op, arrays[0], element)
    return True


def _fits_binop(kind: str, a: Array, b: Array, element: ElementType) -> bool:
    exact = _EXACT[kind]
    ends = [exact(x, y) for x in (int(a.min()), int(a.max())) for y in (int(b.min()), int(b.max()))]
    if _is_inside(min(ends), max(ends), element):
        return True
    # The ends may not meet in one element: ask all of them, in integers without bounds.
    every = exact(a.astype(object), b.astype(object))
    return _is_inside(np.min(every), np.max(every), element)


def _fits_sum(op: CoreOperation, x: Array, element: ElementType) -> bool:
    count = x.size // prod(op.type.shape)
    if _is_inside(int(x.min()) * count, int(x.max()) * count, element):
        return True
    axes = tuple(op.attributes["axes"]) or None
    every = np.sum(x.astype(object), axis=axes)
    return _is_inside(np.min(every), np.max(every), element)


def _is_inside(least: int, most: int, element: ElementType) -> bool:
    return bool(element.lowest <= least and most <= element.highest)

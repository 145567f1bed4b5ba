"""Values as polynomials in a tensor, its mean, the mean of its squares and the root of its spread.

Exporters spell a variance as a mean of squares less the square of a mean, or as a sum of squared
differences over a count; multiplied out, all of them are the same polynomial.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, prod, sqrt
from typing import Literal, NamedTuple

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

Axes = tuple[int, ...]
# The tensor itself, its mean, the mean of its squares, 1 / sqrt(spread + epsilon).
Atom = Literal["x", "mean", "squares", "root"]
Term = tuple[Atom, ...]
Polynomial = Mapping[Term, Array]

_MOST_TERMS, _MOST_DEPTH = 8, 16
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_TOLERANCE = 1e-5  # of coefficients, which models hold in f32
_LEAST_GUARD = 1e-15  # where a root of 0 is replaced, so that the norm of zeros is zeros
_UNBOUNDED = 3e38  # what a spread is held below only in name


class Variance(NamedTuple):
    """What a root is taken of: a variance or a mean of squares, times a factor, and epsilon."""

    is_centred: bool
    factor: float
    epsilon: float


class Moments:
    """Reads values as polynomials about one tensor and some of its axes."""

    def __init__(self, site: RewriteSite, x: int, axes: Axes, most_guard: float) -> None:
        self._site, self._x, self._axes = site, x, axes
        self._most_guard = most_guard  # what keeps a root from 0, and is of no account else
        self._shape = site.type(x).shape
        self._count = prod(self._shape[axis] for axis in axes)
        self._kept = tuple(1 if a in axes else d for a, d in enumerate(self._shape))
        self.root: Variance | None = None  # the only one there is
        self._known: dict[int, Polynomial | None] = {}

    def of_site(self) -> Polynomial | None:
        """The operation at hand."""
        op = self._site.op
        return self._sum(str(op.attributes["op"]), self._site.operands, 0)

    def of(self, value: int, depth: int) -> Polynomial | None:
        """A value; None where it is something else."""
        if value == self._x:
            return {("x",): np.array(1.0)}
        if value not in self._known:
            self._known[value] = None if depth > _MOST_DEPTH else self._read(value, depth + 1)
        return self._known[value]

    def _read(self, value: int, depth: int) -> Polynomial | None:
        constant = self._site.constant(value)
        if constant is not None:
            is_float = constant.dtype.kind == "f"
            return {(): constant.astype(np.float64)} if is_float else None
        op = self._site.maker(value)
        assert op is not None
        if op.opcode in _VIEWS or op.opcode == "Broadcast":
            return self._through_view(op, depth)
        if op.opcode in ("Mean", "Sum", "Reduce"):
            return self._reduction(op, depth)
        root = self._reciprocal_root(op, depth)
        if root is not None:
            return root
        if op.opcode == "BinOp":
            return self._sum(str(op.attributes["op"]), op.operands, depth)
        if op.opcode == "Neg":
            return _scale(self.of(op.operands[0], depth), -1.0)
        return None

    def _sum(self, name: str, operands: tuple[int, ...], depth: int) -> Polynomial | None:
        a, b = operands
        if name == "Div":
            return self._quotient(a, b, depth)
        if name == "Pow":
            return self._power(a, b, depth)
        if name not in ("Add", "Sub", "Mul"):
            return None
        left = self.of(a, depth)
        right = None if left is None else self.of(b, depth)
        if left is None or right is None:
            return None
        if name == "Mul":
            return _product(left, right)
        return _total(left, right if name == "Add" else _scale(right, -1.0))

    def _quotient(self, a: int, b: int, depth: int) -> Polynomial | None:
        over = self._site.constant(b)
        if over is not None:
            is_sound = over.dtype.kind == "f" and bool((over != 0).all())
            return _scale(self.of(a, depth), 1 / over.astype(np.float64)) if is_sound else None
        root = self._root(b, depth)
        above = None if root is None else self.of(a, depth)
        return (
            None
            if root is None or above is None
            else _product(above, self._add_reciprocal_root(root))
        )

    def _power(self, a: int, b: int, depth: int) -> Polynomial | None:
        exponent = self._site.number(b)
        if exponent == 2.0:
            base = self.of(a, depth)
            return None if base is None else _product(base, base)
        if exponent == -0.5:
            inner = self._variance(a, depth)
            return None if inner is None else self._add_reciprocal_root(inner)
        return None

    def _through_view(self, op: CoreOperation, depth: int) -> Polynomial | None:
        """What has one number a row may lose or win axes of size 1."""
        inner = self.of(op.operands[0], depth)
        if inner is None or any("x" in term for term in inner):
            return None
        if op.opcode != "Broadcast" and any(array.size != 1 for array in inner.values()):
            return None
        return {term: array.reshape(()) if array.size == 1 else array
                for term, array in inner.items()}  # fmt: skip

    def _reduction(self, op: CoreOperation, depth: int) -> Polynomial | None:
        """The mean of a polynomial over the axes, which the mean itself is the same along."""
        source = op.operands[0]
        shape = self._site.type(source).shape
        given = op.attributes["axes"] or range(len(shape))
        axes = tuple(sorted({axis % len(shape) for axis in given}))
        if shape != self._shape or not _are_same_axes(shape, axes, self._axes):
            return None
        inner = self.of(source, depth)
        factor = 1.0 if op.opcode == "Mean" else float(self._count)
        if op.opcode == "Reduce":
            if op.attributes["op"] != "SumSquare" or inner is None:
                return None
            inner = _product(inner, inner)
        return None if inner is None else _scale(_mean(inner), factor)

    def _reciprocal_root(self, op: CoreOperation, depth: int) -> Polynomial | None:
        name = op.attributes.get("op")
        if op.opcode != "Unary" or name not in ("Rsqrt", "Reciprocal"):
            return None
        read = self._variance if name == "Rsqrt" else self._root
        found = read(op.operands[0], depth)
        return None if found is None else self._add_reciprocal_root(found)

    def _add_reciprocal_root(self, variance: Variance) -> Polynomial | None:
        """1 / sqrt(factor * (spread + epsilon / factor))."""
        plain = Variance(variance.is_centred, 1.0, variance.epsilon / variance.factor)
        if self.root is not None and self.root != plain:
            return None
        self.root = plain
        return {("root",): np.array(1 / sqrt(variance.factor))}

    def _root(self, value: int, depth: int) -> Variance | None:
        """What a value is the root of; a small number may be added to it, or hold it from below."""
        op = self._site.maker(value)
        assert op is not None
        if op.opcode in _VIEWS or op.opcode == "Broadcast":
            return self._root(op.operands[0], depth)
        if op.opcode == "Unary" and op.attributes["op"] == "Sqrt":
            return self._variance(op.operands[0], depth)
        if op.opcode == "BinOp" and op.attributes["op"] == "Pow":
            is_root = self._site.number(op.operands[1]) == 0.5
            return self._variance(op.operands[0], depth) if is_root else None
        if op.opcode == "Reduce" and op.attributes["op"] == "L2":
            squares = self._reduction(_squares_of(op), depth)
            return None if squares is None else self._variance_of(squares)
        guarded = guard_of(self._site, op)
        inner = self._root(guarded[0], depth + 1) if guarded and depth < _MOST_DEPTH else None
        if guarded is None or inner is None or not 0 <= guarded[1] <= self._most_guard:
            return None
        return inner._replace(epsilon=inner.epsilon + guarded[1] ** 2)

    def _variance(self, value: int, depth: int) -> Variance | None:
        """A variance or a mean of squares, epsilon added, held at 0 or a little above."""
        polynomial = self.of(value, depth)
        if polynomial is not None:
            return self._variance_of(polynomial)
        op = self._site.maker(value)
        assert op is not None
        if depth > _MOST_DEPTH:
            return None
        if op.opcode in _VIEWS or op.opcode == "Broadcast" or _is_no_op(op):
            return self._variance(op.operands[0], depth + 1)
        guarded = guard_of(self._site, op)
        inner = None if guarded is None else self._variance(guarded[0], depth + 1)
        if guarded is None or inner is None or guarded[1] < 0:
            return None
        is_added = op.opcode == "BinOp" and op.attributes["op"] == "Add"
        if not is_added and guarded[1] > self._most_guard:
            return None
        return inner._replace(epsilon=inner.epsilon + guarded[1])

    def _variance_of(self, polynomial: Polynomial) -> Variance | None:
        numbers = {term: _number(array) for term, array in polynomial.items()}
        numbers = {term: n for term, n in numbers.items() if n is None or n != 0}
        epsilon = numbers.pop((), 0.0)
        factor, minus = numbers.pop(("squares",), None), numbers.pop(("mean", "mean"), None)
        if numbers or epsilon is None or factor is None or not factor > 0 or not epsilon >= 0:
            return None
        is_variance = minus is not None and abs(minus + factor) <= _TOLERANCE * factor
        if minus is not None and not is_variance:
            return None
        return Variance(is_variance, factor, epsilon) if isfinite(factor + epsilon) else None


def guard_of(site: RewriteSite, op: CoreOperation) -> tuple[int, float] | None:
    """A value and the number that it is held above, or that is added to it."""
    given = OPS[op.opcode].with_defaults(op.attributes)
    if op.opcode == "Clip" and given["max"] >= _UNBOUNDED:
        return op.operands[0], float(given["min"])
    if op.opcode in ("Relu", "ReluNan"):
        return op.operands[0], 0.0
    if op.opcode == "BinOp" and op.attributes["op"] in ("Max", "Add"):
        split = site.split(op)
        if split is not None and split[1].size == 1:
            return split[0], float(np.ravel(split[1])[0])
    return _guard_by_choice(site, op) if op.opcode == "Where" else None


def _guard_by_choice(site: RewriteSite, op: CoreOperation) -> tuple[int, float] | None:
    """1 instead of a root that is 0: of zeros it makes zeros."""
    condition, one, other = op.operands
    compared = site.maker(condition, "Compare", op="Eq")
    is_zero = compared is not None and site.number(compared.operands[1]) == 0
    if compared is None or not is_zero or compared.operands[0] != other:
        return None
    return (other, _LEAST_GUARD) if site.number(one) == 1 else None


def _is_no_op(op: CoreOperation) -> bool:
    return op.opcode == "Unary" and op.attributes["op"] == "Abs"


def _squares_of(op: CoreOperation) -> CoreOperation:
    """A length as the sum of squares that it is the root of."""
    from nacre.core.module import operation
    from nacre.core.values import attributes

    given = attributes({**op.attributes, "op": "SumSquare"})
    return operation(op.value_id, "Reduce", op.operands, op.type, given)


def _are_same_axes(shape: Axes, axes: Axes, wanted: Axes) -> bool:
    """Whether two sets of axes are the same but for such of size 1."""
    return {a for a in axes if shape[a] != 1} == {a for a in wanted if shape[a] != 1}


def _mean(polynomial: Polynomial) -> Polynomial | None:
    mean: Polynomial | None = {}
    for term, array in polynomial.items():
        if _number(array) is None or "root" in term or term.count("x") > 2:
            return None
        others = tuple(atom for atom in term if atom != "x")
        atoms: tuple[Term, ...] = ((), ("mean",), ("squares",))
        mean = _total(mean, {_sort((*others, *atoms[term.count("x")])): array})
    return mean


def _number(array: Array) -> float | None:
    """The number that a coefficient is everywhere."""
    first = float(array.flat[0]) if array.size else None
    return first if first is not None and bool((array == first).all()) else None


def _sort(term: Term) -> Term:
    return tuple(sorted(term))


def _scale(polynomial: Polynomial | None, factor: float | Array) -> Polynomial | None:
    if polynomial is None:
        return None
    return {term: np.asarray(array * factor) for term, array in polynomial.items()}


def _total(a: Polynomial | None, b: Polynomial | None) -> Polynomial | None:
    if a is None or b is None:
        return None
    total = dict(a)
    for term, array in b.items():
        try:
            total[term] = np.asarray(total[term] + array) if term in total else array
        except ValueError:
            return None
    return total if len(total) <= _MOST_TERMS else None


def _product(a: Polynomial, b: Polynomial | None) -> Polynomial | None:
    product: Polynomial | None = {}
    for first, one in a.items():
        for second, other in () if b is None else b.items():
            try:
                array = np.asarray(one * other)
            except ValueError:
                return None
            product = _total(product, {_sort((*first, *second)): array})
    return product if b is not None else None

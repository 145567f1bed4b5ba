"""Arithmetic, comparisons, the largest elements, chance.

Numbers follow Python where both operands are numbers, so that nothing wraps unseen; arrays follow
NumPy, with a number taking the type of the array beside it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.mep.operations.registry import performs
from nacre.nac.mep.values import (
    INT64,
    Fault,
    Number,
    Value,
    describe,
    finite_number,
    is_number,
    numbers,
    slot_value,
    whole_number,
)
from nacre.nac.mep.work import Work
from nacre.nac.rules.plans import NAC91

_MOST_POWER = 64  # bits of a result; more cannot fit


def _operand(value: Value, what: str) -> Any:  # noqa: ANN401 - a number or an array
    """A number stays one, so that it does not widen the array beside it."""
    return value if is_number(value) else numbers(value, what)


def _charge_for_result(work: Work, *operands: Any) -> None:  # noqa: ANN401 - numbers and arrays
    """Pay for a result of the shape that the operands broadcast to."""
    shapes = [operand.shape for operand in operands if isinstance(operand, np.ndarray)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise Fault(NAC91, f"shapes {listed} do not broadcast") from None
    work.budget.take(8 * math.prod(shape))


def _bounded_integer(number: Any) -> Value:  # noqa: ANN401 - what an operation gave
    """A number that fits in 64 bits."""
    if isinstance(number, int) and number not in INT64:
        raise Fault(NAC91, "the result does not fit in 64 bits")
    return slot_value(number)


# Of two elements

_ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "pow": np.power, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
_TRUTHS = {"sub": np.int64}  # NumPy has no difference of truth values


def _number_div(a: Number, b: Number) -> float:
    return float(np.true_divide(np.float64(a), np.float64(b)))


def _number_pow(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        if abs(a) > 1 and b * math.log2(abs(a)) > _MOST_POWER:
            raise Fault(NAC91, f"{a} to the power of {b} does not fit in 64 bits")
        return int(a**b)
    return float(np.power(np.float64(a), np.float64(b)))


_NUMBERS: dict[str, Callable[[Number, Number], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _number_div,
    "pow": _number_pow, "max": max, "min": min,
}  # fmt: skip


def _binary(word: str) -> Callable[..., Value]:
    def run(work: Work, a: Value, b: Value) -> Value:
        if isinstance(a, bool | int | float) and isinstance(b, bool | int | float):
            return _bounded_integer(_NUMBERS[word](a, b))
        left, right = _operand(a, "`a`"), _operand(b, "`b`")
        _charge_for_result(work, left, right)
        if word in _TRUTHS:
            left, right = (
                one.astype(_TRUTHS[word]) if getattr(one, "dtype", None) == np.bool_ else one
                for one in (left, right)
            )
        return slot_value(_ARRAYS[word](left, right))

    return run


# Of each element


def _softmax(x: Array) -> Array:
    """In double precision, rounded to the type of the operand; integers give f32.

    As everywhere, a row of nothing but minus infinity gives zeros.
    """
    wide = x.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    powers = np.exp(wide - np.where(np.isneginf(top), 0.0, top))
    total = powers.sum(axis=-1, keepdims=True)
    shares = powers / np.where(total == 0, 1.0, total)
    return np.asarray(shares.astype(np.float32 if x.dtype.kind in "biu" else x.dtype))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt, "abs": np.abs, "neg": np.negative, "exp": np.exp, "reciprocal": np.reciprocal,
}  # fmt: skip
_INTEGERS: dict[str, Callable[[int], int]] = {"abs": abs, "neg": operator.neg}  # stay integers


def _unary(word: str) -> Callable[..., Value]:
    def run(work: Work, x: Value) -> Value:
        if isinstance(x, int) and word in _INTEGERS:
            return _bounded_integer(_INTEGERS[word](x))
        if isinstance(x, int | float):
            return float(_UNARY[word](np.float64(x)))
        operand = numbers(x, "`x`")
        work.budget.take(2 * 8 * operand.size)
        if operand.dtype.kind == "b":
            operand = operand.astype(np.int64)
        if operand.dtype.kind in "iu" and word not in _INTEGERS:
            operand = operand.astype(np.float32)
        return slot_value(_UNARY[word](operand))

    return run


@performs("math_unary", "softmax")
def softmax(work: Work, x: Value) -> Value:
    """The softmax of the last axis."""
    operand = _rows(x, "`x`")
    work.budget.take(4 * 8 * operand.size)
    return slot_value(_softmax(operand))


def _rows(value: Value, what: str) -> Array:
    """An array with elements along its last axis."""
    operand = numbers(value, what)
    if operand.ndim == 0 or not operand.size:
        raise Fault(NAC91, f"{what} is {describe(value)}, expected elements along an axis")
    return operand


@performs("math_aggregate", "argmax")
def argmax(work: Work, x: Value) -> Value:
    """The place of the largest element; that of the first NaN where there is one."""
    operand = _rows(x, "`x`")
    work.budget.take(operand.nbytes)
    return slot_value(operand.argmax(axis=-1))


# Comparisons

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "neq": operator.ne, "gt": operator.gt, "lt": operator.lt,
}  # fmt: skip


def _comparison(word: str) -> Callable[..., Value]:
    def run(work: Work, a: Value, b: Value) -> Value:
        if isinstance(a, str) and isinstance(b, str) and word in ("eq", "neq"):
            return bool(_COMPARE[word](a, b))
        left, right = _operand(a, "`a`"), _operand(b, "`b`")
        _charge_for_result(work, left, right)
        return slot_value(_COMPARE[word](left, right))

    return run


for _word in _ARRAYS:
    performs("math_binary", _word)(_binary(_word))
for _word in _UNARY:
    performs("math_unary", _word)(_unary(_word))
for _word in _COMPARE:
    performs("logic_compare", _word)(_comparison(_word))


# Of a distribution


@performs("analysis_top_k")
def top_k(work: Work, x: Value, k: Value) -> tuple[Value, Value]:
    """Indices and values of the largest."""
    operand = _rows(x, "`x`")
    count = whole_number(k, "`k`", 1, operand.shape[-1])
    work.budget.take(4 * 8 * operand.size)
    _no_nan(operand, "`x`")
    # Of the reversed rows, read backwards: the first of equals stays the first.
    size = operand.shape[-1]
    order = (size - 1 - operand[..., ::-1].argsort(axis=-1, kind="stable"))[..., ::-1]
    indices = np.ascontiguousarray(order[..., :count])
    return indices, np.take_along_axis(operand, indices, axis=-1)


def _no_nan(operand: Array, what: str) -> None:
    if operand.dtype.kind not in "biu" and bool(np.isnan(operand).any()):
        raise Fault(NAC91, f"{what} has elements that are not a number")


@performs("analysis_sample")
def sample(work: Work, logits: Value, temperature: Value, k: Value) -> int:
    """An index by chance; the same seed gives the same ones."""
    operand = _rows(logits, "`logits`")
    if operand.size != operand.shape[-1]:
        raise Fault(NAC91, f"`logits` is {describe(operand)}, expected one row")
    work.budget.take(6 * 8 * operand.size)
    row = operand.reshape(-1).astype(np.float64)
    _no_nan(row, "`logits`")
    heat = finite_number(temperature, "`temperature`")
    if heat < 0:
        raise Fault(NAC91, f"`temperature` is {heat}, expected 0 or more")
    kept = whole_number(k, "`k`")
    highest = row.max()
    if not np.isfinite(highest):
        raise Fault(NAC91, f"the largest of `logits` is {highest}, expected a finite number")
    if heat == 0:
        return int(row.argmax())
    if 0 < kept < row.size:
        row = np.where(row >= np.partition(row, -kept)[-kept], row, -np.inf)
    # Shifted first: a low temperature must not make an infinity of the largest.
    sums = np.cumsum(np.exp((row - highest) / heat))
    return int(min(np.searchsorted(sums, work.chance.random() * sums[-1], "right"), row.size - 1))

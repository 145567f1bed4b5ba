"""How far an output may be from the model's: the measure that fits it, and its bound.

Reals, and integers that are rounded reals, are judged by their error, or by the ratio of signal to
noise where one side rounds to integers of 8 bits. Indices and truth values are choices: one that is
next to the right one is as wrong as any other, so what counts is how many are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nacre.core.evaluation_plan import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

Measure = Literal["error", "SQNR", "agreement"]
# The largest error that is accepted, as a part of the output's largest magnitude.
TOLERANCES: Mapping[str, float] = {"f16": 1e-2, "f32": 1e-4}
SQNR_DB = 15.0  # the least ratio of signal to noise that is accepted of integers of 8 bits
# The least share of choices that are the same: what lies next to a boundary may fall on either
# side of it once it is rounded. Integers that are made of integers have nothing to round.
AGREEMENT: Mapping[str, float] = {"f16": 0.99, "f32": 0.999, "i8": 0.9}
_ALL = 1.0

_FUSED = frozenset({"QConv", "QLinear", "QPool", "QBinOp", "DynamicQuantizeScale"})
_ROUNDING = _FUSED | {"Quantize", "DynamicQuantizeZero"}
# They move integers, and what they are made of says what the integers mean.
_CHOOSING = frozenset({"ArgMax", "ArgMin", "TopKIndices", "Compare"})


@dataclass(frozen=True)
class Judged:
    """An output against the model's: a measure, what was found, and the bound."""

    name: str
    measure: Measure
    value: float
    bound: float

    @property
    def is_met(self) -> bool:
        """Whether the output is close enough."""
        return self.value <= self.bound if self.measure == "error" else self.value >= self.bound

    @property
    def told(self) -> str:
        """What was found."""
        return _told(self.measure, self.value)

    @property
    def told_with_bound(self) -> str:
        """What was found, and what is accepted."""
        limit = "at most" if self.measure == "error" else "at least"
        return f"{self.measure} {self.told}, {limit} {_told(self.measure, self.bound)}"


def _told(measure: Measure, value: float) -> str:
    if measure == "agreement":
        return f"{100 * value:.4g} %"
    return f"{value:.2e}" if measure == "error" else f"{value:.1f} dB"


def judged(
    name: str, source: Module, value: int, precision: str, found: Array, expected: Array
) -> Judged:
    """An output of the model, by what its elements mean."""
    meaning = _meaning(source, value)
    if meaning in ("choices", "integers"):
        bound = AGREEMENT[precision] if meaning == "choices" else _ALL
        return Judged(name, "agreement", agreement(found, expected), bound)
    if precision == "i8" or rounds_to_integers(source):
        zero = _zero_point(source, value)
        return Judged(name, "SQNR", sqnr(found, expected, zero), SQNR_DB)
    bound = TOLERANCES[precision]
    if meaning == "rounded":  # what lies next to a boundary may be one more or less
        bound += 1 / max(1.0, float(np.max(np.abs(expected.astype(np.float64)), initial=0.0)))
    return Judged(name, "error", relative_error(found, expected), bound)


def rounds_to_integers(source: Module) -> bool:
    """Whether the model rounds what its layers make to few integers (QDQ, QLinear)."""
    for op in source.operations:
        if op.opcode in _FUSED:
            return True
        if op.opcode == "Dequantize" and not _is_known(source, op.operands[0]):
            return True
    return False


def _is_known(source: Module, value: int) -> bool:
    op = source.by_id[value]
    return op.opcode == "Input" or constant_array(op) is not None


def _meaning(source: Module, value: int) -> Literal["reals", "rounded", "choices", "integers"]:
    """What an output's elements are: where integers come from, back to the floats behind them."""
    element = source.by_id[value].type.element
    if element.kind == "float":
        return "reals"
    if element.name == "bool":
        return "choices"
    is_rounded = False
    seen: set[int] = set()
    pending = [value]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        op = source.by_id[at]
        inner = [source.by_id[o] for o in op.operands]
        has_floats = any(maker.type.element.kind == "float" for maker in inner)
        if op.opcode in _ROUNDING or (op.opcode == "Cast" and has_floats):
            is_rounded = True
        elif op.opcode in _CHOOSING or has_floats:
            return "choices"
        else:
            pending += op.operands
    return "rounded" if is_rounded else "integers"


def _zero_point(source: Module, value: int) -> float:
    """What stands for 0 in an output that a `Quantize` makes: a signal is counted from there."""
    op: CoreOperation = source.by_id[value]
    while op.opcode in ("Reshape", "Transpose", "Squeeze", "ExpandDims"):
        op = source.by_id[op.operands[0]]
    if op.opcode != "Quantize" or len(op.operands) < 3:
        return 0.0
    zero = constant_array(source.by_id[op.operands[2]])
    return float(zero.reshape(-1)[0]) if zero is not None and zero.size == 1 else 0.0


# Measures


def relative_error(found: Array, expected: Array) -> float:
    """The largest error over the largest magnitude; infinite where one of them is no number."""
    numbers = _numbers(found, expected)
    if numbers is None:
        return float("inf")
    a, b = numbers
    worst = float(np.max(np.abs(a - b), initial=0.0))
    most = float(np.max(np.abs(b), initial=0.0))
    return worst / most if most else worst


def sqnr(found: Array, expected: Array, zero: float = 0.0) -> float:
    """Signal over noise in dB; infinite where there is no noise."""
    numbers = _numbers(found, expected)
    if numbers is None:
        return float("-inf")
    a, b = numbers
    noise, signal = float(np.sum((a - b) ** 2)), float(np.sum((b - zero) ** 2))
    if not noise:
        return float("inf")
    return 10 * float(np.log10(signal / noise)) if signal else float("-inf")


def agreement(found: Array, expected: Array) -> float:
    """The share of elements that are the same."""
    return float(np.mean(found == expected)) if expected.size else 1.0


def _numbers(found: Array, expected: Array) -> tuple[Array, Array] | None:
    """The finite elements of both; None where others are not the same on both sides."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    is_number = np.isfinite(a) & np.isfinite(b)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    return (a[is_number], b[is_number]) if (is_number | is_same).all() else None

"""Whether a reference can prove anything: what is the same everywhere agrees with too much.

A network whose input is masked whole gives zeros, a plan that computes nothing gives zeros as well.
"""

from __future__ import annotations

from math import inf

import numpy as np

from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_VIEWS = frozenset({"Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Broadcast"})
_ENDS = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Erf": (-1.0, 1.0)}
_ROUNDED = 2.0**-23  # of the width between two ends: f32 has nothing between it and the end
_NEAR = 1e-3  # of the width, where a curve runs into its ends: there it says little of its input


class ReferenceStatistics:
    """What was seen of an output of the model over several runs."""

    def __init__(self, source: Module, value: int) -> None:
        self._is_free = depends_on_input(source, value)
        self._is_float = source.by_id[value].type.element.kind == "float"
        maker = _maker(source, value)
        self._ends, self._is_curve = _output_range(maker), maker.attributes.get("op") in _ENDS
        self._low, self._high = inf, -inf
        self._count = self._invalid = self._infinite = 0
        self._is_saturated = True

    def add(self, expected: Array) -> None:
        """Take in the output of one run."""
        values = expected.astype(np.float64)
        finite = values[np.isfinite(values)]
        self._count += values.size
        self._invalid += int(np.isnan(values).sum())
        self._infinite += int(np.isinf(values).sum())
        if finite.size:
            self._low = min(self._low, float(finite.min()))
            self._high = max(self._high, float(finite.max()))
        near = _NEAR if self._is_curve and values.size > 1 else _ROUNDED
        self._is_saturated = self._is_saturated and self._ends is not None and _are_at_ends(
            finite, *self._ends, near
        )  # fmt: skip

    @property
    def problem(self) -> str:
        """Why nothing follows from a plan that agrees with it; empty where something does."""
        if self._invalid:
            return f"{self._invalid:,} of {self._count:,} elements of the reference are NaN"
        if self._count and self._infinite == self._count:
            return "the reference is infinite everywhere"
        if not self._is_free or not self._count:
            return ""  # it is the same for all inputs
        if self._low == self._high:
            return self._describe_constant()
        if self._is_saturated and self._ends is not None:
            low, high = self._ends
            near = "near " if self._is_curve else ""
            return f"the reference is saturated: every element is {near}{low:g} or {high:g}"
        return ""

    def _describe_constant(self) -> str:
        number = self._low
        if self._count == 1:
            # One number is the same as itself; of reals 0 is what comes out of nothing.
            return "the reference is 0" if self._is_float and not number else ""
        return f"the reference is {number:g} everywhere"


def _are_at_ends(values: Array, low: float, high: float, near: float) -> bool:
    near *= high - low
    return bool(((values <= low + near) | (values >= high - near)).all())


def depends_on_input(source: Module, value: int) -> bool:
    """Whether an input, or a state, can change a value."""
    behind = {value}
    for op in reversed(source.operations):
        if op.value_id in behind:
            if op.opcode == "Input":
                return True
            behind.update(op.operands)
    return False


def _maker(source: Module, value: int) -> CoreOperation:
    op = source.by_id[value]
    while op.opcode in _VIEWS:
        op = source.by_id[op.operands[0]]
    return op


def _output_range(op: CoreOperation) -> tuple[float, float] | None:
    """Between which numbers the operation that makes an output holds it."""
    if op.opcode in ("Softmax", "HardSigmoid"):
        return 0.0, 1.0
    if op.opcode == "Unary":
        return _ENDS.get(str(op.attributes["op"]))
    if op.opcode == "Quantize":
        element = op.type.element
        return float(element.lowest), float(element.highest)
    if op.opcode == "Clip":
        given = [float(str(op.attributes.get(end, edge))) for end, edge in _CLIP]
        return (given[0], given[1]) if np.isfinite(given).all() else None
    return None


_CLIP = (("min", -inf), ("max", inf))

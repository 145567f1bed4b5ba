"""Chains before a logarithm, which stay in f32 where the plan is in f16.

A power is a square: from the least number of f16 that has all its digits to the largest there are
9 decades, of amplitudes that is half as many, and a logarithm sees all of them. So what leads from
squares or exponentials to a logarithm is f32, as is what a small number is added to before one.
Products in between are f16 on the NMU, on rows that are divided by their largest element first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log2

import numpy as np

from nacre.core.evaluation_plan import constant_array
from nacre.core.inference.rewriting import Site, rewritten
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

LEAST_NORMAL = 2.0**-14  # of f16: what is smaller has fewer digits
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast"})
# What a chain goes through: each keeps what is small small.
_CARRYING = _VIEWS | {
    "BinOp", "Clip", "Neg", "Concat", "AvgPool", "MaxPool", "Reduce", "ReluNan", "Relu",
}  # fmt: skip
_PRODUCTS = frozenset({"Linear", "Conv"})
_ROOTS = frozenset({"Sqrt", "Abs"})
_FEW_COLUMNS = 4  # of a product that is as soon done in f32
_LARGEST, _SPARE = 2.0**14, 2.0**15  # of a row that is divided by its largest; of its products
_LEAST, _MOST = 1e-37, 3e38  # of what f32 can be divided by


class _Chains:
    """What leads to logarithms in a module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._powers: dict[int, bool] = {}
        self.wide: set[int] = set()
        self.guards: set[int] = set()  # products whose bias is a guard
        for op in module.operations:
            if op.opcode == "Log":
                self._take_logarithm(op)
            elif op.opcode == "Cast" and op.type.dtype == "f16":
                self._holds_power(op.operands[0])

    def _take_logarithm(self, op: CoreOperation) -> None:
        source = op.operands[0]
        guarded = tuple(self._guarded(source))
        if self._holds_power(source) or guarded:
            self.wide.update((op.value_id, *guarded))

    def _op(self, value: int) -> CoreOperation:
        return self._module.by_id[value]

    def _number(self, value: int) -> Array | None:
        return constant_array(self._op(value))

    def _holds_power(self, value: int) -> bool:
        """Whether a value is made of squares or exponentials; then all on the way is wide."""
        if value not in self._powers:
            self._powers[value] = False
            self._powers[value] = self._is_made_of_power(self._op(value))
            if self._powers[value]:
                self.wide.add(value)
        return self._powers[value]

    def _is_made_of_power(self, op: CoreOperation) -> bool:
        if op.type.dtype != "f32" or op.opcode == "Exp":
            return op.type.dtype == "f32"
        if op.opcode == "BinOp":
            a, b = op.operands
            power = self._number(b) if op.attributes["op"] == "Pow" else None
            if (op.attributes["op"] == "Mul" and a == b) or power is not None:
                return self._holds_power(a) or power is None or bool((np.abs(power) > 1).all())
        is_root = op.opcode == "Unary" and op.attributes["op"] in _ROOTS
        if op.opcode in _CARRYING or is_root:
            found = [self._holds_power(operand) for operand in op.operands]  # all are looked at
            return any(found)
        if op.opcode in _PRODUCTS and self._number(op.operands[1]) is not None:
            return self._holds_power(op.operands[0])
        return False

    def _guarded(self, value: int) -> Iterator[int]:
        """What stands between a logarithm and the small number that keeps it from 0."""
        op, behind = self._op(value), list[int]()
        while op.opcode in _VIEWS:
            behind.append(op.value_id)
            op = self._op(op.operands[0])
        if op.opcode in _PRODUCTS and len(op.operands) > 2 and self._is_tiny(op.operands[2]):
            self.guards.add(op.value_id)
            yield from behind
        elif self._is_guard(op):
            yield from (*behind, op.value_id)

    def _is_guard(self, op: CoreOperation) -> bool:
        if op.opcode == "Clip":
            least = op.attributes.get("min")
            return isinstance(least, float) and 0 < least < LEAST_NORMAL
        is_added = op.opcode == "BinOp" and op.attributes["op"] in ("Add", "Max")
        return is_added and any(self._is_tiny(value) for value in op.operands)

    def _is_tiny(self, value: int) -> bool:
        array = self._number(value)
        if array is None or array.dtype.kind != "f" or not array.size:
            return False
        return bool((array != 0).any() and (np.abs(array) < LEAST_NORMAL).all())


def wide_values(module: Module) -> frozenset[int]:
    """The values of a module in f32 that stay so where everything else becomes f16."""
    return frozenset(_Chains(module).wide)


def with_scaled_products(module: Module) -> Module:
    """The module with the products of wide chains in f16, row by row over its largest element."""
    chains = _Chains(module)
    if not chains.wide and not chains.guards:
        return module

    def product(site: Site) -> int | None:
        value = site.op.value_id
        x, weights, *bias = site.operands
        if value in chains.wide and site.op.type.shape[-1] > _FEW_COLUMNS:
            made = _scaled(site, x, weights)
        elif value in chains.guards and value not in chains.wide:
            made = site.add("Linear", x, weights)
        else:
            return None
        return site.add("BinOp", made, bias[0], op="Add") if bias else made

    return rewritten(module, {"Linear": [product]})


def _scaled(site: Site, x: int, weights: int) -> int:
    array = site.constant(weights)
    assert array is not None
    array = array.astype(np.float64)
    grown = 2.0 ** -floor(log2(float(np.max(np.abs(array), initial=1e-300))))
    sums = float(np.max(np.sum(np.abs(array * grown), axis=1)))
    most = min(_LARGEST, 2.0 ** floor(log2(_SPARE / sums)))
    top = site.add("Reduce", site.add("Unary", x, op="Abs"), axes=(-1,), keepdims=True, op="Max")
    top = site.add("BinOp", top, site.literal(np.array(1 / most), "f32"), op="Mul")
    top = site.add("Clip", top, min=_LEAST, max=_MOST)
    rows = site.add("Cast", site.add("BinOp", x, top, op="Div"), to="f16")
    made = site.add("Linear", rows, site.literal(array * grown, "f16"))
    made = site.add("Cast", made, to="f32")
    back = site.add("BinOp", top, site.literal(np.array(1 / grown), "f32"), op="Mul")
    return site.add("BinOp", made, back, op="Mul")

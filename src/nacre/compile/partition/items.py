"""The legal module as what the device does: one item for each task that a tile will have.

In a float module an item is an operation. In a quantised one some operations go together: what is
dequantised, computed and quantised again is one task whose regions carry scales.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.base.diagnostics import InternalError
from nacre.compile.legalise.forms.escape import escape_of
from nacre.compile.legalise.lowerings import Lowering, lowering_of
from nacre.core.constants import constant_array
from nacre.core.grouped_weights import GroupedWeights, grouped_weights_of
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array, attributes


@dataclass(frozen=True)
class Quant:
    """What the integers of a region stand for: one scale, or one for each column."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]

    @property
    def is_single(self) -> bool:
        """Whether one scale holds for all."""
        return len(self.scales) == 1

    def columns(self, first: int, count: int) -> Quant:
        """The part for some columns."""
        if self.is_single:
            return self
        return Quant(self.scales[first : first + count], self.zeros[first : first + count])


@dataclass(frozen=True)
class ItemInput:
    """A value as an operand."""

    value: int
    quant: Quant | None = None


@dataclass(frozen=True, eq=False)
class Item:
    """One task of a tile."""

    row: Lowering
    op: CoreOperation  # what is computed
    inputs: tuple[ItemInput, ...]
    result: int
    operations: tuple[CoreOperation, ...]  # all that it stands for
    quant: Quant | None = None  # of the result
    parts: tuple[CoreOperation, ...] = ()  # what its operation is spelt with, and nothing else
    groups: Mapping[str, int] = field(default_factory=dict)  # what weights in groups have, by name

    @property
    def kind(self) -> str:
        """How it is cut into tiles."""
        return self.row.kind

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of its operation, defaults filled in."""
        return OPS[self.op.opcode].with_defaults(self.op.attributes)


def _products(attributes: Mapping[str, Any]) -> dict[str, object]:
    return {"accum_type": "i32"}


_FUSED: Mapping[tuple[str, str], Lowering] = {
    ("QConv", ""): Lowering("QConv", "window", "conv2d", attributes=_products),
    ("QLinear", ""): Lowering("QLinear", "linear", "gemm", attributes=_products),
    ("QPool", "Max"): Lowering("QPool", "pool", "maxpool", "Max"),
    ("QPool", "Avg"): Lowering("QPool", "pool", "avgpool", "Avg"),
}
_PAIR = Lowering("MatMul", "matmul", "matmul", attributes=_products)


def escape_row(op: CoreOperation) -> Lowering:
    """An operation that is run by its name."""
    escape = escape_of(op)
    if isinstance(escape, str):
        raise InternalError(f"`{op.opcode}` is not legal: {escape}")

    def escape_attributes(attributes: Mapping[str, Any]) -> dict[str, object]:
        return {"op": escape.name, **escape.attributes}

    return Lowering(op.opcode, "escape", "compute", attributes=escape_attributes)


_QUANTIZE = Lowering("Quantize", "map", "quantize")
_DEQUANTIZE = Lowering("Dequantize", "map", "dequantize")
_STEPS = Lowering("Quantize", "map", "cast")  # floats that count in steps from zero on
_ONE = Quant((1.0,), (0,))


def items_of(module: Module, escaped: Mapping[int, str]) -> list[Item]:
    """Every item in order; inputs and constants are none."""
    return list(_ItemReader(module, escaped).items())


class _ItemReader:
    """Goes through a module and finds what belongs together."""

    def __init__(self, module: Module, escaped: Mapping[int, str]) -> None:
        self.module, self._escaped = module, escaped
        self._uses = Counter(o for op in module.operations for o in op.operands)
        self._uses.update(module.outputs)

    def items(self) -> Iterator[Item]:
        """What is dequantised only to be computed on stands inside other items."""
        made = [item for op in self.module.operations if (item := self._item(op)) is not None]
        inside = {op.value_id for item in made for op in (*item.operations[:-1], *item.parts)}
        wanted = set(self.module.outputs)
        for item in made:
            wanted.update(use.value for use in item.inputs if item.result not in inside)
        yield from (item for item in made if item.result in wanted)

    def _item(self, op: CoreOperation) -> Item | None:
        if op.opcode == "Input" or "constant" in OPS[op.opcode].traits:
            return None
        if op.value_id in self._escaped:
            return Item(escape_row(op), op, tuple(map(ItemInput, op.operands)), op.value_id, (op,))
        if op.opcode == "Quantize":
            return self._item_of_integer_matmul(op) or self._item_of_quantize(op)
        if op.opcode == "Cast":
            item = self._item_of_dequantized_cast(op) or self._index_cast(op)
            if item is not None:
                return item
        grouped = grouped_weights_of(self.module, op.operands[1]) if op.opcode == "Linear" else None
        if grouped is not None:
            return self._item_of_grouped_weights(op, grouped)
        if op.opcode == "Dequantize" and op.attributes.get("block"):
            return None  # of weights, beside the products by them
        if op.opcode == "Dequantize":
            quant = self._quant(op)
            return Item(_DEQUANTIZE, op, (ItemInput(op.operands[0], quant),), op.value_id, (op,))
        row = _FUSED.get((op.opcode, _word(op)))
        if row is not None:
            return self._item_of_fused(op, row)
        row = lowering_of(op)
        if row is None:
            raise InternalError(f"`{op.opcode}` is not legal")
        return Item(row, op, tuple(map(ItemInput, op.operands)), op.value_id, (op,))

    def _item_of_grouped_weights(self, op: CoreOperation, grouped: GroupedWeights) -> Item:
        """A product by integers in groups: they are dequantised beside it, tile by tile."""
        row = lowering_of(op)
        assert row is not None
        uses = (op.operands[0], grouped.integers, *op.operands[2:])
        operations = (*grouped.operations, op)
        return Item(row, op, tuple(map(ItemInput, uses)), op.value_id, operations,
                    groups=grouped.parts)  # fmt: skip

    def _item_of_dequantized_cast(self, op: CoreOperation) -> Item | None:
        """`Cast` of what is dequantised: one task."""
        inner = self.module.by_id[op.operands[0]]
        if inner.opcode != "Dequantize":
            return None
        use = ItemInput(inner.operands[0], self._quant(inner))
        return Item(_DEQUANTIZE, inner, (use,), op.value_id, (inner, op))

    def _index_cast(self, op: CoreOperation) -> Item | None:
        """`Cast` of an index: operations that find one write it in the type that is wanted."""
        inner = self.module.by_id[op.operands[0]]
        if inner.value_id not in self._escaped or inner.type.dtype != "i64":
            return None
        uses = tuple(map(ItemInput, inner.operands))
        return Item(escape_row(inner), inner, uses, op.value_id, (inner, op))

    def _item_of_integer_matmul(self, op: CoreOperation) -> Item | None:
        """A product of two computed matrices, as the quantiser spells it."""
        steps = self._maker(op, 0, "BinOp", "Mul")
        sums, factor = self._maker(steps, 0, "Cast"), self._maker(steps, 1, "BinOp", "Div")
        product, both = self._maker(sums, 0, "MatMul"), self._maker(factor, 0, "BinOp", "Mul")
        if steps is None or sums is None or factor is None or product is None or both is None:
            return None
        scales = [self._number(o) for o in (*both.operands, factor.operands[1])]
        sides = [self._split_zero_point(self.module.by_id[o]) for o in product.operands]
        uses = tuple(
            ItemInput(value, _tensor_quant(scale, zero))
            for (value, zero, _), scale in zip(sides, scales, strict=False)
        )
        quant = _tensor_quant(scales[2], self._quant(op).zeros[0])
        inner = tuple(part for _, _, parts in sides for part in parts)
        parts = (*inner, sums, both, factor, steps)
        # What the device does: a product of integers of 8 bits.
        sources = tuple(use.value for use in uses)
        named = CoreOperation(op.value_id, "MatMul", sources, attributes({}), op.type)
        return Item(_PAIR, named, uses, op.value_id, (product, op), quant, parts)

    def _maker(
        self, op: CoreOperation | None, operand: int, opcode: str, word: str = ""
    ) -> CoreOperation | None:
        """What makes an operand, if it is that operation."""
        made = None if op is None else self.module.by_id[op.operands[operand]]
        return made if made is not None and (made.opcode, _word(made)) == (opcode, word) else None

    def _split_zero_point(self, op: CoreOperation) -> tuple[int, float, tuple[CoreOperation, ...]]:
        """Integers that are made wider and less a zero point: which, that, and by what."""
        if op.opcode == "Cast":
            return op.operands[0], 0.0, (op,)
        wide = self.module.by_id[op.operands[0]]
        return wide.operands[0], self._number(op.operands[1]), (wide, op)

    def _number(self, value: int) -> float:
        return float(self._constant(value).reshape(-1)[0])

    def _item_of_quantize(self, op: CoreOperation) -> Item:
        """An operation between dequantised operands and a quantised result, or a lone one."""
        quant, inner = self._quant(op), self.module.by_id[op.operands[0]]
        row = lowering_of(inner)
        sources = [self.module.by_id[o] for o in inner.operands]
        is_map = row is not None and row.kind == "map" and self._uses[inner.value_id] == 1
        # A cast looks at no scale, and only f32 is what the device computes in between.
        is_map = is_map and inner.opcode != "Cast" and inner.type.dtype == "f32"
        if (
            is_map
            and row is not None
            and sources
            and all(s.opcode == "Dequantize" for s in sources)
        ):
            uses = tuple(ItemInput(s.operands[0], self._quant(s)) for s in sources)
            return Item(row, inner, uses, op.value_id, (*sources, inner, op), quant)
        if inner.opcode == "Cast" and self.module.by_id[inner.operands[0]].type.dtype == "f16":
            if quant == _ONE:
                return Item(_STEPS, op, (ItemInput(inner.operands[0]),), op.value_id, (inner, op))
            return Item(
                _QUANTIZE, op, (ItemInput(inner.operands[0]),), op.value_id, (inner, op), quant
            )
        return Item(_QUANTIZE, op, (ItemInput(op.operands[0]),), op.value_id, (op,), quant)

    def _item_of_fused(self, op: CoreOperation, row: Lowering) -> Item:
        given = OPS[op.opcode].with_defaults(op.attributes)
        x = ItemInput(op.operands[0], _tensor_quant(given["x_scale"], given["x_zero"]))
        result = _tensor_quant(given["y_scale"], given["y_zero"])
        if op.opcode == "QPool":
            return Item(row, op, (x,), op.value_id, (op,), result)
        scales = tuple(map(float, given["w_scales"]))
        zeros = tuple(map(int, given["w_zeros"] or ())) or (0,) * len(scales)
        weights = ItemInput(op.operands[1], Quant(scales, zeros))
        bias = tuple(ItemInput(o) for o in op.operands[2:])
        return Item(row, op, (x, weights, *bias), op.value_id, (op,), result)

    def _quant(self, op: CoreOperation) -> Quant:
        scale = self._constant(op.operands[1])
        zero = self._constant(op.operands[2]) if len(op.operands) > 2 else np.zeros(1)
        return _tensor_quant(scale.reshape(-1)[0], zero.reshape(-1)[0])

    def _constant(self, value: int) -> Array:
        found = constant_array(self.module.by_id[value])
        if found is None:
            raise InternalError(f"%{value} is a scale that is computed")
        return found


def _tensor_quant(scale: float, zero: float) -> Quant:
    # Scales are of f32; written with all digits of the double they come back as the same.
    return Quant((float(np.float32(scale)),), (int(zero),))


def _word(op: CoreOperation) -> str:
    return str(op.attributes.get("op", ""))

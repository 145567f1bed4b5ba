"""Weights in groups: integers of few bits, a scale for each group, and what else goes with them.

A weight of a column is `(integer - zero) * scale + minimum`, the last three those of its group:
neighbours along the sum. In a module that is `Dequantize` in blocks along the last axis, and where
there are minimums, `Add` of these under the shape [columns, groups, group].
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS


class _Site(Protocol):
    def add(self, opcode: str, *operands: int, **attributes: object) -> int: ...


class GroupedWeights(NamedTuple):
    """The constants of weights in groups, by value, and the operations that make floats of them."""

    integers: int  # [columns, depth]
    scales: int  # [columns, groups]
    zeros: int | None  # as the scales
    minimums: int | None  # [columns, groups, 1]
    group: int
    operations: tuple[CoreOperation, ...]

    @property
    def parts(self) -> dict[str, int]:
        """What groups have beside their integers, by name."""
        named = {"scales": self.scales, "zeros": self.zeros, "minimums": self.minimums}
        return {name: value for name, value in named.items() if value is not None}


def add_grouped_weights(
    site: _Site,
    integers: int,
    scales: int,
    group: int,
    zeros: int | None = None,
    minimums: int | None = None,
    shape: tuple[int, int] = (0, 0),
) -> int:
    """Weights [columns, depth] of constants, as floats of the type of the scales.

    `site` is a `Builder`, or where a rewrite is. With `minimums` [columns, groups, 1] the `shape`
    of the weights is wanted, too.
    """
    given = (integers, scales) if zeros is None else (integers, scales, zeros)
    made = site.add("Dequantize", *given, axis=1, block=group)
    if minimums is None:
        return made
    columns, depth = shape
    split = site.add("Reshape", made, new_shape=(columns, depth // group, group))
    moved = site.add("BinOp", split, minimums, op="Add")
    return site.add("Reshape", moved, new_shape=shape)


def grouped_weights_of(module: Module, value: int) -> GroupedWeights | None:
    """What a value is made of, if it is weights in groups of the form above."""
    last = module.by_id[value]
    if last.opcode == "Dequantize":
        return _of_dequantize(module, last)
    added = _maker(module, last, "Reshape", "BinOp")
    split = None if added is None else module.by_id[added.operands[0]]
    first = None if split is None else _maker(module, split, "Reshape", "Dequantize")
    if added is None or split is None or first is None or added.attributes["op"] != "Add":
        return None
    found, least = _of_dequantize(module, first), added.operands[1]
    if found is None or module.by_id[least].type.shape != (*split.type.shape[:2], 1):
        return None
    is_constant = "constant" in OPS[module.by_id[least].opcode].traits
    is_same = is_constant and last.type.shape == first.type.shape
    is_same = is_same and split.type.shape[2] == found.group
    operations = (first, split, added, last)
    return found._replace(minimums=least, operations=operations) if is_same else None


def _maker(module: Module, op: CoreOperation, opcode: str, before: str) -> CoreOperation | None:
    """What makes the operand of an operation, if both are of these kinds."""
    if op.opcode != opcode:
        return None
    made = module.by_id[op.operands[0]]
    return made if made.opcode == before else None


def _of_dequantize(module: Module, op: CoreOperation) -> GroupedWeights | None:
    block = op.attributes.get("block")
    is_last = len(op.type.shape) == 2 and op.attributes.get("axis", 1) in (1, -1)
    if not isinstance(block, int) or not block or not is_last:
        return None
    if any("constant" not in OPS[module.by_id[o].opcode].traits for o in op.operands):
        return None
    zeros = op.operands[2] if len(op.operands) > 2 else None
    return GroupedWeights(op.operands[0], op.operands[1], zeros, None, block, (op,))

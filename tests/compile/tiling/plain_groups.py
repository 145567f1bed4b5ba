"""Layers of a module that nobody has partitioned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nacre.compile.estimate.bounds_rates import CONVERSIONS
from nacre.compile.estimate.bounds_traffic import VIEWS
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS


@dataclass(frozen=True, eq=False)
class PlainGroup:
    """An operation with what is fused to it."""

    name: str
    operations: tuple[CoreOperation, ...]


def plain_groups(module: Module) -> tuple[PlainGroup, ...]:
    """Layers by the simplest rule: an operation, and the functions of one operand that follow it.

    Changes of type belong to what they feed, at the end of a chain to what they follow.
    """
    gathered: dict[int, list[CoreOperation]] = {}  # by the value that it leaves so far
    order: list[list[CoreOperation]] = []
    uses = _uses(module)
    for op in module.operations:
        if op.opcode == "Input" or op.opcode in VIEWS or "constant" in OPS[op.opcode].traits:
            continue
        before = [o for o in op.operands if o in gathered]
        joined = [gathered[o] for o in before if uses[o] == 1 and _joins(op, gathered[o], before)]
        target = joined[0] if joined else []
        for other in joined[1:]:
            target += other
            order.remove(other)
        if not joined:
            order.append(target)
        target.append(op)
        gathered[op.value_id] = target
    names = (f"{group[-1].opcode.lower()}_{i}" for i, group in enumerate(order))
    return tuple(PlainGroup(n, tuple(g)) for n, g in zip(names, order, strict=True))


def _joins(op: CoreOperation, group: Iterable[CoreOperation], before: Sequence[int]) -> bool:
    """Whether an operation runs with the group of its operand."""
    if all(earlier.opcode in CONVERSIONS for earlier in group):
        return True
    is_map = "elementwise" in OPS[op.opcode].traits or op.opcode in CONVERSIONS
    return is_map and len(before) == 1


def _uses(module: Module) -> dict[int, int]:
    uses: dict[int, int] = defaultdict(int)
    for op in module.operations:
        for operand in op.operands:
            uses[operand] += 1
    for value in module.outputs:
        uses[value] += 1
    return uses

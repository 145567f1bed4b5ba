"""Which side of which choice a value is computed for, and gradients that end where it begins.

A module is flat: of a branch that is not taken everything is computed, and a `Where` by one truth
value leaves it out. The gradient that goes into such a branch is 0, but it does not stay 0 where
the branch is not finite: 0 times infinity is NaN. So each gradient that leaves a branch, for a
value that more than the branch depends on, is left out in the same way.

A need is when a value matters: any of several sides, each of which is a set of conditions with the
values that they must have. `frozenset({frozenset()})` is always.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from nacre.core.gradients.writer import Value, where
from nacre.core.module import CoreOperation, Module

Side = frozenset[tuple[int, bool]]
Need = frozenset[Side]

ALWAYS: Need = frozenset({frozenset()})
_MOST_SIDES = 32  # of a need that is kept exact; one of more counts as always
_TRUE, _FALSE = 1, 2  # operands of `Where`


def find_needs(module: Module, active: Container[int]) -> dict[int, Need]:
    """When each value that a gradient passes matters to an output."""
    if not any(_is_choice(module, op) for op in module.operations):
        return {}
    found: dict[int, set[Side]] = {value: {frozenset()} for value in module.outputs}
    needs: dict[int, Need] = {}
    for op in reversed(module.operations):
        if op.value_id not in active:
            continue
        need = needs[op.value_id] = _simplify(found.pop(op.value_id, set()))
        for place, operand in enumerate(op.operands):
            found.setdefault(operand, set()).update(_of_operand(module, op, place, need))
    return needs


def mask(gradient: Value, need: Need, conditions: Mapping[int, Value]) -> Value:
    """A gradient where a value matters, and 0 elsewhere."""
    zero = gradient.writer.scalar(0.0, gradient.dtype)
    masked = zero
    for side in sorted(need, key=sorted):
        taken = gradient
        for condition, is_met in sorted(side):
            pair = (taken, masked) if is_met else (masked, taken)
            taken = where(conditions[condition], *pair)
        masked = taken
    return masked


def conditions_of(need: Need) -> set[int]:
    """The conditions that a need asks about."""
    return {condition for side in need for condition, _ in side}


def _is_choice(module: Module, op: CoreOperation) -> bool:
    """Whether an operation takes one of two tensors whole."""
    return op.opcode == "Where" and module.by_id[op.operands[0]].type.shape == ()


def _of_operand(module: Module, op: CoreOperation, place: int, need: Need) -> Iterator[Side]:
    """When an operand matters to an operation that matters itself at such times."""
    if not _is_choice(module, op) or place not in (_TRUE, _FALSE):
        yield from need
        return
    condition, is_met = op.operands[0], place == _TRUE
    for side in need:
        if (condition, not is_met) not in side:
            yield side | {(condition, is_met)}


def _simplify(sides: Iterable[Side]) -> Need:
    """The same need with as few sides as are found: two that are opposite are one without."""
    left = set(sides)
    if len(left) > _MOST_SIDES:
        return ALWAYS
    while True:
        joined = next(_joined(left), None)
        if joined is None:
            return frozenset(left)
        left = {side for side in left if not joined <= side} | {joined}


def _joined(sides: set[Side]) -> Iterator[Side]:
    """Sides that stand for others as well."""
    for side in sides:
        if any(side < other for other in sides):
            yield side
        for condition, is_met in side:
            rest = side - {(condition, is_met)}
            if rest | {(condition, not is_met)} in sides:
                yield rest

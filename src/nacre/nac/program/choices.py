"""Branches of a module, which is flat: what is computed for one side of a choice alone.

A `Where` whose condition is one truth value chooses one of two tensors whole. What leads to nothing
but one of them need not be computed where the other is taken: it is a branch. Choices by the same
condition that stand one behind the other are one, with several results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from msgspec import Struct

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.opaque.calls import OPAQUE

_CONDITION, _TRUE, _FALSE = range(3)  # the operands of `Where`
# Never in a branch: all results of a call that is known by its name come together.
_ALWAYS = ("Input", OPAQUE)


class Branch(Struct, frozen=True, eq=False):
    """What one side of a choice computes, without what choices in it compute, and its results."""

    operations: tuple[CoreOperation, ...]
    results: tuple[int, ...]


class Choice(Struct, frozen=True, eq=False):
    """Some `Where` by one condition, and the branches of both sides."""

    condition: int
    values: tuple[int, ...]  # that it gives
    true: Branch
    false: Branch


class Choices(Struct, frozen=True, eq=False):
    """The choices of a module, and the operations in their branches."""

    by_first: Mapping[int, Choice]  # by the first value that each gives
    later: frozenset[int]  # the other values
    inside: frozenset[int]  # values that are computed in branches

    def stands_alone(self, value: int) -> bool:
        """Whether an operation has its place outside of all branches and behind none."""
        return value not in self.inside and value not in self.later


def find_choices(module: Module) -> Choices:
    """The choices of a module of which a side computes anything."""
    search = _Search(module)
    # A choice in a branch stands before the one around it.
    for group in reversed(list(_groups(module))):
        for part in search.split(group):
            search.add(part)
    return search.choices()


def _groups(module: Module) -> Iterator[list[CoreOperation]]:
    """Choices that stand one behind the other, by one condition."""
    group: list[CoreOperation] = []
    for op in module.operations:
        if constant_array(op) is not None:
            continue
        is_next = _is_choice(op, module) and not _takes_any(op, group)
        if group and not (is_next and op.operands[_CONDITION] == group[0].operands[_CONDITION]):
            yield group
            group = []
        if _is_choice(op, module):
            group.append(op)
    if group:
        yield group


def _takes_any(op: CoreOperation, group: Sequence[CoreOperation]) -> bool:
    return any(made.value_id in op.operands for made in group)


def _is_choice(op: CoreOperation, module: Module) -> bool:
    """Whether an operation takes one of two tensors whole."""
    if op.opcode != "Where":
        return False
    condition, *sides = (module.by_id[value].type for value in op.operands)
    return condition.shape == () and all(side == op.type for side in sides)


@dataclass
class _Search:
    """Finds what the sides of choices compute, those around others first."""

    module: Module
    homes: dict[int, tuple[int, int]] = field(default_factory=dict)  # a choice and its side
    groups: dict[int, list[CoreOperation]] = field(default_factory=dict)  # by their first value

    def __post_init__(self) -> None:
        operations = self.module.operations
        self._places = {op.value_id: place for place, op in enumerate(operations)}
        self._users: dict[int, list[tuple[int, int]]] = {}  # with the place of the operand
        for op in operations:
            for place, value in enumerate(op.operands):
                self._users.setdefault(value, []).append((op.value_id, place))
        states = (state.output for state in self.module.states)
        self._kept = {*self.module.outputs, *states}

    def split(self, group: list[CoreOperation]) -> list[list[CoreOperation]]:
        """Those of a group that stand in the same branch of another choice, or in none."""
        parts: dict[tuple[int, int] | None, list[CoreOperation]] = {}
        for op in group:
            parts.setdefault(self.homes.get(op.value_id), []).append(op)
        return list(parts.values())

    def add(self, group: list[CoreOperation]) -> None:
        """Take in a choice, if a side of it computes something."""
        first = group[0].value_id
        sides = [self._computed_for(group, side) for side in (_TRUE, _FALSE)]
        if any(sides):
            self.groups[first] = group
            for side, values in enumerate(sides):
                self.homes.update(dict.fromkeys(values, (first, side)))

    def _computed_for(self, group: Sequence[CoreOperation], side: int) -> set[int]:
        """What leads to nothing but one side of a choice."""
        chosen = {op.value_id for op in group}
        found: set[int] = set()
        # The latest first: its users have been looked at by then.
        waiting = [-self._places[op.operands[side]] for op in group]
        heapify(waiting)
        seen = set(waiting)
        while waiting:
            op = self.module.operations[-heappop(waiting)]
            users = self._users.get(op.value_id, ())
            is_alone = op.opcode not in _ALWAYS and constant_array(op) is None and all(
                user in found or (user in chosen and place == side) for user, place in users
            )  # fmt: skip
            if not is_alone or op.value_id in self._kept:
                continue
            found.add(op.value_id)
            for value in op.operands:
                place = -self._places[value]
                if place not in seen:
                    seen.add(place)
                    heappush(waiting, place)
        return found

    def choices(self) -> Choices:
        """All of them."""
        members: dict[tuple[int, int], list[CoreOperation]] = {}
        for op in self.module.operations:
            if op.value_id in self.homes:
                members.setdefault(self.homes[op.value_id], []).append(op)
        made = {}
        for first, group in self.groups.items():
            true, false = (
                Branch(
                    tuple(members.get((first, at), ())), tuple(op.operands[side] for op in group)
                )
                for at, side in enumerate((_TRUE, _FALSE))
            )
            values = tuple(op.value_id for op in group)
            made[first] = Choice(group[0].operands[_CONDITION], values, true, false)
        later = frozenset(value for choice in made.values() for value in choice.values[1:])
        return Choices(made, later, frozenset(self.homes))

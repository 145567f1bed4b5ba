"""Which items share a layer: a product and the functions of elements around its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import prod

from nacre.base.elements import bytes_needed
from nacre.compile.partition.items import Item
from nacre.compile.partition.tensors import Memory
from nacre.core.module import Module
from nacre.core.ops import OPS

Dims = tuple[int, ...]
# Functions of elements join these.
_HOSTS = frozenset({"linear", "matmul", "window", "pool", "map"})
# Tensors that a tile may load, and tasks that it may have: more would not fit the tokens.
_MOST_OPERANDS = 5
_MOST_STEPS = 16
_MOST_LEAVES = 3  # results that nothing in the group reads
# A softmax joins a product only where all columns of its right side take this part of L1.
_PINNED_PART = 16


@dataclass(eq=False)
class Group:
    """Items that one layer computes."""

    number: int
    main: str
    shape: Dims
    items: list[Item] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)  # groups that come before it

    @property
    def has_rows(self) -> bool:
        """Whether something works along whole rows."""
        return any(item.kind == "rows" for item in self.items)

    def leaves(self) -> int:
        """How many results nothing in the group reads: those are stored at the end."""
        read = {use.value for item in self.items for use in item.inputs}
        return sum(item.result not in read for item in self.items)

    def reads(self) -> set[int]:
        """Values from outside that are loaded by tiles."""
        made = {item.result for item in self.items}
        first = self.items[0]
        whole = (
            {use.value for use in first.inputs[1:]} if first.kind in ("linear", "window") else set()
        )
        return {u.value for item in self.items for u in item.inputs} - made - whole


def group_items(module: Module, items: list[Item], memory: Memory, l1_bytes: int) -> list[Group]:
    """The groups in an order in which each finds made what it needs."""
    builder = _GroupBuilder(module, memory, l1_bytes)
    for item in items:
        builder.take(item)
    return _order_groups(builder.groups)


class _GroupBuilder:
    """Goes through the items and puts them into groups."""

    def __init__(self, module: Module, memory: Memory, l1_bytes: int) -> None:
        self._module, self._memory = module, memory
        self._most_pinned = l1_bytes // _PINNED_PART
        self.groups: dict[int, Group] = {}
        self._begun = 0
        self._positions = {op.value_id: i for i, op in enumerate(module.operations)}
        self._home: dict[int, int] = {}  # the group in which a value is computed
        self._makers: dict[int, set[int]] = {}  # groups that have to be done before it is there
        self._users: dict[int, set[int]] = {}  # groups that need one
        self._mentions: dict[int, list[set[int]]] = {}  # sets of makers that have a group

    def take(self, item: Item) -> None:
        """One more item."""
        sources = [use.value for use in item.inputs]
        if item.result in self._memory.copies:
            needs = self._groups_making(sources)
            if self._memory.copies[item.result]:
                group = self._begin(item, "copy", needs)
                needs = needs | {group.number}
            self._set_makers(item.result, needs)
        elif item.kind in ("view", "slice", "broadcast"):
            self._set_makers(item.result, self._groups_making(sources))
        else:
            group = self._group_to_join(item) or self._begin(
                item, _main_kind(item), self._groups_making(sources)
            )
            self._home[item.result] = group.number
            self._set_makers(item.result, {group.number})

    def _set_makers(self, value: int, makers: set[int]) -> None:
        self._makers[value] = makers
        for number in makers:
            self._mentions[number].append(makers)

    def _groups_making(self, values: Iterable[int]) -> set[int]:
        return set().union(*(self._makers.get(value, set()) for value in values))

    def _begin(self, item: Item, main: str, needs: set[int]) -> Group:
        group = Group(self._begun, main, item.op.type.shape, [item])
        self._begun += 1
        self.groups[group.number] = group
        self._users[group.number], self._mentions[group.number] = set(), []
        self._add_needs(group, needs)
        return group

    def _add_needs(self, group: Group, needs: set[int]) -> None:
        group.needs |= needs
        for number in needs:
            self._users[number].add(group.number)

    def _group_to_join(self, item: Item) -> Group | None:
        """The group that an item joins."""
        if not is_map(item) and item.kind != "rows":
            return None
        homes = {self._home[u.value] for u in item.inputs if u.value in self._home}
        for number in sorted(homes, reverse=True):
            group = self.groups[number]
            if self._can_join(item, group):
                self._merge(item, group, homes)
                group.items.append(item)
                self._add_needs(group, self._groups_making(u.value for u in item.inputs) - {number})
                return group
        return None

    def _can_join(self, item: Item, group: Group) -> bool:
        if group.main not in _HOSTS or group.shape != item.op.type.shape:
            return False
        if item.kind == "rows" and not self._takes_rows(group):
            return False
        trial = Group(-1, group.main, group.shape, [*group.items, item])
        if len(trial.items) > _MOST_STEPS or len(trial.reads()) > _MOST_OPERANDS:
            return False
        if trial.leaves() > _MOST_LEAVES:
            return False
        others = self._groups_making(u.value for u in item.inputs) - {group.number}
        return not any(self._depends_on(other, group.number) for other in others)

    def _takes_rows(self, group: Group) -> bool:
        if group.main == "map":
            return True
        if group.main != "matmul":
            return False
        right = self._module.by_id[group.items[0].inputs[1].value].type
        return bytes_needed(prod(right.shape[-2:]), right.element) <= self._most_pinned

    def _merge(self, item: Item, group: Group, homes: set[int]) -> None:
        """Put functions of elements that end in one together, where that makes no circle."""
        for number in homes - {group.number}:
            other = self.groups[number]
            if group.main != "map" or other.main != "map" or other.shape != group.shape:
                continue
            merged = Group(-1, "map", group.shape, [*other.items, *group.items, item])
            too_many = len(merged.items) > _MOST_STEPS or len(merged.reads()) > _MOST_OPERANDS
            if too_many or self._lies_between(number, group.number):
                continue
            group.items[:0] = other.items
            group.items.sort(key=lambda i: self._positions[i.result])
            for moved in other.items:
                self._home[moved.result] = group.number
            self._replace(other, group)

    def _replace(self, old: Group, new: Group) -> None:
        """Put a group in the place of another wherever that is mentioned."""
        for number in old.needs:
            self._users[number].discard(old.number)
        for number in self._users.pop(old.number) - {new.number}:
            self.groups[number].needs.discard(old.number)
            self._add_needs(self.groups[number], {new.number})
        for makers in self._mentions.pop(old.number):
            makers.discard(old.number)
            makers.add(new.number)
            self._mentions[new.number].append(makers)
        del self.groups[old.number]
        new.needs.discard(old.number)
        self._users[new.number].discard(old.number)
        self._add_needs(new, old.needs - {new.number})

    def _depends_on(self, group: int, wanted: int) -> bool:
        """Whether a group comes after another."""
        # From both ends in turns: most often what is wanted is recent, and little comes after it.
        back, forth = _Search(group), _Search(wanted)
        while back.pending and forth.pending:
            if back.step(lambda at: self.groups[at].needs) == wanted:
                return True
            if forth.step(self._users.__getitem__) == group:
                return True
        return False

    def _lies_between(self, a: int, b: int) -> bool:
        """Whether a third group needs one of two and is needed by the other."""
        for first, last in ((a, b), (b, a)):
            middles = self.groups[last].needs - {first}
            if any(self._depends_on(middle, first) for middle in middles):
                return True
        return False


class _Search:
    """Goes from a group to all that it leads to."""

    def __init__(self, start: int) -> None:
        self.pending, self._seen = [start], {start}

    def step(self, following: Callable[[int], set[int]]) -> int:
        """One more group, whose neighbours come later."""
        at = self.pending.pop()
        fresh = following(at) - self._seen
        self._seen |= fresh
        self.pending += fresh
        return at


def is_map(item: Item) -> bool:
    """Whether an item is a function of elements, on a unit of its own or not."""
    is_escape = item.kind == "escape" and "elementwise" in OPS[item.op.opcode].traits
    return item.kind == "map" or is_escape


def _main_kind(item: Item) -> str:
    return "map" if is_map(item) or item.kind == "rows" else item.kind


def _order_groups(groups: dict[int, Group]) -> list[Group]:
    """After what they need; else as they began."""
    waiting = {number: set(group.needs) for number, group in groups.items()}
    users: dict[int, list[int]] = {number: [] for number in groups}
    for number, needs in waiting.items():
        for need in needs:
            users[need].append(number)
    ready = [number for number, needs in waiting.items() if not needs]
    heapify(ready)
    order: list[Group] = []
    while ready:
        number = heappop(ready)
        order.append(groups[number])
        for user in users[number]:
            waiting[user].discard(number)
            if not waiting[user]:
                heappush(ready, user)
    return order

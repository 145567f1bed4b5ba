"""Names of nodes through a rewrite: whose work does each new operation do?

What is made in the place of an operation is called after it. What that makes superfluous is done by
it as well: its names go along, so that a product knows the norm that went into its weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import replace

from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.ops import OPS

# They are pushed about and cancel out, and compute nothing: their names do not go along.
_MOVES = frozenset({"Transpose", "Reshape", "ExpandDims", "Squeeze"})
_PRODUCTS = frozenset({
    "Conv", "Conv2d", "ConvTranspose", "Linear", "MatMul", "Dot", "Einsum", "QConv", "QLinear",
})  # fmt: skip


def kind_of(op: CoreOperation) -> str:
    """What an operation is for people: all products are of one kind, and so are both `Relu`s."""
    if op.opcode in _PRODUCTS:
        return "product"
    given = str(op.attributes.get("op", ""))
    return f"{op.opcode.removesuffix('Nan')}.{given}" if given else op.opcode.removesuffix("Nan")


def carry_labels(old: Module, new: Module, at: Mapping[int, int], ids: Mapping[int, int]) -> Labels:
    """The labels of a rewritten module.

    `at` says for each new value at which operation it was made, by its place, and `ids` what each
    old value has become.
    """
    own = old.labels or Labels()
    alive = {at[op.value_id] for op in new.operations if not _is_constant(op)}
    arrived = _superseded(old, alive, new, ids)
    nodes: dict[int, str] = {}
    fused: dict[int, tuple[str, ...]] = {}
    for op in new.operations:
        place = at[op.value_id]
        names = _names(own, op, old.operations[place], arrived.get(place, []))
        if names:
            nodes[op.value_id] = names[0]
        if len(names) > 1:
            fused[op.value_id] = names[1:]
    return Labels(own.outputs, nodes, fused, own.source)


def complete_labels(module: Module) -> Module:
    """The module with a label for every value that something labelled is made from, or made into.

    The second is for what is added behind an output, as a cast is.
    """
    own = module.labels or Labels()
    known = dict(own.nodes)
    for op in reversed(module.operations):
        mine = known.get(op.value_id)
        if mine is not None:
            for operand in op.operands:
                known.setdefault(operand, mine)
    for op in module.operations:
        before = next((known[operand] for operand in op.operands if operand in known), None)
        if before is not None:
            known.setdefault(op.value_id, before)
    return replace(module, labels=replace(own, nodes=known))


def join_labels(module: Module, ids: Mapping[int, int]) -> Labels | None:
    """Labels where equal operations have become one, by what each has become: it has both names."""
    if module.labels is None or not module.labels.nodes:
        return module.labels
    pairs = [
        (value, kept)
        for value, kept in ids.items()
        if module.by_id[value].opcode == module.by_id[kept].opcode
    ]
    return module.labels.join(pairs) if pairs else module.labels


def _names(
    old_labels: Labels, op: CoreOperation, site: CoreOperation, gone: list[CoreOperation]
) -> tuple[str, ...]:
    """The names of a new operation: first that of what is most like it."""
    is_silent = op.opcode in _MOVES or _is_constant(op)
    if not gone:
        return old_labels.names(site.value_id)[:1] if is_silent else old_labels.names(site.value_id)
    kind = kind_of(op)
    alike = [other for other in (site, *gone) if kind_of(other) == kind]
    if is_silent:
        return old_labels.names((alike or [site])[0].value_id)[:1]
    done = [*alike, site, *(other for other in gone if other.opcode not in _MOVES)]
    return tuple(dict.fromkeys(name for other in done for name in old_labels.names(other.value_id)))


def _superseded(
    old: Module, alive: Set[int], new: Module, ids: Mapping[int, int]
) -> dict[int, list[CoreOperation]]:
    """The operations that are gone, by the places of those that made them superfluous."""
    gone = {
        op.value_id: place
        for place, op in enumerate(old.operations)
        if place not in alive and not _has_successor(op, new, ids)
    }
    users: defaultdict[int, list[int]] = defaultdict(list)
    for place, op in enumerate(old.operations if gone else ()):
        for operand in op.operands:
            if operand in gone:
                users[operand].append(place)
    reached: dict[int, frozenset[int]] = {}  # from what is gone
    arrived: defaultdict[int, list[CoreOperation]] = defaultdict(list)
    for value, place in reversed(gone.items()):
        op, below = old.operations[place], users[value]
        found = (reached.get(user, frozenset({user} & alive)) for user in below)
        reached[place] = frozenset().union(*found)
        for target in reached[place]:
            arrived[target].append(op)
    return {place: ops[::-1] for place, ops in arrived.items()}


def _has_successor(op: CoreOperation, new: Module, ids: Mapping[int, int]) -> bool:
    """Whether an operation has nothing to give away: something else stands for it."""
    return op.opcode == "Input" or _is_constant(op) or ids[op.value_id] in new.by_id


def _is_constant(op: CoreOperation) -> bool:
    return "constant" in OPS[op.opcode].traits

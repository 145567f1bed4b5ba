"""Names of nodes through a rewrite: whose work does each new operation do?

What is made in the place of an operation is called after it. What that makes superfluous is done by
it as well: its names go along, so that a product knows the norm that went into its weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

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


def carried(old: Module, new: Module, at: Mapping[int, int], ids: Mapping[int, int]) -> Labels:
    """The labels of a rewritten module.

    `at` says for each new value at which operation it was made, by its place, and `ids` what each
    old value has become.
    """
    own = old.labels or Labels()
    made: defaultdict[int, list[CoreOperation]] = defaultdict(list)
    for op in new.operations:
        made[at[op.value_id]].append(op)
    alive = {place for place, found in made.items() if not all(map(_is_constant, found))}
    arrived = _arrived(old, alive, new, ids)
    nodes: dict[int, str] = {}
    fused: dict[int, tuple[str, ...]] = {}
    for place, found in made.items():
        site, gone = old.operations[place], arrived.get(place, [])
        for op in found:
            names = _names(own, op, site, gone)
            if names:
                nodes[op.value_id] = names[0]
            if len(names) > 1:
                fused[op.value_id] = names[1:]
    return Labels(own.outputs, nodes, fused, own.source)


def _names(
    own: Labels, op: CoreOperation, site: CoreOperation, gone: list[CoreOperation]
) -> tuple[str, ...]:
    """The names of a new operation: first that of what is most like it."""
    is_silent = op.opcode in _MOVES or _is_constant(op)
    if not gone:
        return own.names(site.value_id)[:1] if is_silent else own.names(site.value_id)
    kind = kind_of(op)
    alike = [other for other in (site, *gone) if kind_of(other) == kind]
    if is_silent:
        return own.names((alike or [site])[0].value_id)[:1]
    done = [*alike, site, *(other for other in gone if other.opcode not in _MOVES)]
    return tuple(dict.fromkeys(name for other in done for name in own.names(other.value_id)))


def _arrived(
    old: Module, alive: Set[int], new: Module, ids: Mapping[int, int]
) -> dict[int, list[CoreOperation]]:
    """The operations that are gone, by the places of those that made them superfluous."""
    users: defaultdict[int, list[int]] = defaultdict(list)
    for place, op in enumerate(old.operations):
        for operand in op.operands:
            users[operand].append(place)
    reached: dict[int, frozenset[int]] = {}
    arrived: defaultdict[int, list[CoreOperation]] = defaultdict(list)
    for place in range(len(old.operations) - 1, -1, -1):
        op = old.operations[place]
        if place in alive:
            reached[place] = frozenset({place})
        elif op.opcode == "Input" or _is_constant(op) or ids[op.value_id] in new.by_id:
            reached[place] = frozenset()  # something else stands for it
        else:
            reached[place] = frozenset().union(*(reached[user] for user in users[op.value_id]))
            for target in reached[place]:
                arrived[target].append(op)
    return {place: found[::-1] for place, found in arrived.items()}


def _is_constant(op: CoreOperation) -> bool:
    return "constant" in OPS[op.opcode].traits

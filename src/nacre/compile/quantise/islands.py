"""Which values are integers of 8 bits and which floats of 16: islands, and how far they reach."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import prod

from nacre.compile.quantise.observers import Histogram
from nacre.compile.quantise.roles import Graph, bounds_of, is_dangerous, scale_factor
from nacre.core.module import CoreOperation

# A product of floats stays one where it leaves so many times fewer elements.
_LEAST_SHRINK = 4


@dataclass(frozen=True)
class FloatIslands:
    """Values in floats of 16 bits; other floats are integers of 8 bits.

    Among them are products that are made on integers: `widened` leave in 16 bits, and those of
    `parts` are given their input in 16 bits, too.
    """

    floats: Set[int]
    widened: Set[int] = frozenset()
    parts: Set[int] = frozenset()

    def is_i8(self, graph: Graph, value: int) -> bool:
        """Whether a computed value is stored in integers of 8 bits."""
        return graph.is_float(value) and value not in self.floats

    def is_on_integers(self, graph: Graph, value: int) -> bool:
        """Whether a computed value is made on integers, in whatever it is stored."""
        return value in self.widened or value in self.parts or self.is_i8(graph, value)


def find_float_islands(
    graph: Graph,
    histograms: Mapping[int, Histogram],
    forced: Set[int],
    states: Set[int],
    scaled: Set[int] | None = None,
    integers: Set[int] = frozenset(),
    wide: Set[str] = frozenset(),
    parts: Set[int] = frozenset(),
) -> FloatIslands:
    """Where floats are kept: what has no form on integers, what is forced, and what lies between.

    `scaled` are the values whose scales the model gives itself: where it gives some, whatever has
    none stays in floats. What is among `integers` stays on them where it has a form. Products of
    the kinds in `wide` may leave in 16 bits; those among `parts` take their input in 16 bits.
    """
    parts, integers = parts - forced, integers | (parts - forced)
    floats = set(states) | _sources_in_floats(graph, parts)
    shrinks = scaled is None
    for op in graph.module.operations:
        if graph.is_float(op.value_id) and _starts_island(graph, op, histograms, forced, scaled):
            floats.add(op.value_id)
    _extend_down(graph, floats, shrinks, integers)
    if scaled is None:
        _extend_up(graph, floats, integers)
        _extend_down(graph, floats, shrinks, integers)
    for op in graph.module.inputs:
        if graph.is_float(op.value_id) and not _has_integer_reader(graph, op.value_id, floats):
            floats.add(op.value_id)
    _extend_down(graph, floats, shrinks, integers)
    widened = {
        op.value_id
        for op in graph.module.operations
        if op.opcode in wide and _is_before_floats(graph, op.value_id, floats | parts)
    }
    floats |= widened | parts
    _extend_down(graph, floats, shrinks=False, integers=integers)
    return FloatIslands(frozenset(floats), frozenset(widened - parts), frozenset(parts))


def _sources_in_floats(graph: Graph, products: Set[int]) -> set[int]:
    """What is computed or moved between other products and these."""
    found: set[int] = set()
    open_ = [operand for value in products for operand in graph.computed_operands(graph.op(value))]
    while open_:
        value = open_.pop()
        if value not in found and graph.roles[value] in ("map", "keep"):
            found.add(value)
            open_ += graph.computed_operands(graph.op(value))
    return found


def _is_before_floats(graph: Graph, value: int, floats: Set[int]) -> bool:
    """Whether a product on integers, or what moves it, is only used as floats."""
    role, users = graph.roles[value], graph.users.get(value, [])
    is_on_integers = role in ("product", "keep") and value not in floats
    return (
        is_on_integers
        and value not in graph.kept
        and bool(users)
        and all(
            user.value_id in floats
            or (
                graph.roles[user.value_id] == "keep"
                and len(graph.computed_operands(user)) == 1
                and _is_before_floats(graph, user.value_id, floats)
            )
            for user in users
        )
    )


def _starts_island(
    graph: Graph,
    op: CoreOperation,
    histograms: Mapping[int, Histogram],
    forced: Set[int],
    scaled: Set[int] | None,
) -> bool:
    role = graph.roles[op.value_id]
    if role == "island" or op.value_id in forced or op.value_id in graph.wide:
        return True
    if role == "pair":
        # Two that are computed stand between floats that a softmax makes and takes. A constant has
        # a scale of ours, which a model that brings its own does not have.
        is_known = len(graph.computed_operands(op)) < len(op.operands)
        if is_known == (scaled is not None):
            return True
    if role == "map" and is_dangerous(graph, op, histograms):
        return True
    if scaled is not None and _has_own_scale(graph, op):
        sources = all(
            _is_scaled_by_model(graph, value, scaled) for value in graph.computed_operands(op)
        )
        own = _is_scaled(graph, op.value_id, scaled) or scale_factor(graph, op) is not None
        return not (sources and own)
    return False


def _has_own_scale(graph: Graph, op: CoreOperation) -> bool:
    """Whether an operation has a scale of its own, and not that of what it moves."""
    role = graph.roles[op.value_id]
    return role in ("product", "pair", "scale", "map", "pool") or (
        role == "keep" and len(graph.computed_operands(op)) > 1
    )


def _is_scaled(graph: Graph, value: int, scaled: Set[int]) -> bool:
    """Whether the model says the scale of a value, or of what holds it between bounds."""
    if value in scaled:
        return True
    user = graph.only_user(value)
    is_bound = user is not None and bounds_of(user) is not None
    return is_bound and user is not None and _is_scaled(graph, user.value_id, scaled)


def _is_scaled_by_model(graph: Graph, value: int, scaled: Set[int]) -> bool:
    """Whether the model says the scale of a value, or of what was moved to become it."""
    if _is_scaled(graph, value, scaled):
        return True
    op = graph.op(value)
    computed = graph.computed_operands(op)
    is_moved = _only_moves(graph, op) or scale_factor(graph, op) is not None
    return is_moved and len(computed) == 1 and _is_scaled_by_model(graph, computed[0], scaled)


def _only_moves(graph: Graph, op: CoreOperation) -> bool:
    return graph.roles[op.value_id] == "keep"


def _extend_down(graph: Graph, floats: set[int], shrinks: bool, integers: Set[int]) -> None:
    """What moves floats moves them as they are; a function of floats only stays one.

    So does a product that leaves few elements of many: there are fewer to quantise after it.
    """
    for op in graph.module.operations:
        role = graph.roles[op.value_id]
        is_small = shrinks and role == "product" and _shrinks(graph, op)
        if (role not in ("keep", "map", "pool") and not is_small) or op.value_id in integers:
            continue
        computed = graph.computed_operands(op)
        if computed and all(value in floats for value in computed):
            floats.add(op.value_id)


def _shrinks(graph: Graph, op: CoreOperation) -> bool:
    sizes = [prod(graph.op(value).type.shape) for value in graph.computed_operands(op)]
    return _LEAST_SHRINK * prod(op.type.shape) <= min(sizes, default=0)


def _extend_up(graph: Graph, floats: set[int], integers: Set[int]) -> None:
    """A function whose result only islands see is computed in floats at once.

    Bounds stay with what they bound: they cost nothing there.
    """
    for op in reversed(graph.module.operations):
        users = graph.users.get(op.value_id, [])
        if (
            graph.roles[op.value_id] == "map"
            and bounds_of(op) is None
            and op.value_id not in graph.kept
            and op.value_id not in integers
            and users
            and all(_is_float_user(graph, user, floats) for user in users)
        ):
            floats.add(op.value_id)


def _is_float_user(graph: Graph, user: CoreOperation, floats: Set[int]) -> bool:
    return user.value_id in floats or graph.roles[user.value_id] == "plain"


def _has_integer_reader(graph: Graph, value: int, floats: Set[int]) -> bool:
    """Whether something works on a value in integers of 8 bits."""
    for user in graph.users.get(value, []):
        role = graph.roles[user.value_id]
        if role == "keep" and _has_integer_reader(graph, user.value_id, floats):
            return True
        if role in ("product", "pair", "scale", "map", "pool") and user.value_id not in floats:
            return True
    return False

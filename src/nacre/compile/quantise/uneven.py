"""Joined values whose parts differ so much in size that one scale cannot serve all of them.

A detector joins boxes in pixels with scores below 1. In steps of the boxes all scores are one of
two numbers, and the ratio of signal to noise of the whole does not show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import inf, prod

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.quantise.observers import Histogram, Observer
from nacre.compile.quantise.roles import Graph, is_dangerous
from nacre.core.module import CoreOperation

# The steps of the whole that a part of it may have for one of its own: it is left with 5 bits.
MOST_RATIO = 8.0
_MOST_HALF = GRAPH_TYPES["f16"].largest_finite / 4.0  # what was not seen may be larger
# They move every element, so what their source is made of they are made of too.
_WHOLE = frozenset({
    "Reshape", "ExpandDims", "Squeeze", "Transpose", "Concat", "Broadcast", "Pad", "Flip", "Tile",
    "DepthToSpace", "SpaceToDepth",
})  # fmt: skip
_TAKES_FLOATS = frozenset({"island", "plain", "pair"})


def uneven_concats(
    graph: Graph, histograms: Mapping[int, Histogram], observer: Observer
) -> frozenset[int]:
    """The results of `Concat` that are better joined in floats, each part out of its own scale.

    One scale must take most of a part that carries something, and floats must give it to somebody:
    to an output, to what works on floats, or to a part that is taken back and has a scale of its
    own. Products take all parts in one scale again, so floats before them would be for nothing.
    """
    sizes = _StepSizes(graph, histograms, observer)
    finest = _finest_steps(sizes)
    lossy = [value for value, least in finest.items() if _loses_a_part(sizes, value, least)]
    if not lossy:
        return frozenset()
    shares = _needed_shares(sizes, lossy)
    return frozenset(value for value in lossy if MOST_RATIO * shares[value] <= 1.0)


class _StepSizes:
    """The steps that values would have alone."""

    def __init__(
        self, graph: Graph, histograms: Mapping[int, Histogram], observer: Observer
    ) -> None:
        self.graph, self.histograms, self._observer = graph, histograms, observer
        self.step = cache(self._step)

    def _step(self, value: int) -> float:
        """The step of a value's own scale; infinite where it carries nothing.

        What is 0, or the same number everywhere, carries nothing. A single element may.
        """
        histogram = self.histograms.get(value)
        if histogram is None or histogram.is_empty or not histogram.reach:
            return inf
        step = self._observer(histogram, None).scale
        is_single = prod(self.graph.op(value).type.shape) == 1
        return step if is_single or histogram.high - histogram.low >= step else inf


def _loses_a_part(sizes: _StepSizes, value: int, least: float) -> bool:
    """Whether the scale of a `Concat` is too coarse for a part, and floats of 16 bits hold all."""
    if sizes.graph.op(value).opcode != "Concat" or least == inf:
        return False
    whole = sizes.histograms[value]
    step = sizes.step(value)
    fits = max(-whole.low, whole.high) <= _MOST_HALF
    return fits and MOST_RATIO * least <= step < inf


def _finest_steps(sizes: _StepSizes) -> dict[int, float]:
    """The least step among the parts of each joined value, and of what it is joined from."""
    graph = sizes.graph
    wanted: set[int] = set()
    for op in reversed(graph.module.operations):
        if op.opcode == "Concat" or (op.value_id in wanted and op.opcode in _WHOLE):
            wanted.update((op.value_id, *graph.computed_operands(op)))
    finest: dict[int, float] = {}
    for op in graph.module.operations:
        if op.value_id not in wanted or op.value_id in graph.constants:
            continue
        computed = graph.computed_operands(op)
        if graph.roles[op.value_id] == "keep" and op.opcode in _WHOLE:
            finest[op.value_id] = min((finest[value] for value in computed), default=inf)
        else:
            finest[op.value_id] = sizes.step(op.value_id)
    return finest


def _needed_shares(sizes: _StepSizes, starts: list[int]) -> dict[int, float]:
    """What the finest reader of each value needs: 1 is its own step, 0 any float.

    Of the values that are given, and of all that moves them or makes something of them alone.
    """
    graph = sizes.graph
    reached = set(starts)
    for op in graph.module.operations:
        if any(value in reached for value in op.operands) and _keeps_floats(sizes, op):
            reached.add(op.value_id)
    shares: dict[int, float] = {}
    for op in reversed(graph.module.operations):
        if op.value_id in reached:
            shares[op.value_id] = min(_needs_of_readers(sizes, op.value_id, shares), default=1.0)
    return shares


def _needs_of_readers(
    sizes: _StepSizes, value: int, shares: Mapping[int, float]
) -> Iterator[float]:
    """What each reader of a value needs of it."""
    graph = sizes.graph
    if value in graph.kept:
        yield 0.0
    for user in graph.users.get(value, []):
        role = graph.roles[user.value_id]
        if role in _TAKES_FLOATS or (role == "map" and is_dangerous(graph, user, sizes.histograms)):
            yield 0.0
        elif not _keeps_floats(sizes, user):
            yield 1.0  # it is stored in its own scale there
        elif role == "keep":
            own = sizes.step(user.value_id)
            yield 1.0 if own == inf else shares[user.value_id] * own / sizes.step(value)
        else:
            yield shares[user.value_id]


def _keeps_floats(sizes: _StepSizes, op: CoreOperation) -> bool:
    """Whether floats stay floats in an operation: it moves them, or is a function of them alone."""
    graph = sizes.graph
    role = graph.roles[op.value_id]
    return role == "keep" or (role == "map" and len(set(graph.computed_operands(op))) == 1)

"""Notes on what an i8 plan keeps in floats: values beyond f16, and plans that are all f16.

Masks and padding hide: they are far below all else, and 65504 hides as well as what they are. So
they are no values of the model that f16 loses, and none that a layer loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.quantise.calibration import Observations
from nacre.compile.quantise.islands import FloatIslands
from nacre.compile.quantise.roles import Graph
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_MOST_HALF = GRAPH_TYPES["f16"].largest_finite
_MOST_NAMED = 2
_NEAR = 1.01  # scores move the number that hides them this little
# What has a number that hides where its operands have one.
_PASSES = frozenset({
    "Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast", "Concat", "Tile", "Pad",
    "Where", "Cast", "MaxPool", "Gather", "GatherAxis", "Clip",
})  # fmt: skip
_PASSING_KINDS = frozenset({"Add", "Sub", "Max", "Min"})
ValueText = Callable[[int], str]


def hiding_values(module: Module) -> dict[int, float]:
    """Values in which constants or padding hide elements, with the number that does, below f16."""
    hiding: dict[int, float] = {}
    for op in module.operations:
        least = _least_number(op)
        if op.opcode in _PASSES or op.attributes.get("op") in _PASSING_KINDS:
            least += sum(hiding.get(value, 0.0) for value in op.operands)
        if least < -_MOST_HALF:
            hiding[op.value_id] = least
    return hiding


def _least_number(op: CoreOperation) -> float:
    """The least number that an operation itself brings."""
    if op.opcode == "Pad":
        value = float(str(op.attributes.get("value", 0.0)))
        return min(value, 0.0) if isfinite(value) else 0.0
    known = constant_array(op)
    if known is None or known.dtype.kind != "f":
        return 0.0
    finite = known[np.isfinite(known)]
    return float(finite.min(initial=0.0))


def round_to_half(array: Array) -> Array:
    """What f16 has of numbers that hide."""
    return np.maximum(array, np.float32(-_MOST_HALF))


def notes_beyond_f16(
    graph: Graph, islands: FloatIslands, observations: Observations, value_text: ValueText
) -> Iterator[str]:
    """A note on floats that were seen where f16 has only infinities."""
    hiding = hiding_values(graph.module)
    reached: dict[int, float] = {}
    for value in sorted(islands.floats - graph.wide):  # which stay f32
        if (
            value in observations.histograms
            and graph.is_float(value)
            and value not in graph.constants
        ):
            ends = observations.histograms[value]
            hides = ends.low >= _NEAR * hiding.get(value, 0.0)
            reached[value] = ends.high if hides else max(-ends.low, ends.high)
    beyond = [value for value, most in reached.items() if most > _MOST_HALF]
    if beyond:
        others = f" and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        yield (
            f"{value_text(beyond[0])} reaches {reached[beyond[0]]:.2g} on the calibration "
            f"data{others}: in f16 what lies beyond {_MOST_HALF:g} is infinite"
        )


def notes_without_integers(
    graph: Graph, islands: FloatIslands, value_text: ValueText
) -> Iterator[str]:
    """A note on why no product of a model is on integers."""
    products = [v for v, role in graph.roles.items() if role in ("product", "pair")]
    if not products or any(islands.is_on_integers(graph, value) for value in products):
        return
    pairs = [v for v in products if len(graph.computed_operands(graph.op(v))) > 1]
    named = pairs or products
    names = " and ".join(value_text(value) for value in named[:_MOST_NAMED])
    more = len(named) - _MOST_NAMED
    names += f" and {more} more" if more > 0 else ""
    why = (
        "multiply two computed values, which stay floats: only products with weights go on integers"
        if pairs
        else "stay floats: they lose too much, lie between floats, or a precision map keeps them"
    )
    yield f"all in f16: {names} {why}; precision f16 makes such a plan without calibration data"

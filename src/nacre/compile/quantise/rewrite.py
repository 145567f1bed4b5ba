"""The module on integers: every operation of the float module in its form on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.compile.quantise.forms import take_operation
from nacre.compile.quantise.islands import FloatIslands
from nacre.compile.quantise.roles import Graph, bounds_of
from nacre.compile.quantise.walking import Product, QuantisedValue, StorageScheme, Walk
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Literal, attributes


@dataclass(frozen=True, eq=False)
class Rewritten:
    """The module, what became of each value, and its products."""

    module: Module
    stored: Mapping[int, QuantisedValue]  # by the value of the float module
    outputs: tuple[QuantisedValue, ...]
    products: tuple[Product, ...]
    notes: tuple[str, ...]


def rewrite_on_integers(
    graph: Graph, islands: FloatIslands, scheme: StorageScheme, model_outputs: int
) -> Rewritten:
    """A float module on integers, with islands of floats.

    The first `model_outputs` are the model's; those behind are the next values of states, which
    are floats.
    """
    walk = Walk(graph, islands, scheme)
    for op in graph.module.operations:
        take_operation(walk, op)
    kept = graph.module.outputs
    outputs = tuple(
        walk.output(index, value, index < model_outputs) for index, value in enumerate(kept)
    )
    module = walk.builder.module(*(output.value for output in outputs))
    return Rewritten(module, walk.stored, outputs, tuple(walk.products), tuple(walk.notes))


def is_bound_left_to_storage(graph: Graph, rewritten: Rewritten, value: int) -> bool:
    """Whether bounds of floats are left to the integers that these become."""
    op, own = graph.op(value), rewritten.stored[value]
    return (
        bounds_of(op) is not None and own.affine is None and own == rewritten.stored[op.operands[0]]
    )


def with_data(op: CoreOperation, array: Array) -> CoreOperation:
    """A constant with other elements, of its own type."""
    data = Literal(array.astype(op.type.element.dtype, copy=False))
    given = attributes({**op.attributes, "data": data})
    return CoreOperation(op.value_id, op.opcode, op.operands, given, op.type)

"""Values under other numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nacre.core.module import CoreOperation, Module, State


def renumber(module: Module, ids: Mapping[int, int]) -> Module:
    """The module with its values under other ids; the order, places and labels stay."""
    operations = tuple(
        CoreOperation(
            ids[op.value_id],
            op.opcode,
            tuple([ids[operand] for operand in op.operands]),
            op.attributes,
            op.type,
        )
        for op in module.operations
    )
    states = tuple(State(s.name, ids[s.output], ids[s.initial]) for s in module.states)
    outputs = tuple(ids[value] for value in module.outputs)
    labels = None if module.labels is None else module.labels.renumber(ids)
    return replace(module, operations=operations, outputs=outputs, states=states, labels=labels)

"""Inputs first, with the lowest ids."""

from __future__ import annotations

from dataclasses import replace

from nacre.core.module import Module
from nacre.core.passes.renumber import renumber


def hoist_inputs(module: Module) -> Module:
    """Move every `Input` before the other operations.

    - `Input` after an operation: all inputs come first, in their order, and the ids of the module
      are dealt out again down the new order. This alone renumbers; where inputs come first
      already, nothing changes.
    """
    operations = module.operations
    count = len(module.inputs)
    if all(op.opcode == "Input" for op in operations[:count]):
        return module
    order = sorted(range(len(operations)), key=lambda at: operations[at].opcode != "Input")
    ordered = tuple([operations[at] for at in order])
    ids = sorted(op.value_id for op in operations)
    new = {op.value_id: value for op, value in zip(ordered, ids, strict=True)}
    spans = module.source_spans
    if spans is not None:
        spans = replace(spans, operations=tuple([spans.operations[at] for at in order]))
    return renumber(replace(module, operations=ordered, source_spans=spans), new)

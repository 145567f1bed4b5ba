"""Inputs first, with the lowest ids."""

from __future__ import annotations

from nacre.core.module import CoreOperation, Module, State


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
    ordered = [*module.inputs, *(op for op in operations if op.opcode != "Input")]
    ids = sorted(op.value_id for op in operations)
    new = {op.value_id: value for op, value in zip(ordered, ids, strict=True)}
    moved = tuple(
        CoreOperation(
            new[op.value_id],
            op.opcode,
            tuple([new[operand] for operand in op.operands]),
            op.attributes,
            op.type,
        )
        for op in ordered
    )
    states = tuple(State(s.name, new[s.output], new[s.initial]) for s in module.states)
    outputs = tuple(new[value] for value in module.outputs)
    labels = None if module.labels is None else module.labels.renumbered(new)
    return Module(moved, outputs, states, labels=labels)

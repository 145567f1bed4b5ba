"""Inputs and outputs in the order of axes that the device computes in.

What a model takes with channels first is transposed on the device, which costs cycles and a round
trip through L1. With borders in the order of the device the host does it, in the copy that it makes
anyway, or has its data in that order already, as cameras have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nacre.compile.legalise.legal_module import Axes, Legal
from nacre.core.module import CoreOperation, Module, TensorType, operation
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.graph import users_of

_TRANSPOSE, _CAST = "Transpose", "Cast"
Users = Mapping[int, list[CoreOperation]]


def leave_transposes_to_host(legal: Legal) -> Legal:
    """The same without the transpositions that stand alone between the host and a layer.

    An input that is also read in the model's own order keeps it, and so do states: the next run
    takes what this one leaves.
    """
    module = legal.module
    states = () if legal.source is None else legal.source.states
    kept = {state.name for state in states}
    input_axes: dict[str, Axes] = {}
    for op in module.inputs:
        name = str(op.attributes["name"])
        while name not in kept and (found := _transpose_input(module, op.value_id)) is not None:
            module, axes = found
            input_axes[name] = _compose(input_axes.get(name), axes)
    output_axes: dict[int, Axes] = {}
    for index in range(legal.outputs):
        while (found := _transpose_output(module, index)) is not None:
            module, axes = found
            output_axes[index] = _compose(output_axes.get(index), axes)
    if module is legal.module:
        return legal
    return replace(legal, module=dead_code(module), input_axes=input_axes, output_axes=output_axes)


def _compose(first: Axes | None, then: Axes) -> Axes:
    """One transposition for two: the axes that the second finds are those of the first."""
    return then if first is None else tuple(first[axis] for axis in then)


def _transpose_input(module: Module, value: int) -> tuple[Module, Axes] | None:
    """The module with an input as its transpositions make it; None where it is read otherwise."""
    users = users_of(module)
    same_elements = {value}  # the input, and what only casts it
    transposes: list[CoreOperation] = []
    pending = [value]
    while pending:
        for user in users.get(pending.pop(), ()):
            if user.opcode == _CAST:
                same_elements.add(user.value_id)
                pending.append(user.value_id)
            else:
                transposes.append(user)
    orders = {_order(op) for op in transposes}
    order = orders.pop() if len(orders) == 1 else None
    at_border = same_elements | {op.value_id for op in transposes}
    if order is None or not at_border.isdisjoint(module.outputs):
        return None
    changed = {number: _in_order(module.by_id[number], order) for number in same_elements}
    instead = {op.value_id: op.operands[0] for op in transposes}
    return _rebuild(module, changed, instead), order


def _transpose_output(module: Module, index: int) -> tuple[Module, Axes] | None:
    """The module with an output as a layer makes it; None where no transposition stands there."""
    users = users_of(module)
    casts: list[CoreOperation] = []
    op = module.by_id[module.outputs[index]]
    while op.opcode == _CAST:
        casts.append(op)
        op = module.by_id[op.operands[0]]
    order = _order(op)
    if order is None or module.by_id[op.operands[0]].opcode == "Input":
        return None
    # What others read too has to stay as it is.
    behind = [op, *reversed(casts)] if casts else []
    are_alone = all(len(users.get(one.value_id, ())) <= 1 for one in behind)
    outputs = [value for value in module.outputs if value in {one.value_id for one in behind}]
    if not are_alone or len(outputs) > 1:
        return None
    back = tuple(order.index(axis) for axis in range(len(order)))
    changed = {one.value_id: _in_order(one, back) for one in casts}
    if casts:
        return _rebuild(module, changed, {op.value_id: op.operands[0]}), back
    outputs = list(module.outputs)
    outputs[index] = op.operands[0]
    return replace(module, outputs=tuple(outputs)), back


def _order(op: CoreOperation) -> Axes | None:
    """The permutation of a transposition; None for any other operation."""
    if op.opcode != _TRANSPOSE:
        return None
    given: Iterable[int] = op.attributes["permutation"]
    return tuple(given)


def _in_order(op: CoreOperation, order: Axes) -> CoreOperation:
    shape = tuple(op.type.shape[axis] for axis in order)
    type_ = TensorType(op.type.dtype, shape)
    return operation(op.value_id, op.opcode, op.operands, type_, op.attributes)


def _rebuild(
    module: Module, changed: Mapping[int, CoreOperation], instead: Mapping[int, int]
) -> Module:
    """The module with some operations changed, and readers of some values reading others."""
    operations = []
    for op in module.operations:
        if op.value_id not in instead:
            own = changed.get(op.value_id, op)
            operands = tuple(instead.get(operand, operand) for operand in own.operands)
            made = operation(own.value_id, own.opcode, operands, own.type, own.attributes)
            operations.append(made)
    return replace(module, operations=tuple(operations))

"""Smaller models on which something still goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.core.module import CoreOperation, Module
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.values import attributes

Judge = Callable[[Module], bool]  # whether it still goes wrong


def reduced(module: Module, judge: Judge, most: int = 150) -> Module:
    """The smallest model found: with fewer outputs, operations left out or made inputs."""
    module, tried = _cleaned(module), 0
    while True:
        for other in map(_cleaned, _smaller(module)):
            if _size(other) >= _size(module):
                continue
            tried += 1
            if tried > most:
                return module
            if judge(other):
                module = other
                break
        else:
            return module


def _size(module: Module) -> tuple[int, int, int]:
    computed = sum(op.opcode != "Input" for op in module.operations)
    return len(module.operations), computed, len(module.outputs)


def _smaller(module: Module) -> Iterator[Module]:
    operations, outputs, states = module.operations, module.outputs, module.states
    if states:
        yield Module(operations, outputs)
    for at in range(len(outputs)):
        if len(outputs) > 1:
            yield Module(operations, (*outputs[:at], *outputs[at + 1 :]), states)
        for op in operations:
            if op.opcode not in ("Input", "ConstTensor"):
                yield Module(operations, (*outputs[:at], op.value_id, *outputs[at + 1 :]), states)
    starts = {state.initial for state in states}  # of states: constants, and they stay ones
    for op in operations:
        if op.value_id in starts:
            continue
        if op.opcode != "Input" and op.type.dtype == "f32" and op.type.shape:
            name = attributes({"name": _new_name(module, op.value_id)})
            given = CoreOperation(op.value_id, "Input", (), name, op.type)
            yield Module(tuple(given if o is op else o for o in operations), outputs, states)
        for operand in op.operands:
            if module.by_id[operand].type == op.type:
                yield _without(module, op, operand)


def _new_name(module: Module, value: int) -> str:
    """A name that no input has: ids are dealt out again when inputs are put first."""
    name = f"made{value}"
    while name in module.input_types:
        name += "_"
    return name


def _without(module: Module, left_out: CoreOperation, operand: int) -> Module:
    """An operation skipped: its operand stands in its place."""

    def new(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(operand if value == left_out.value_id else value for value in values)

    operations = tuple(
        CoreOperation(op.value_id, op.opcode, new(op.operands), op.attributes, op.type)
        for op in module.operations
        if op is not left_out
    )
    return Module(operations, new(module.outputs))


def _cleaned(module: Module) -> Module:
    module = dead_code(module)
    used = {*module.outputs, *(state.output for state in module.states)}
    used.update(operand for op in module.operations for operand in op.operands)
    names = {state.name for state in module.states}
    kept = tuple(
        op
        for op in module.operations
        if op.opcode != "Input" or op.value_id in used or op.attributes["name"] in names
    )
    return hoist_inputs(Module(kept, module.outputs, module.states))

"""Parameters and products of a module, counted operation by operation with loops of our own."""

from __future__ import annotations

from nacre.core.module import CoreOperation, Module


def size(shape: tuple[int, ...]) -> int:
    total = 1
    for dimension in shape:
        total *= dimension
    return total


def naive_parameters(module: Module) -> int:
    named = module.parameter_names
    return sum(size(op.type.shape) for op in module.operations if op.value_id in named)


def naive_macs(module: Module) -> int:
    return sum(_macs(module, op) for op in module.operations)


def _macs(module: Module, op: CoreOperation) -> int:
    shapes = [module.by_id[value].type.shape for value in op.operands]
    out = size(op.type.shape)
    if op.opcode == "Conv":
        return out * shapes[1][1] * shapes[1][2] * shapes[1][3]
    if op.opcode == "Linear":
        return out * shapes[1][1]
    if op.opcode == "Attention":
        batch, heads, queries, depth = shapes[0]
        keys = shapes[1][2]
        return batch * heads * queries * keys * (depth + shapes[2][3])
    assert op.opcode not in ("MatMul", "Dot", "Einsum", "Conv2d", "ConvTranspose")
    return 0

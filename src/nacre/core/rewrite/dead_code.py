"""Operations that nothing uses."""

from __future__ import annotations

from nacre.core.module import Module


def dead_code(module: Module) -> Module:
    """Remove operations whose value nobody needs.

    - an operation that neither an output, nor a state, nor another needed operation uses is
      dropped; the ids of the others stay. Inputs stay: they are the module's interface
    """
    needed = set(module.outputs)
    for state in module.states:
        needed |= {state.output, state.initial}
    kept = []
    for op in reversed(module.operations):
        if op.value_id in needed or op.opcode == "Input":
            kept.append(op)
            needed.update(op.operands)
    if len(kept) == len(module.operations):
        return module
    return Module(tuple(reversed(kept)), module.outputs, module.states)

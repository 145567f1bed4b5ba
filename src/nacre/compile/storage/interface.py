"""What is left of a model that a bundle does without: its inputs, its outputs and its state."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import Module


def interface_of(module: Module) -> Module:
    """A module that takes and gives what a model does, and computes nothing."""
    build = Builder()
    for name, type_ in module.input_types.items():
        build.input(name, type_.dtype, type_.shape)

    def zeros(value: int) -> int:
        type_ = module.by_id[value].type
        zero = build.constant(np.zeros((), GRAPH_TYPES[type_.dtype].dtype), type_.dtype)
        return zero if not type_.shape else build.add("Broadcast", zero, shape=list(type_.shape))

    outputs = [zeros(value) for value in module.outputs]
    for state in module.states:
        initial = module.by_id[state.initial]
        build.state(state.name, zeros(state.output), build.copy(initial, ()))
    return build.module(*outputs)

"""Weights of 16 bits that a model has of its own, in a file that is stored as FP16.

The header alone says FP16, and readers then widen every tensor of that type to f32. A weight that
the model computes with in 16 bits is cast back to them in the program, which changes no value.
"""

from __future__ import annotations

import numpy as np

from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Labels, Module, State, TensorType
from nacre.core.values import Array, Literal, Word, attributes
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.spec.elements import DTYPE_CODES
from nacre.nac.spec.instructions import INPUT, PARAMETER

_HALF = "f16"


def loaded_halves(file: NacFile) -> list[Tensor]:
    """The weights of f16 that a program loads; a state that begins as one has a type besides."""
    loaded = {i.c[1] for i in file.instructions if (i.op, i.variant) == (INPUT, PARAMETER) and i.c}
    return [t for t in file.data.tensors if t.dtype == DTYPE_CODES[_HALF] and t.id in loaded]


def widen_halves(module: Module) -> Module:
    """The same module in which weights of f16 are weights of f32 behind a cast."""
    new: dict[int, int] = {}  # numbers of values
    labels: dict[int, str] = {}
    operations: list[CoreOperation] = []
    names = {} if module.labels is None else module.labels.nodes
    parameters: dict[int, tuple[str, ...]] = {}
    initial = {state.initial for state in module.states}
    for op in module.operations:
        at, elements = len(operations), constant_array(op)
        is_cast = op.type.dtype == _HALF and elements is not None and op.value_id not in initial
        if is_cast:
            assert elements is not None
            operations += _widened_with_cast(at, elements)
        else:
            operands = tuple([new[value] for value in op.operands])
            operations.append(CoreOperation(at, op.opcode, operands, op.attributes, op.type))
        new[op.value_id] = len(operations) - 1
        if op.value_id in names:
            labels[at] = names[op.value_id]
        if op.value_id in module.parameter_names:
            parameters[at] = module.parameter_names[op.value_id]
    states = tuple(State(s.name, new[s.output], new[s.initial]) for s in module.states)
    outputs = tuple(new[value] for value in module.outputs)
    given = None
    if module.labels is not None:
        outputs_, fixed = module.labels.outputs, module.labels.fixed
        given = Labels(outputs_, labels, parameters=parameters, fixed=fixed)
    return Module(tuple(operations), outputs, states, labels=given)


def _widened_with_cast(at: int, elements: Array) -> tuple[CoreOperation, CoreOperation]:
    wide, shape = elements.astype(np.float32), tuple(elements.shape)
    data = attributes({"data": Literal(wide), "dtype": Word("f32"), "shape": shape})
    return (
        CoreOperation(at, "ConstTensor", (), data, TensorType("f32", shape)),
        CoreOperation(
            at + 1, "Cast", (at,), attributes({"to": Word(_HALF)}), TensorType(_HALF, shape)
        ),
    )

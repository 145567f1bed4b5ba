"""Models that come quantised: as float models again, with the scales that they brought.

Every tensor of stored integers has a float tensor that it stands for. The float model computes
those. Integers have ends, so each is held between two bounds by a `Clip`; those bounds say which
scale it had, and the quantiser takes that instead of looking for one. What other stages do to a
module does not lose them. Data in u8 becomes i8, which moves zero points by 128.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nacre.compile.quantise.prequantised.float_forms import FORMS, move
from nacre.compile.quantise.prequantised.imported_scales import QuantisedPort
from nacre.compile.quantise.prequantised.uses import multiplies_stored_integers, users_of
from nacre.compile.quantise.prequantised.walk import Walk
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Labels, Module

_QUANTISED = frozenset({"Quantize", "Dequantize", "QConv", "QLinear", "QBinOp", "QPool"})


@dataclass(frozen=True, eq=False)
class FloatModel:
    """A float model, and what it brought."""

    module: Module
    imported: QuantisedPort = field(default_factory=QuantisedPort)


def float_model(module: Module) -> FloatModel:
    """The float model behind a quantised one; a model without quantised operations as it is."""
    is_quantised = any(op.opcode in _QUANTISED for op in module.operations)
    if not is_quantised and not multiplies_stored_integers(module, users_of(module)):
        return FloatModel(module)
    walk = Walk(module)
    walk.take_inputs()
    for op in module.operations:
        if op.opcode != "Input":
            _import_operation(walk, op)
    for state in module.states:
        walk.builder.state(state.name, walk.value(state.output), walk.value(state.initial))
    outputs = [walk.output(index, value) for index, value in enumerate(module.outputs)]
    floats = walk.builder.module(*outputs)
    labels = replace(module.labels or Labels(), nodes=walk.names, fused=walk.fused)
    return FloatModel(replace(floats, labels=labels), walk.imported())


def _import_operation(walk: Walk, op: CoreOperation) -> None:
    """One operation of the quantised module."""
    if constant_array(op) is not None:
        return  # made where it is used
    first = walk.builder.count
    form = FORMS.get(op.opcode)
    if not (form is not None and form(walk, op)) and not move(walk, op):
        operands = tuple(walk.value(operand) for operand in op.operands)
        walk.ids[op.value_id] = walk.builder.copy(op, operands)
    name, *others = (walk.module.labels or Labels()).names(op.value_id) or ("",)
    if name:
        walk.names.update(dict.fromkeys(range(first, walk.builder.count), name))
    if others:
        walk.fused.update(dict.fromkeys(range(first, walk.builder.count), tuple(others)))

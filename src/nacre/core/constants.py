"""Constants: their elements as the kernels take them, and the operations that hold such."""

from __future__ import annotations

import numpy as np

from nacre.core.module import CoreOperation, TensorType
from nacre.core.ops import OPS
from nacre.core.values import Array, Attributes, Literal, Word, attributes
from nacre.kernels.interface.call import TensorType as KernelType

_SCALARS = {"i64": "ConstI64", "f32": "ConstF32", "f64": "ConstF64"}
_SCALAR_OPCODES = frozenset(_SCALARS.values())
CONSTANTS = frozenset(name for name, spec in OPS.items() if "constant" in spec.traits)


def kernel_type(type_: TensorType) -> KernelType:
    """A type as the kernels know it."""
    return KernelType(type_.element, type_.shape)


def to_carried(array: Array, type_: TensorType) -> Array:
    """An array as the kernels take it: dense, and types below a byte in whole bytes."""
    kernel = kernel_type(type_)
    return np.ascontiguousarray(array, dtype=kernel.dtype).reshape(type_.shape)


def constant_array(op: CoreOperation) -> Array | None:
    """The value of a constant as the kernels carry it; None where the operation is no constant."""
    if op.opcode in _SCALAR_OPCODES:
        with np.errstate(over="ignore"):
            return np.array(op.attributes["value"], op.type.element.dtype)
    if op.opcode != "ConstTensor":
        return None
    data = op.attributes["data"]
    array = data.array if isinstance(data, Literal) else np.array(data, op.type.element.dtype)
    return to_carried(array, op.type)


def constant_attributes(array: Array, type_: TensorType) -> tuple[str, Attributes]:
    """The opcode and the attributes of a constant: scalars as `ConstI64` and the like."""
    scalar = _SCALARS.get(type_.dtype) if type_.shape == () else None
    if scalar is not None:
        return scalar, attributes({"value": array[()].item()})
    given = {"data": Literal(array), "dtype": Word(type_.dtype), "shape": type_.shape}
    return "ConstTensor", attributes(given)

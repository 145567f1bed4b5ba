"""Layers on integers of 8 bits that inputs drive beyond the range that calibration has found.

No layer alone would help there: what lies beyond is lost in all that follow, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.legalise.running import StepwiseRunner
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_LOWEST, _HIGHEST = -128, 127
_MUCH = 0.05  # of a layer's elements: some at an end are what calibration leaves out
_FUSED = frozenset({"QLinear", "QConv", "QBinOp"})
# An end of theirs is the end of the range.
_BOUNDED = frozenset({"Clip", "HardSigmoid", "Sigmoid", "Tanh", "Erf", "Softmax"})


@dataclass(frozen=True)
class ClippedLayer:
    """A layer, and which share of its elements is held at an end of 8 bits."""

    layer: str
    share: float


def find_most_clipped(bundle: CompiledModel, arrays: Mapping[str, Array]) -> ClippedLayer | None:
    """The first layer of those with many elements at an end; None where there is none."""
    module, ports = bundle.legal, bundle.manifest.inputs
    given = {port.name: port.to_memory(arrays[port.name]) for port in ports}
    names = dict(_layers_by_value(bundle))
    zeros = {port.name: port.zero or 0 for port in ports if port.scale is not None}
    with np.errstate(all="ignore"):
        for value, array in StepwiseRunner(module).run(given):
            op = module.by_id[value]
            zero = _zero(op, zeros)
            share = 0.0 if zero is None else _share_at_ends(array, zero)
            is_named = value in names or op.opcode == "Input"
            if share > _MUCH and is_named and not _is_bounded_behind(module, value):
                return ClippedLayer(names.get(value, str(op.attributes.get("name"))), share)
    return None


def _layers_by_value(bundle: CompiledModel) -> Iterator[tuple[int, str]]:
    """Names of the model's values that are stored on integers, but for those with bounds."""
    source = bundle.source
    for layer in bundle.manifest.layers:
        for origin in layer.operations:
            made = None if origin.source is None else source.by_id.get(origin.source)
            if made is not None and not _is_bounded(made):
                yield origin.legal, origin.node or f"%{origin.source}"


def _is_bounded(op: CoreOperation) -> bool:
    return op.opcode in _BOUNDED or op.attributes.get("op") in _BOUNDED


def _is_bounded_behind(module: Module, value: int) -> bool:
    """Whether all that uses a value has bounds: what lies far beyond them is held on purpose."""
    users = [op for op in module.operations if value in op.operands]
    return bool(users) and all(
        _is_bounded_behind(module, op.value_id) if op.opcode == "Dequantize" else _is_bounded(op)
        for op in users
    )


def _zero(op: CoreOperation, zeros: Mapping[str, int]) -> int | None:
    """The integer that 0 is, of what an operation stores; None of all others."""
    if op.opcode == "Input":
        return zeros.get(str(op.attributes["name"]))
    if op.opcode in _FUSED:
        return int(str(op.attributes["y_zero"]))
    return None


def _share_at_ends(array: Array, zero: int) -> float:
    """Zeros may well stand at an end."""
    if array.dtype != np.int8 or not array.size:
        return 0.0
    at_end = ((array == _HIGHEST) & (zero != _HIGHEST)) | ((array == _LOWEST) & (zero != _LOWEST))
    return float(np.mean(at_end))

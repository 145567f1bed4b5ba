"""What a module of Core IR costs: operations, parameters, multiplications, memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from nacre.base.excerpt import safe
from nacre.core.constants import constant_array
from nacre.core.evaluation.constants import stored_weights
from nacre.core.evaluation.lifetimes import peak_bytes
from nacre.core.evaluation.plan import macs_of
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.kernels.interface.call import Constant


@dataclass(frozen=True, slots=True)
class Stats:
    """The figures of a module."""

    operations: dict[str, int]  # by opcode, the most frequent first
    macs: dict[str, int]  # by opcode, where there are any
    parameters: int  # elements of constants
    parameter_bytes: int
    activation_peak_bytes: int
    inputs: dict[str, str]
    outputs: list[str]
    layers: list[dict[str, Any]]  # those that multiply, in order

    def as_json(self) -> dict[str, Any]:
        """The stable machine form."""
        return {
            "operations": self.operations,
            "operations_total": sum(self.operations.values()),
            "macs": self.macs,
            "macs_total": sum(self.macs.values()),
            "parameters": self.parameters,
            "parameter_bytes": self.parameter_bytes,
            "activation_peak_bytes": self.activation_peak_bytes,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "layers": self.layers,
        }

    def _layer_lines(self) -> list[str]:
        names = [safe(layer["name"]) for layer in self.layers]
        width = max([4, *map(len, names)])
        head = f"{'name':{width}} {'operation':14} {'MACs':>16} {'parameters':>12}  result"
        return [head] + [
            f"{name:{width}} {layer['opcode']:14} {layer['macs']:>16,} "
            f"{layer['parameters']:>12,}  {layer['type']}"
            for name, layer in zip(names, self.layers, strict=True)
        ]

    def as_text(self, *, with_layers: bool = False) -> str:
        """A table by opcode, then the sums; before them, if so asked, a row a layer."""
        width = max(10, *map(len, self.operations))
        rows = [
            f"{opcode:{width}} {count:>12,} {self.macs.get(opcode, 0):>20,}"
            for opcode, count in self.operations.items()
        ]
        total, macs = sum(self.operations.values()), sum(self.macs.values())
        return "\n".join(
            [
                *([*self._layer_lines(), ""] if with_layers else []),
                f"{'operation':{width}} {'count':>12} {'MACs':>20}",
                *rows,
                f"{'all':{width}} {total:>12,} {macs:>20,}",
                "",
                f"parameters:      {self.parameters:,} ({self.parameter_bytes:,} bytes)",
                f"activation peak: {self.activation_peak_bytes:,} bytes",
            ]
        )


def stats_of(module: Module) -> Stats:
    """The figures of a module that has no errors."""
    counts = Counter(op.opcode for op in module.operations)
    macs = Counter[str]()
    parameters = parameter_bytes = 0
    for op in module.operations:
        if is_constant(op):
            parameters += prod(op.type.shape)
            parameter_bytes += op.type.size_bytes
        else:
            macs[op.opcode] += macs_of(op, module)
    stored = _stored_weights(module)
    return Stats(
        dict(sorted(counts.items(), key=lambda row: (-row[1], row[0]))),
        {opcode: count for opcode, count in sorted(macs.items()) if count},
        parameters,
        parameter_bytes,
        activation_peak_bytes(module, stored),
        {name: str(type_) for name, type_ in module.input_types.items()},
        list(map(str, module.output_types)),
        _layers(module, stored),
    )


def _layers(module: Module, stored: Mapping[int, Constant]) -> list[dict[str, Any]]:
    """Operations that multiply: what the model calls them, and what they cost."""
    names = module.labels.nodes if module.labels is not None else {}
    return [
        {
            "name": names.get(op.value_id, f"%{op.value_id}"),
            "opcode": op.opcode,
            "macs": macs,
            "parameters": sum(
                prod(module.by_id[operand].type.shape)
                for operand in op.operands
                if is_constant(module.by_id[operand]) or operand in stored
            ),
            "type": str(op.type),
        }
        for op in module.operations
        if not is_constant(op) and (macs := macs_of(op, module))
    ]


def _stored_weights(module: Module) -> dict[int, Constant]:
    """Weights that operations make wide and that are never held so: see `stored_weights`."""
    weights = {op.value_id: constant_array(op) for op in module.operations}
    return stored_weights(module, {value: a for value, a in weights.items() if a is not None})


def is_constant(op: CoreOperation) -> bool:
    """Whether an operation is a constant."""
    return "constant" in OPS[op.opcode].traits


def activation_peak_bytes(module: Module, stored: Collection[int] = ()) -> int:
    """The most bytes of inputs and results alive at one time; constants are not counted."""
    sizes = {
        op.value_id: 0 if is_constant(op) or op.value_id in stored else op.type.size_bytes
        for op in module.operations
    }
    return peak_bytes(module, sizes)

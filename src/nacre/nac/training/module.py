"""A module whose parameters are inputs, with a loss: what gradients are taken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.gradients.grad import grad
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.training.losses import LOSSES

_PREFIX = "parameter"


class OpenModule(Struct, frozen=True, eq=False):
    """A module that is given its parameters with every run."""

    module: Module
    inputs: Mapping[str, str]  # of parameters, by their names
    weights: Mapping[str, Array]  # what they are in the file


def open_parameters(module: Module) -> OpenModule:
    """The same computation, with every named constant of floats as an input."""
    writer = _Writer(module)
    values, _ = writer.write()
    return writer.open(writer.made.module(*(values[output] for output in module.outputs)))


def training_module(
    module: Module,
    loss: str,
    targets: Sequence[TensorType],
    trained: Sequence[str],
    smoothing: float = 0.0,
) -> tuple[OpenModule, tuple[str, ...]]:
    """The loss and its gradients by parameters, and the names of the inputs for targets.

    The first outputs have targets. Unsupported where one does not fit.
    """
    if not 1 <= len(targets) <= len(module.outputs):
        raise Unsupported(f"{len(targets)} targets for {len(module.outputs)} outputs")
    writer = _Writer(module)
    values, aims = writer.write(targets)
    made, total = writer.made, None
    for output, target in zip(module.outputs, aims, strict=False):
        one = LOSSES[loss].write(made, values[output], target, smoothing)
        total = one if total is None else made.add("BinOp", total, one, op="Add")
    assert total is not None
    opened = writer.open(made.module(total))
    gradients = grad(opened.module, [opened.inputs[name] for name in trained])
    return OpenModule(gradients, opened.inputs, opened.weights), tuple(writer.target_names)


class _Writer:
    """Writes a module anew; constants of floats that have names become inputs."""

    def __init__(self, module: Module) -> None:
        self.made = Builder()
        self._module = module
        self._names = set(module.input_types)
        self._inputs: dict[str, str] = {}
        self._weights: dict[str, Array] = {}
        self.target_names: list[str] = []

    def new_name(self, wanted: str) -> str:
        """A name that no input has."""
        while wanted in self._names:
            wanted = f"{wanted}_"
        self._names.add(wanted)
        return wanted

    def write(self, targets: Sequence[TensorType] = ()) -> tuple[dict[int, int], list[int]]:
        """The values of the module by what they were, and inputs for targets."""
        values: dict[int, int] = {}
        operations = self._module.operations
        for op in operations:  # what is given comes first in a module
            if op.opcode == "Input":
                name = str(op.attributes["name"])
                values[op.value_id] = self.made.input(name, op.type.dtype, op.type.shape)
        for op in operations:
            array, names = constant_array(op), self._module.parameter_names.get(op.value_id)
            if array is not None and names and GRAPH_TYPES[op.type.dtype].kind == "float":
                values[op.value_id] = self._parameter(names[0], array, op.type)
        self.target_names = [self.new_name(f"target_{place}") for place in range(len(targets))]
        aims = [
            self.made.input(name, type_.dtype, type_.shape)
            for name, type_ in zip(self.target_names, targets, strict=True)
        ]
        for op in operations:
            if op.value_id not in values:
                values[op.value_id] = self._operation(op, values)
        return values, aims

    def _operation(self, op: CoreOperation, values: Mapping[int, int]) -> int:
        array = constant_array(op)
        if array is not None:
            return self.made.constant(array, op.type.dtype, copy=False)
        given: Mapping[str, Any] = op.attributes
        return self.made.add(op.opcode, *(values[value] for value in op.operands), **given)

    def _parameter(self, name: str, array: Array, type_: TensorType) -> int:
        self._inputs[name] = self.new_name(f"{_PREFIX}_{len(self._inputs)}")
        self._weights[name] = array
        return self.made.input(self._inputs[name], type_.dtype, type_.shape)

    def open(self, module: Module) -> OpenModule:
        """The module that was written, with its parameters."""
        return OpenModule(module, self._inputs, self._weights)

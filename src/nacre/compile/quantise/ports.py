"""How inputs and outputs are stored, and how the host makes them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.narrowing import store_floats
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.calibration import Sample
from nacre.compile.quantise.prequantised.imported_scales import ImportedScales, QuantisedPort
from nacre.compile.quantise.rewrite import Rewritten
from nacre.compile.quantise.walking import QuantisedValue
from nacre.core.module import Module
from nacre.core.values import Array


class Port(Struct, frozen=True):
    """An input or output: `dtype` in the model, `elem` in memory, with a scale where quantised."""

    name: str
    dtype: str
    elem: str
    scale: float | None = None
    zero: int | None = None

    @property
    def affine(self) -> Affine | None:
        """What its integers stand for."""
        if self.scale is None or self.zero is None:
            return None
        return Affine(self.scale, self.zero)

    def to_memory(self, array: Array) -> Array:
        """An array of the model as memory holds it."""
        if self.affine is not None:
            return self.affine.quantise(array)
        return store_floats(np.asarray(array), GRAPH_TYPES[self.elem])

    def real(self, array: Array) -> Array:
        """What memory holds as an array of the model."""
        found = array if self.affine is None else self.affine.real(array)
        return np.asarray(found.astype(GRAPH_TYPES[self.dtype].dtype))

    def __str__(self) -> str:
        scale = "" if self.affine is None else f", {self.affine}"
        return f"{self.name}: {self.dtype} as {self.elem}{scale}"


def ports_of(
    source: Module, module: Module, rewritten: Rewritten, imported: QuantisedPort
) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs, and outputs with the next values of states behind them."""
    inputs = []
    for op in module.inputs:
        name = str(op.attributes["name"])
        port = _port(
            name, source.input_types[name].dtype, rewritten.stored[op.value_id], rewritten.module
        )
        inputs.append(_as_imported(port, imported.inputs.get(name)))
    values = (*source.outputs, *(state.output for state in source.states))
    names = (*source.output_names, *(f"state {state.name}" for state in source.states))
    outputs = [
        _as_imported(
            _port(name, source.by_id[own].type.dtype, stored, rewritten.module),
            imported.outputs.get(index),
        )
        for index, (name, own, stored) in enumerate(
            zip(names, values, rewritten.outputs, strict=True)
        )
    ]
    return tuple(inputs), tuple(outputs)


def _port(name: str, dtype: str, stored: QuantisedValue, module: Module) -> Port:
    elem = module.by_id[stored.value].type.dtype
    if stored.affine is None:
        return Port(name, dtype, elem)
    return Port(name, dtype, elem, stored.affine.scale, stored.affine.zero)


def _as_imported(port: Port, imported: ImportedScales | None) -> Port:
    """A port of a model whose own integers are there: the host moves them, and looks no further."""
    if imported is None:
        return port
    return Port(port.name, imported.dtype, port.elem, imported.shift.scale, imported.shift.zero)


def stored_inputs(module: Module, rewritten: Rewritten, sample: Sample) -> Sample:
    """Inputs of the float module as the module on integers takes them."""
    found: Sample = {}
    for op in module.inputs:
        name = str(op.attributes["name"])
        port = _port(name, op.type.dtype, rewritten.stored[op.value_id], rewritten.module)
        found[name] = port.to_memory(sample[name])
    return found

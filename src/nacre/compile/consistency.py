"""Whether the manifest of a bundle speaks of its program and its model."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle import Bundle
from nacre.compile.manifest import Port, Result
from nacre.core.module import TensorType


def mismatch(bundle: Bundle) -> str | None:
    """The first thing in which a manifest contradicts what it stands beside."""
    return next(_mismatches(bundle), None)


def _mismatches(bundle: Bundle) -> Iterator[str]:
    manifest, source = bundle.manifest, bundle.source
    if [port.name for port in manifest.inputs] != list(source.input_types):
        yield "names other inputs than the model has"
        return
    values = (*source.outputs, *(state.output for state in source.states))
    if len(manifest.outputs) != len(values):
        yield f"names {len(manifest.outputs)} outputs, the model has {len(values)}"
        return
    states = [(s.input, s.output) for s in manifest.states]
    count = len(source.outputs)
    if states != [(state.name, count + index) for index, state in enumerate(source.states)]:
        yield "names other states than the model has"
    types = [*source.input_types.values(), *(source.by_id[value].type for value in values)]
    sizes = bundle.buffer_sizes
    for port, type_ in zip((*manifest.inputs, *manifest.outputs), types, strict=True):
        yield from _port(port, type_, sizes)
    if sizes.get(manifest.weights or "", 0) != len(bundle.weights):
        yield "does not say where the weights go"
    for layer in manifest.layers:
        for result in layer.results:
            yield from _result(layer.name, result, sizes)


def _result(layer: str, result: Result, sizes: dict[str, int]) -> Iterator[str]:
    element, size = GRAPH_TYPES.get(result.elem), sizes.get(result.buffer)
    is_odd = len(result.shape) != len(result.strides) or min(result.strides, default=0) < 0
    if element is None or size is None or is_odd or min(result.shape, default=1) < 1:
        yield f"has a layer `{layer}` that leaves its result nowhere"
        return
    reach = 1 + sum((n - 1) * s for n, s in zip(result.shape, result.strides, strict=True))
    if not 0 <= result.offset <= size - reach * element.bits // 8:
        yield f"puts the result of layer `{layer}` outside of `{result.buffer}`"


def _port(port: Port, type_: TensorType, sizes: dict[str, int]) -> Iterator[str]:
    element = GRAPH_TYPES.get(port.elem)
    if TensorType(port.dtype, port.shape) != type_ or element is None:
        yield f"gives `{port.name}` another type than the model"
    elif sizes.get(port.buffer) != prod(port.shape) * element.bits // 8:
        yield f"gives `{port.name}` a buffer of another size"

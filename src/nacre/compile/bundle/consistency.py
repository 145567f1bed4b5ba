"""Whether the manifest of a bundle speaks of its program, its model and its legal module.

What stands in a manifest decides what `validate` compares: a task that no layer names, or a value
at another place, would go unnoticed there. So it has to agree here, before a bundle is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite, prod

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.manifest import LayerEntry, Port, Result
from nacre.compile.partition.layers import element_bytes
from nacre.core.module import Module, TensorType

_MOST_DDR_BYTES = 1 << 48
_MOVES = frozenset({"transfer", "store"})


def mismatch(bundle: CompiledModel) -> str | None:
    """The first thing in which a manifest contradicts what it stands beside."""
    problem = next(_figures(bundle), None)
    if problem is not None:
        return problem
    try:
        _ = bundle.runnable_program.plan  # which is checked, and may be of no program
    except InputError as error:
        return f"comes with a program that cannot run: {error.diagnostics[0].message}"
    for group in (_ports, _program, _layers):
        problem = next(group(bundle), None)
        if problem is not None:
            return problem
    return None


def _figures(bundle: CompiledModel) -> Iterator[str]:
    """Numbers that make no sense by themselves."""
    manifest = bundle.manifest
    if not 0 < manifest.ddr_bytes <= _MOST_DDR_BYTES:
        yield f"gives DDR {manifest.ddr_bytes} bytes"
    if not 0 <= manifest.l2_bound <= manifest.l2_peak:
        yield (
            f"says that L2 holds {manifest.l2_peak} bytes at most, of which {manifest.l2_bound} "
            "are alive at once"
        )


def _ports(bundle: CompiledModel) -> Iterator[str]:
    manifest, source, legal = bundle.manifest, bundle.source, bundle.legal
    if [port.name for port in manifest.inputs] != list(source.input_types):
        yield "names other inputs than the model has"
        return
    if set(legal.input_types) != set(source.input_types):
        yield "stands beside a legal module with other inputs"
        return
    values = (*source.outputs, *(state.output for state in source.states))
    if not len(manifest.outputs) == len(values) == len(legal.outputs):
        yield f"names {len(manifest.outputs)} outputs, the model has {len(values)}"
        return
    names = Counter(port.name for port in manifest.outputs)
    if "" in names or max(names.values(), default=1) > 1:
        yield "gives an output no name, or one that another has"
    states = [(s.input, s.output) for s in manifest.states]
    count = len(source.outputs)
    if states != [(state.name, count + index) for index, state in enumerate(source.states)]:
        yield "names other states than the model has"
    types = [*source.input_types.values(), *(source.by_id[value].type for value in values)]
    inner = [
        *(legal.input_types[name] for name in source.input_types),
        *(legal.by_id[value].type for value in legal.outputs),
    ]
    sizes = bundle.buffer_sizes
    for port, mine, legal_type in zip(
        (*manifest.inputs, *manifest.outputs), types, inner, strict=True
    ):
        yield from _port(port, mine, legal_type, sizes)


def _port(
    port: Port, type_: TensorType, legal_type: TensorType, sizes: dict[str, int]
) -> Iterator[str]:
    if TensorType(port.dtype, port.shape) != type_:
        yield f"gives `{port.name}` another type than the model"
    elif port.axes is not None and sorted(port.axes) != list(range(type_.rank)):
        yield f"gives `{port.name}` the axes {list(port.axes)}, which are no order of {type_.rank}"
    elif not _matches_memory_type(port.elem, port.memory_shape, legal_type):
        yield f"gives `{port.name}` another type in memory than the legal module"
    elif sizes.get(port.buffer) != prod(port.shape) * element_bytes(port.elem):
        yield f"gives `{port.name}` a buffer of another size"
    elif (port.scale is None) != (port.zero is None):
        yield f"gives `{port.name}` a scale without a zero point, or the reverse"
    elif port.scale is not None and not (isfinite(port.scale) and port.scale > 0):
        yield f"gives `{port.name}` the scale {port.scale}"
    elif port.zero is not None and not _is_in_range(port.zero, port.elem):
        yield f"gives `{port.name}` the zero point {port.zero}, which {port.elem} does not have"


def _is_in_range(number: int, elem: str) -> bool:
    """Whether an integer type has a number."""
    element = GRAPH_TYPES[elem]
    return element.is_integer and element.lowest <= number <= element.highest


def _matches_memory_type(elem: str, shape: tuple[int, ...], legal_type: TensorType) -> bool:
    """Whether a value of the legal module lies in memory like this: truth values are bytes."""
    return (
        elem in (legal_type.dtype, "u8" if legal_type.dtype == "bool" else "")
        and shape == legal_type.shape
    )


def _program(bundle: CompiledModel) -> Iterator[str]:
    """Every task belongs to one layer, and weights have their place."""
    manifest, program = bundle.manifest, bundle.runnable_program
    if manifest.device != program.device.name:
        yield f"is for the device `{manifest.device}`, the program for `{program.device.name}`"
    if bundle.buffer_sizes.get(manifest.weights or "", 0) != len(bundle.weights):
        yield "does not say where the weights go"
    named = Counter(t for layer in manifest.layers for t in (*layer.tasks, *layer.loads))
    written = Counter(task.name for task in program.plan.program.tasks)
    for token in named:
        if named[token] > 1:
            yield f"names the task `{token}` twice"
        if token not in written:
            yield f"names a task `{token}` that the program does not have"
    for token in written:
        if token not in named:
            yield f"has no layer for the task `{token}` of the program"


def _layers(bundle: CompiledModel) -> Iterator[str]:
    """Layers compute operations of the legal module and leave values of it where they fit."""
    inside = {name for layer in bundle.manifest.layers for name in layer.members}
    for name, values in bundle.manifest.member_values.items():
        if name not in inside or not all(value in bundle.legal.by_id for value in values):
            yield f"has a layer `{name}` inside of another that makes what is nowhere"
    if not all(one.value in bundle.legal.by_id for one in bundle.manifest.stands_for):
        yield "says what a value stands for that is nowhere"
    names = Counter(layer.name for layer in bundle.manifest.layers)
    computing = {
        task.name for task in bundle.runnable_program.plan.program.tasks if task.op not in _MOVES
    }
    for layer in bundle.manifest.layers:
        if not layer.name or names[layer.name] > 1:
            yield f"has a layer `{layer.name}` without a name of its own"
        if layer.macs < 0:
            yield f"gives the layer `{layer.name}` {layer.macs} MACs"
        if not layer.tasks:
            yield f"has a layer `{layer.name}` without tasks"
        if not layer.results and not computing.isdisjoint(layer.tasks):
            yield f"has a layer `{layer.name}` that computes and leaves no result"
        yield from _origins(layer, bundle.source if bundle.has_reference else None, bundle.legal)
        own = {origin.legal for origin in layer.operations}
        tasks = computing.intersection((*layer.tasks, *layer.loads))
        if not (tasks.issuperset(layer.values) and own.issuperset(layer.values.values())):
            yield f"says of tasks of the layer `{layer.name}` that they make what is not in it"
        for result in layer.results:
            yield from _result(layer, result, bundle.legal, bundle.buffer_sizes)


def _origins(layer: LayerEntry, source: Module | None, legal: Module) -> Iterator[str]:
    for origin in layer.operations:
        found = legal.by_id.get(origin.legal)
        if found is None or found.opcode != origin.opcode:
            yield f"gives the layer `{layer.name}` an operation that the legal module does not have"
        elif source and origin.source is not None and origin.source not in source.by_id:
            yield f"takes `{origin.opcode}` %{origin.legal} from %{origin.source}, which is nowhere"


def _result(
    layer: LayerEntry, result: Result, legal: Module, sizes: dict[str, int]
) -> Iterator[str]:
    maker, size = legal.by_id.get(result.value), sizes.get(result.buffer)
    is_own = any(origin.legal == result.value for origin in layer.operations)
    if (
        maker is None
        or not is_own
        or not _matches_memory_type(result.elem, result.shape, maker.type)
    ):
        yield f"gives the layer `{layer.name}` a result that it does not make"
        return
    is_odd = len(result.shape) != len(result.strides) or min(result.strides, default=0) < 0
    if size is None or is_odd:
        yield f"has a layer `{layer.name}` that leaves its result nowhere"
        return
    reach = 1 + sum((n - 1) * s for n, s in zip(result.shape, result.strides, strict=True))
    if not 0 <= result.offset <= size - reach * element_bytes(result.elem):
        yield f"puts the result of layer `{layer.name}` outside of `{result.buffer}`"
    elif result.offset % element_bytes(result.elem) or not _has_no_overlap(result):
        yield f"lets elements of the result of layer `{layer.name}` overlap"


def _has_no_overlap(result: Result) -> bool:
    """Whether every element has its own place: strides step over what lies inside."""
    reach = 1
    pairs = zip(result.strides, result.shape, strict=True)
    for stride, size in sorted((s, n) for s, n in pairs if n > 1):
        if stride < reach:
            return False
        reach = stride * (size - 1) + reach
    return True

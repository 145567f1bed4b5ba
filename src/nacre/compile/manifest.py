"""What a bundle says about itself: inputs, outputs, layers, and where every task comes from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nacre._version import __version__
from nacre.compile.legalise import Legal
from nacre.compile.options import Options, Precision
from nacre.compile.partition import Layer, Partition
from nacre.compile.place import WEIGHTS, Placement
from nacre.compile.program import Program, tasks_of
from nacre.core.module import CoreOperation, Module, TensorType

FORMAT = 1


class Port(Struct, frozen=True, forbid_unknown_fields=True):
    """An input or output. Where `dtype` and `elem` differ, the host casts."""

    name: str
    buffer: str
    dtype: str  # in the model
    elem: str  # in memory
    shape: tuple[int, ...]


class StatePort(Struct, frozen=True, forbid_unknown_fields=True):
    """An input that takes the value of an output in the next run."""

    input: str
    output: int  # by its place among the outputs


class Origin(Struct, frozen=True, forbid_unknown_fields=True):
    """An operation of the legalised module, and the one of the model that it comes from."""

    legal: int
    opcode: str
    source: int | None
    node: str | None = None  # as the model calls it


class Result(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a layer's tensor lies when the layer is done."""

    value: int
    buffer: str
    offset: int
    elem: str
    shape: tuple[int, ...]


class LayerEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A layer: its operations, its tensor, the tokens of its tasks."""

    name: str
    operations: tuple[Origin, ...]
    macs: int
    result: Result
    tasks: tuple[str, ...]


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything about a bundle that is neither text nor weights."""

    format: int = FORMAT
    nacre: str
    device: str
    precision: Precision
    ddr_bytes: int
    weights: str | None  # the buffer that takes them
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]  # those that feed state last
    states: tuple[StatePort, ...]
    notes: tuple[str, ...]
    l2_peak: int
    layers: tuple[LayerEntry, ...]
    sha256: Mapping[str, str] = {}  # of the files beside it


def manifest(
    source: Module,
    partition: Partition,
    placement: Placement,
    program: Program,
    options: Options,
) -> Manifest:
    """The manifest of a compiled model."""
    tokens: dict[str, list[str]] = {}
    for task in tasks_of(program.statements):
        tokens.setdefault(task.debug, []).append(task.token)
    return Manifest(
        nacre=__version__,
        device=options.device.name,
        precision=options.precision,
        ddr_bytes=options.ddr_bytes,
        weights=WEIGHTS if placement.weights else None,
        inputs=_inputs(source, partition, placement),
        outputs=_outputs(source, partition, placement),
        states=tuple(
            StatePort(state.name, len(source.outputs) + index)
            for index, state in enumerate(source.states)
        ),
        notes=partition.legal.notes,
        l2_peak=placement.l2_peak,
        layers=tuple(_layer(x, source, partition, placement, tokens) for x in partition.layers),
    )


def _inputs(source: Module, partition: Partition, placement: Placement) -> tuple[Port, ...]:
    legal = partition.legal.module.input_types
    return tuple(
        Port(name, placement.inputs[name], type_.dtype, legal[name].dtype, type_.shape)
        for name, type_ in source.input_types.items()
    )


def _outputs(source: Module, partition: Partition, placement: Placement) -> tuple[Port, ...]:
    values = (*source.outputs, *(state.output for state in source.states))
    own: list[TensorType] = [source.by_id[value].type for value in values]
    names = (*source.output_names, *(f"state {state.name}" for state in source.states))
    legal = partition.legal.module.output_types
    return tuple(
        Port(name, buffer, mine.dtype, theirs.dtype, mine.shape)
        for name, buffer, mine, theirs in zip(names, placement.outputs, own, legal, strict=True)
    )


def _layer(
    layer: Layer,
    source: Module,
    partition: Partition,
    placement: Placement,
    tokens: Mapping[str, list[str]],
) -> LayerEntry:
    where, type_ = placement.tensors[layer.result], partition.legal.module.by_id[layer.result].type
    return LayerEntry(
        layer.name,
        tuple(_origin(op, source, partition.legal) for op in layer.operations),
        layer.geometry.macs,
        Result(layer.result, where.buffer, where.offset, type_.dtype, type_.shape),
        tuple(tokens.get(layer.name, [])),
    )


def _origin(op: CoreOperation, source: Module, legal: Legal) -> Origin:
    value = legal.origins.get(op.value_id)
    nodes = source.labels.nodes if source.labels is not None else {}
    return Origin(op.value_id, op.opcode, value, nodes.get(value) if value is not None else None)

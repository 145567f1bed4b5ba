"""What a bundle says about itself: inputs, outputs, layers, and where every task comes from."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nacre._version import __version__
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.legal_module import Axes, Legal
from nacre.compile.legalise.narrowing import store_floats
from nacre.compile.legalise.origins import legal_operation_text, nodes_of
from nacre.compile.legalise.stands_for import values_by_source
from nacre.compile.options import Options, Precision
from nacre.compile.partition.layers import Layer, element_bytes
from nacre.compile.partition.stage import Partition
from nacre.compile.placement.ports import WEIGHTS
from nacre.compile.placement.stage import Placement
from nacre.compile.program import Compute, Copy, Program, tasks_of
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.ports import Port as StoredPort
from nacre.compile.quantise.quantiser import Quantised
from nacre.core.evaluation.plan import macs_of
from nacre.core.module import CoreOperation, Labels, Module, TensorType
from nacre.core.values import Array

FORMAT = 5
FORMATS = (4, FORMAT)  # that are read: 4 has all weights in one file


class Port(Struct, frozen=True, forbid_unknown_fields=True):
    """An input or output. Where `dtype` and `elem` differ, the host casts, or quantises.

    Where memory has the axes in another order than the model, the host transposes, too.
    """

    name: str
    buffer: str
    dtype: str  # in the model
    elem: str  # in memory
    shape: tuple[int, ...]
    scale: float | None = None
    zero: int | None = None
    axes: Axes | None = None  # by the axis in memory, which one it is in the model

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The shape as the device has it."""
        return tuple(self.shape[axis] for axis in self.axes or range(len(self.shape)))

    def to_memory(self, array: Array) -> Array:
        """An array of the model as the device holds it; what is finite stays so."""
        if self.axes is not None:
            array = array.transpose(self.axes)
        if self._affine is not None:
            return self._affine.quantise(array)
        return store_floats(array, GRAPH_TYPES[self.elem])

    def in_model_order(self, elements: Array) -> Array:
        """The elements of a buffer in the shape that they have in the model."""
        array = elements.reshape(self.memory_shape)
        if self.axes is None:
            return array
        return np.ascontiguousarray(array.transpose(np.argsort(self.axes)))

    def real(self, array: Array) -> Array:
        """What the device holds as values of the model."""
        found = array if self._affine is None else self._affine.real(array)
        return np.asarray(found.astype(GRAPH_TYPES[self.dtype].dtype))

    @property
    def _affine(self) -> Affine | None:
        return None if self.scale is None else Affine(self.scale, self.zero or 0)


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
    also: tuple[str, ...] = ()  # other nodes whose work it does, as norms that went into weights


class Result(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a value lies when its layer is done; strides in elements."""

    value: int
    buffer: str
    offset: int
    elem: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class LayerEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A layer: its operations, the values that leave it, the tokens of its tasks."""

    name: str
    operations: tuple[Origin, ...]
    macs: int
    results: tuple[Result, ...]
    tasks: tuple[str, ...]
    loads: tuple[str, ...] = ()  # of weights and what tiles share, which may come earlier
    escaped: tuple[str, ...] = ()  # what runs by name on the VPU, and why
    values: Mapping[str, int] = {}  # by the task that computes, what it makes or prepares
    members: tuple[str, ...] = ()  # layers that run together in it, tile by tile

    @property
    def nodes(self) -> tuple[str, ...]:
        """As the model calls what it does: the main node of each operation first."""
        mains = [origin.node for origin in self.operations if origin.node is not None]
        others = [name for origin in self.operations for name in origin.also]
        return tuple(dict.fromkeys((*mains, *others)))


class LayerLoss(Struct, frozen=True, forbid_unknown_fields=True):
    """How well integers have what a layer makes, or its weights: signal over noise, dB."""

    layer: str
    opcode: str
    sqnr: float
    elem: str = "i8"  # what it is stored in


class StandIn(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A value of the legal module, and the one of the model that it stands for."""

    value: int
    source: int  # its number in what was legalised
    node: str  # as the model calls what makes it; empty where it has no name


class WeightsSegment(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A part of the weights that is elements of a constant of the legal module."""

    offset: int  # in bytes
    value: int
    start: int  # of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements


class StoredWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """How the weights follow from constants; the rest of them is in a file."""

    size: int
    segments: tuple[WeightsSegment, ...] = ()


class CompressedWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """What compression saves."""

    form: str  # exact, or cluster
    blocks: int  # that are compressed
    of: int  # so many
    saved: Mapping[str, int] = {}  # bytes, by layer
    clustered: int = 0  # constants that were clustered

    @property
    def saved_bytes(self) -> int:
        """Of all layers."""
        return sum(self.saved.values())


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
    l2_bound: int  # the most bytes of L2 that are alive at once
    layers: tuple[LayerEntry, ...]
    losses: tuple[LayerLoss, ...] = ()  # on the calibration data
    member_values: Mapping[str, tuple[int, ...]] = {}  # of layers inside others
    macs: int | None = None  # of the model as it came, as `nacre core stats` counts them
    accuracy_db: float | None = None  # of outputs on integers, where one was asked for
    fallback: bool = True  # whether layers might stay floats for it
    precision_map: Mapping[str, str] = {}  # layers whose precision was asked for
    compression: CompressedWeights | None = None  # of weights, where it was asked for
    stands_for: tuple[StandIn, ...] = ()  # values of the legal module that are of the model
    stored: StoredWeights | None = None  # in a folder: where its weights come from
    sha256: Mapping[str, str] = {}  # of the files beside it, and of the rest of this one

    @property
    def plan_macs(self) -> int:
        """Of the plan: forms for the device may take more than the model does, or fewer."""
        return sum(layer.macs for layer in self.layers)

    @property
    def macs_text(self) -> str:
        """The model's, and the plan's where they are others."""
        if self.macs is None or self.macs == self.plan_macs:
            return f"{self.plan_macs:,} MACs"
        return f"{self.macs:,} MACs ({self.plan_macs:,} in the plan)"


def manifest(
    source: Module,
    partition: Partition,
    placement: Placement,
    program: Program,
    options: Options,
    quantised: Quantised | None = None,
) -> Manifest:
    """The manifest of a compiled model."""
    tokens: dict[str, list[Copy | Compute]] = {}
    for task in tasks_of(program.statements):
        tokens.setdefault(task.debug, []).append(task)
    # A task that no layer has would make a bundle that cannot be read.
    assert tokens.keys() <= {layer.title for layer in partition.layers}
    return Manifest(
        nacre=__version__,
        device=options.device.name,
        precision=options.precision,
        ddr_bytes=options.ddr_bytes,
        weights=WEIGHTS if placement.weights else None,
        inputs=_with_scales(
            _inputs(source, partition, placement), quantised.inputs if quantised else ()
        ),
        outputs=_with_scales(
            _outputs(source, partition, placement), quantised.outputs if quantised else ()
        ),
        states=tuple(
            StatePort(state.name, len(source.outputs) + index)
            for index, state in enumerate(source.states)
        ),
        notes=partition.legal.notes,
        l2_peak=placement.l2_peak,
        l2_bound=placement.l2_bound,
        losses=_losses(quantised, partition.legal),
        macs=sum(macs_of(op, source) for op in source.operations),
        accuracy_db=options.accuracy_db,
        fallback=options.fallback,
        precision_map={
            f"%{layer}" if isinstance(layer, int) else layer: own
            for layer, own in options.precision_map.items()
        },
        compression=_compression(partition.legal, placement, options),
        layers=tuple(_layer(x, source, partition, placement, tokens) for x in partition.layers),
        stands_for=_stands_for(partition.legal),
    )


def _stands_for(legal: Legal) -> tuple[StandIn, ...]:
    labels = (legal.source and legal.source.labels) or Labels()
    found = sorted((value, number) for number, value in values_by_source(legal).items())
    return tuple(
        StandIn(value, number, next(iter(labels.names(number)), "")) for value, number in found
    )


def _compression(legal: Legal, placement: Placement, options: Options) -> CompressedWeights | None:
    if options.compress is None:
        return None
    counts = len(set(map(id, placement.compressed.values()))), len(set(placement.blocks.values()))
    return CompressedWeights(options.compress, *counts, placement.saved, legal.clustered)


def _losses(quantised: Quantised | None, legal: Legal) -> tuple[LayerLoss, ...]:
    if quantised is None:
        return tuple(LayerLoss(*loss) for loss in legal.losses if isfinite(loss.sqnr))
    return tuple(
        LayerLoss(loss.layer, loss.opcode, loss.sqnr, loss.elem)
        for loss in quantised.report.layers
        if loss.sqnr is not None and isfinite(loss.sqnr)
    )


def _with_scales(ports: tuple[Port, ...], stored: tuple[StoredPort, ...]) -> tuple[Port, ...]:
    """Ports with the scales that the host uses."""
    by_name = {port.name: port for port in stored}
    return tuple(
        replace(port, scale=by_name[port.name].scale, zero=by_name[port.name].zero)
        if port.name in by_name
        else port
        for port in ports
    )


def _inputs(source: Module, partition: Partition, placement: Placement) -> tuple[Port, ...]:
    legal, axes = partition.legal.module.input_types, partition.legal.input_axes
    return tuple(
        Port(
            name,
            placement.inputs[name],
            type_.dtype,
            legal[name].dtype,
            type_.shape,
            axes=axes.get(name),
        )
        for name, type_ in source.input_types.items()
    )


def _outputs(source: Module, partition: Partition, placement: Placement) -> tuple[Port, ...]:
    values = (*source.outputs, *(state.output for state in source.states))
    own: list[TensorType] = [source.by_id[value].type for value in values]
    names = (*source.output_names, *(f"state {state.name}" for state in source.states))
    elems = [partition.tensors[view.tensor].elem for view in partition.outputs]
    axes = partition.legal.output_axes
    ports = zip(names, placement.outputs, own, elems, strict=True)
    return tuple(
        Port(name, buffer, mine.dtype, elem, mine.shape, axes=axes.get(index))
        for index, (name, buffer, mine, elem) in enumerate(ports)
    )


def _layer(
    layer: Layer,
    source: Module,
    partition: Partition,
    placement: Placement,
    tokens: Mapping[str, list[Copy | Compute]],
) -> LayerEntry:
    tasks = tokens.get(layer.name, [])
    return LayerEntry(
        layer.name,
        tuple(_origin(op, partition.legal, source) for op in layer.operations),
        layer.macs,
        tuple(_result(made.value, partition, placement) for made in layer.results),
        tuple(task.token for task in tasks if not task.ahead),
        tuple(task.token for task in tasks if task.ahead),
        tuple(
            f"{legal_operation_text(partition.legal, op)}: {partition.legal.escaped[op.value_id]}"
            for op in layer.operations
            if op.value_id in partition.legal.escaped
        ),
        {
            task.token: task.value
            for task in tasks
            if isinstance(task, Compute) and task.value is not None
        },
        layer.members,
    )


def _result(value: int, partition: Partition, placement: Placement) -> Result:
    view = partition.views[value]
    where, tensor = placement.tensors[view.tensor], partition.tensors[view.tensor]
    offset = where.offset + view.offset * element_bytes(tensor.elem)
    return Result(value, where.buffer, offset, tensor.elem, view.shape, view.strides)


def _origin(op: CoreOperation, legal: Legal, source: Module) -> Origin:
    numbers = legal.origins.get(op.value_id, ())
    first, *others = nodes_of(legal, (op.value_id,)) or (None,)
    # Of a model that came quantised, values are numbered anew; nodes keep their names.
    is_own = legal.source is not None and legal.source.operations is source.operations
    number = numbers[0] if numbers and is_own else None
    return Origin(op.value_id, op.opcode, number, first, tuple(filter(None, others)))

"""The question which tiles of a layer are the cheapest, as a value that knows no names and no data.

Layers of one shape between neighbours of one kind ask the same question, and several times each:
with and without tensors that stay in L1, alone and in groups. It is answered once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from nacre.compile.options import Options
from nacre.compile.partition.layers import Access, Layer, Operand, PackedWeights, Result, Step
from nacre.compile.partition.stage import Partition
from nacre.compile.tiling.costs import Surroundings
from nacre.compile.tiling.residency import Residency
from nacre.compile.tiling.spaces import ALIGN
from nacre.compile.tiling.tiling import columns_of_engine, keeps_weights
from nacre.core.values import Array
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import TimingProfile

_MOST_SLOTS = 8
_SPARE_TOKENS = 5  # for weights and what is loaded ahead


@dataclass(frozen=True)
class TileMachine:
    """What tiles are chosen for: a device, and how much a plan may have in flight on it."""

    digest: str
    engines: int
    most_slots: int
    free_slots: int  # tiles in flight for which there are always tokens
    most_tokens: int
    device: Device = field(compare=False)
    profile: TimingProfile = field(compare=False)

    @staticmethod
    def of(options: Options, *, is_one_engine: bool) -> TileMachine:
        """The machine of a compilation, for layers that use all engines or the first."""
        device = options.device
        return TileMachine(
            device.digest,
            1 if is_one_engine else device.num_engines,
            1 if "slots" in options.disabled else _MOST_SLOTS,
            1 + (not options.token_reserve),
            max(1, (options.tokens - _SPARE_TOKENS) // (1 + options.token_reserve)),
            device,
            options.profile,
        )


@dataclass(frozen=True)
class TileProblem:
    """A layer as far as its tiles depend on it, where its tensors lie, and the room that it has."""

    key: Hashable  # all that is compared of the layer
    layer: Layer = field(compare=False)  # tensors have numbers from 0, weights no values
    around: Surroundings
    machine: TileMachine
    room: int  # bytes of L1
    next_weights: int  # bytes of the next layer's, which had better come before it begins
    narrow_columns: bool  # whether blocks have few columns
    is_first: bool = False  # nothing computes while its weights come


def tile_problem(
    layer: Layer,
    partition: Partition,
    options: Options,
    resident: Residency,
    next_weights: int = 0,
    *,
    narrow_columns: bool = False,
    is_first: bool = False,
) -> TileProblem:
    """What the tiles of a layer depend on."""
    plain, numbers = _without_names(layer)
    around = Surroundings(
        frozenset(n for t, n in numbers.items() if t in resident),
        frozenset(n for t, n in numbers.items() if partition.is_in_ddr(t)),
        resident.holds_weights(layer),
        _resident_columns(layer, resident, options),
        layer.packed is not None and layer.packed.key in partition.recurring_weights,
    )
    is_one_engine = bool(around.in_l1) or (around.has_weights and not around.kept_columns)
    machine = TileMachine.of(options, is_one_engine=is_one_engine)
    room = options.l1_bytes // ALIGN * ALIGN - resident.begin(layer)
    return TileProblem(
        _key(plain), plain, around, machine, room, next_weights, narrow_columns, is_first
    )


def _resident_columns(layer: Layer, resident: Residency, options: Options) -> int:
    """The columns whose weights each engine keeps, where they are shared out."""
    engines = options.device.num_engines
    if engines == 1 or not keeps_weights(layer) or not resident.holds_weights(layer):
        return 0
    return columns_of_engine(layer.columns, engines)


def _without_names(layer: Layer) -> tuple[Layer, dict[int, int]]:
    """A layer whose tensors are numbered as they appear, and the number of each."""
    numbers: dict[int, int] = {}

    def plain(access: Access) -> Access:
        number = numbers.setdefault(access.tensor, len(numbers))
        return replace(access, tensor=number, offset=0)

    return Layer(
        "",
        layer.main,
        (),
        layer.images,
        layer.rows,
        layer.columns,
        layer.cuts_columns,
        tuple(plain(access) for access in layer.operands),
        None if layer.packed is None else _without_values(layer.packed),
        layer.locals,
        tuple(_without_scales(step) for step in layer.steps),
        tuple(Result(r.local, 0, plain(r.access)) for r in layer.results),
        layer.window,
    ), numbers


def _without_values(packed: PackedWeights) -> PackedWeights:
    """Weights of the same shape that take no memory."""
    bias = None if packed.bias is None else _empty_array(packed.bias)
    groups = tuple(replace(part, array=_empty_array(part.array)) for part in packed.groups)
    return PackedWeights(
        _empty_array(packed.array), bias, packed.elem, packed.bias_elem, groups=groups
    )


def _empty_array(array: Array) -> Array:
    return np.broadcast_to(np.int8(0), array.shape)


def _without_scales(step: Step) -> Step:
    inputs = tuple(Operand(operand.local) for operand in step.inputs)
    return replace(step, inputs=inputs, output=Operand(step.output.local), attributes={})


def _key(plain: Layer) -> Hashable:
    """All that two layers must have in common to have the same tiles."""
    packed = plain.packed
    weights = packed and tuple((part.array.shape, part.elem) for part in packed.parts)
    steps = tuple(
        (s.nem, s.work, s.depth, s.in_place, s.repeats, s.inputs, s.output) for s in plain.steps
    )
    sizes = (plain.main, plain.images, plain.rows, plain.columns, plain.cuts_columns)
    return sizes, plain.operands, weights, plain.locals, steps, plain.results, plain.window

"""What the tasks of a tile cost, by the figures of the device: columns with a row for each size."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.elements import GRAPH_TYPES
from nacre.base.term_columns import Column, IntOrColumn, Values
from nacre.compile.options import Options
from nacre.compile.partition.layers import (
    Access,
    Axes,
    Layer,
    PackedWeights,
    Step,
    TileCut,
    element_bytes,
)
from nacre.compile.tiling.tiling import columns_of_engine, keeps_weights
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.array import ProductShape, shape_cycles
from nacre.nem.run.timing.profile import TimingProfile

LEAST_LOAD = 128  # cycles of a part of a load that are worth a task of their own

# Passes over the elements.
_PASSES = {"softmax": 3, "log_softmax": 3, "layernorm": 2, "rmsnorm": 2}

Cycles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TileSizes:
    """Sizes of tiles, a row for each; all of them cut the same axes of a layer."""

    rows: Column
    x_rows: Column
    columns: Column
    cut: TileCut

    @staticmethod
    def of(layer: Layer, rows: Column, columns: Column, cut: TileCut) -> TileSizes:
        """Tiles of so many rows and columns."""
        window = layer.window
        x_rows = rows
        if window is not None:
            x_rows = np.minimum((rows - 1) * window.stride + window.height, window.in_rows)
        return TileSizes(rows, x_rows, columns, cut)

    def shape(self, axes: Axes) -> tuple[Values, ...]:
        """The sizes of axes in every tile."""
        return tuple(axis if isinstance(axis, int) else getattr(self, axis) for axis in axes)

    def elements(self, axes: Axes) -> Values:
        """How many elements a value has in every tile."""
        return prod(self.shape(axes))


@dataclass(frozen=True, eq=False)
class TileCosts:
    """Cycles of one tile on each unit, from its first byte to its last, and of weights."""

    nmu: Cycles
    cstl: Cycles
    vpu: Cycles
    dma: Cycles
    sdma: Cycles
    chain: Cycles
    longest: Cycles  # load of it, by one unit
    paths: Cycles  # units that bring one load, where a single tile is in flight
    weights: Cycles  # a block, from when it is asked for
    weight_work: Cycles  # of a block, on the units that bring it to L1
    weight_ddr: Cycles  # the same, on those that bring it from DDR
    shared: Cycles  # what is loaded once for all tiles


@dataclass(frozen=True)
class Surroundings:
    """Where the tensors of a layer lie: the others are in L2."""

    in_l1: frozenset[int] = frozenset()
    in_ddr: frozenset[int] = frozenset()
    has_weights: bool = False  # in L1, brought by another layer
    kept_columns: int = 0  # whose weights each engine keeps in L1; 0: the first has all of them
    weights_in_l2: bool = False  # which several layers use


def tile_costs(
    layer: Layer, sizes: TileSizes, around: Surroundings, device: Device, profile: TimingProfile
) -> TileCosts:
    """What one whole tile costs. What travels between DDR and L1 occupies an sDMA and a DMA."""
    work = {unit: np.zeros(len(sizes.rows)) for unit in ("NMU", "CSTL", "VPU", "DMA", "sDMA")}
    longest, shared, weights, to_l1, from_ddr = (np.zeros(len(sizes.rows)) for _ in range(5))
    fixed = layer.fixed_locals(sizes.cut)
    loads, has_outside = 0, False
    for local, access in enumerate(layer.operands):
        if access.stays or access.tensor in around.in_l1:
            continue
        outside = access.tensor in around.in_ddr
        took = copy_cycles(access, sizes, profile, outside)
        if local in fixed:
            shared += took
            continue
        work["DMA"] += took
        loads, has_outside = loads + 1, has_outside or outside
        if outside:
            work["sDMA"] += took
        longest = np.maximum(longest, took)
    for step in layer.steps:
        if step.output.local not in fixed:
            unit, cycles = step_cycles(step, layer, sizes, profile)
            work[unit] += cycles
    chain = longest + work["NMU"] + work["CSTL"] + work["VPU"]
    for result in layer.results:
        if result.access.tensor in around.in_l1:
            continue
        outside = result.access.tensor in around.in_ddr
        took = copy_cycles(result.access, sizes, profile, outside)
        chain += took
        for unit in ("DMA", "sDMA") if outside else ("CSTL",):
            work[unit] += took
    if layer.packed is not None and not around.has_weights:
        weights += weight_cycles(layer.packed, sizes.columns, device, profile)
        to_l1 += weight_work(layer.packed, sizes.columns, profile)
        if not around.weights_in_l2:
            from_ddr += to_l1
    return TileCosts(
        work["NMU"], work["CSTL"], work["VPU"], work["DMA"], work["sDMA"], chain, longest,
        _units_of_load(loads, has_outside, device, longest), weights, to_l1, from_ddr, shared,
    )  # fmt: skip


def _units_of_load(loads: int, has_outside: bool, device: Device, longest: Cycles) -> Cycles:
    """Units that bring one load of a tile; what comes from DDR, from a share of those there."""
    units = load_units(device)
    if has_outside:
        units = min(units, device.count("sDMA") // device.num_engines)
    return np.minimum(max(1, units // max(1, loads)), np.maximum(1, longest // LEAST_LOAD))


def load_units(device: Device) -> int:
    """Units that may bring parts of one load; a single engine has work for its DMAs."""
    return device.count("DMA") if device.num_engines > 1 else 1


def layer_weight_cycles(layer: Layer, options: Options) -> int:
    """How long all weights of a layer are on their way; 0 where it has none."""
    if layer.packed is None:
        return 0
    columns = layer.columns
    if keeps_weights(layer):
        columns = columns_of_engine(columns, options.device.num_engines)
    return weight_cycles(layer.packed, columns, options.device, options.profile)


def weight_cycles(
    packed: PackedWeights, columns: IntOrColumn, device: Device, profile: TimingProfile
) -> IntOrColumn:
    """How long the weights of some columns are on their way to L1.

    On a device of several engines from L2, where they are for all of them by then.
    """
    unit, paths = "DMA", device.count("DMA")
    if device.num_engines == 1:
        unit, paths = "sDMA", min(device.count("sDMA"), paths)
    width = max(1, paths) * profile.at(unit, "bandwidth")
    return profile.at(unit, "latency") + -(-packed.block_bytes(columns) // width)


def weight_work(packed: PackedWeights, columns: Column, profile: TimingProfile) -> Column:
    """How long one unit would be busy with the weights of some columns."""
    size = packed.block_bytes(columns)
    return profile.at("sDMA", "latency") + -(-size // profile.at("sDMA", "bandwidth"))


def copy_cycles(access: Access, sizes: TileSizes, profile: TimingProfile, outside: bool) -> Values:
    """How long a load or a store of a tile takes; from or to DDR, if `outside`."""
    unit = "sDMA" if outside else "DMA"
    shape = sizes.shape(access.axes)
    run = run_lengths(shape, access.strides)
    run_cycles = -(-run * element_bytes(access.elem) // profile.at(unit, "bandwidth"))
    return profile.at(unit, "latency") + prod(shape) // run * run_cycles


def run_lengths(shape: tuple[Values, ...], strides: tuple[int, ...]) -> Values:
    """How many elements lie behind each other in a tensor of which tiles are parts."""
    run: Values = 1
    is_open: Any = True  # no axis further inside has a gap
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if isinstance(size, int) and size == 1:
            continue
        joins = is_open & (stride == run)
        is_open = is_open & (joins | np.equal(size, 1))
        run = np.where(joins, run * size, run)
    return run


def step_cycles(
    step: Step, layer: Layer, sizes: TileSizes, profile: TimingProfile
) -> tuple[str, Values]:
    """The unit of a step of a tile, and how long it takes."""
    count = sizes.elements(layer.locals[step.output.local].axes)
    if step.work == "macs":
        x = GRAPH_TYPES[layer.locals[step.inputs[0].local].elem]
        rate = profile.macs_per_two_cycles(x.bits, is_float=x.kind == "float")
        shape = _product_shape(step, layer, sizes)
        busy = shape_cycles(shape, count * step.depth, rate, profile)
        return "NMU", profile.at("NMU", "latency") + busy
    if step.work == "scalar" or step.nem in ("quantize", "dequantize"):
        return "VPU", profile.at("VPU", "latency") + -(
            -8 * count // profile.at("VPU", "throughput")
        )
    passes = _PASSES.get(step.nem, 1)
    if step.work == "pool" and layer.window is not None:
        passes = prod(layer.window.kernel)
    throughput = profile.at("CSTL", "eltwise_throughput")
    return "CSTL", profile.at("CSTL", "latency") + -(-passes * count // throughput)


def _product_shape(step: Step, layer: Layer, sizes: TileSizes) -> ProductShape:
    """The product of a tile as the array sees it: what it has too much of places costs, too."""
    result, x = layer.locals[step.output.local], layer.locals[step.inputs[0].local]
    *places, channels = sizes.shape(result.axes)
    is_window = layer.window is not None
    *outer, height, width = (1, *places) if is_window else (*places[:-1], 1, *places[-1:])
    taps = prod(layer.window.kernel) if layer.window is not None else 1
    depth = max(1, step.depth // taps)
    width_bytes = element_bytes(x.elem)
    return ProductShape(
        prod(outer),
        height,
        width,
        taps,
        depth,
        channels,
        sizes.shape(x.axes)[-1] * width_bytes,
        taps * depth * channels * width_bytes,
        is_window,
        is_window and bool(np.any(depth < sizes.shape(x.axes)[-1])),
    )

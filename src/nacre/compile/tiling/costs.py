"""What the tasks of one tile cost, by the figures of the device."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.options import Options
from nacre.compile.partition.layers import (
    Access,
    Layer,
    Packed,
    Size,
    Step,
    element_bytes,
    tile_shape,
)
from nacre.compile.partition.views import collapse_axes, dense
from nacre.nem.run.timing.profile import TimingProfile

if TYPE_CHECKING:
    from nacre.compile.partition.stage import Partition
    from nacre.compile.tiling.residency import Residency
    from nacre.compile.tiling.tiling import Tiling

# Passes over the elements.
_PASSES = {"softmax": 3, "log_softmax": 3, "layernorm": 2, "rmsnorm": 2}


@dataclass(frozen=True)
class TileCosts:
    """Cycles of one tile on each unit, from its first byte to its last, and of weights."""

    nmu: float
    cstl: float
    vpu: float
    dma: float
    sdma: float
    chain: float
    weights: float
    shared: float  # what is loaded once for all tiles


def tile_costs(
    layer: Layer, tiling: Tiling, partition: Partition, options: Options, resident: Residency
) -> TileCosts:
    """What one whole tile costs. What travels between DDR and L1 occupies an sDMA and a DMA."""
    profile = options.profile
    size = layer.size(min(tiling.rows, layer.rows), min(tiling.columns, layer.columns))
    dma = sdma = cstl = nmu = vpu = longest = shared = 0.0
    fixed = layer.fixed_locals(layer.cut(tiling.rows, tiling.columns))
    for local, access in enumerate(layer.operands):
        if access.stays or access.tensor in resident:
            continue
        outside = partition.is_in_ddr(access.tensor)
        took: float = _copy_cycles(access, size, profile, outside)
        if local in fixed:
            shared += took
            continue
        dma, sdma = dma + took, sdma + (took if outside else 0)
        longest = max(longest, took)
    for step in layer.steps:
        if step.output.local in fixed:
            continue
        unit, took = _step(step, layer, size, profile)
        nmu, cstl, vpu = (
            nmu + (took if unit == "NMU" else 0),
            cstl + (took if unit == "CSTL" else 0),
            vpu + (took if unit == "VPU" else 0),
        )
    chain = longest + nmu + cstl + vpu
    for result in layer.results:
        if result.access.tensor in resident:
            continue
        outside = partition.is_in_ddr(result.access.tensor)
        took = _copy_cycles(result.access, size, profile, outside)
        chain += took
        if outside:
            dma, sdma = dma + took, sdma + took
        else:
            cstl += took
    weights = 0.0
    if layer.packed is not None and not resident.holds_weights(layer):
        weights = weight_cycles(layer.packed, size.columns, options, tiling.engines)
    return TileCosts(nmu, cstl, vpu, dma, sdma, chain, weights, shared)


def weight_cycles(packed: Packed, columns: int, options: Options, engines: int = 1) -> float:
    """How long the weights of some columns are on their way from DDR to L1."""
    profile, device = options.profile, options.device
    paths = min(device.count("sDMA"), engines * device.count("DMA"))
    width = max(1, paths // engines) * profile.at("sDMA", "bandwidth")
    return profile.at("sDMA", "latency") + ceil(packed.block_bytes(columns) / width)


def _copy_cycles(access: Access, size: Size, profile: TimingProfile, outside: bool) -> int:
    unit = "sDMA" if outside else "DMA"
    shape = tile_shape(access.axes, size)
    sizes, (strides, close) = collapse_axes(shape, [access.strides, dense(shape)])
    total = prod(shape)
    run = sizes[-1] if sizes and strides[-1] == 1 == close[-1] else 1
    run_cycles = ceil(run * element_bytes(access.elem) / profile.at(unit, "bandwidth"))
    return profile.at(unit, "latency") + total // run * run_cycles


def _step(step: Step, layer: Layer, size: Size, profile: TimingProfile) -> tuple[str, float]:
    local = layer.locals[step.output.local]
    count = prod(tile_shape(local.axes, size))
    if step.work == "macs":
        x = GRAPH_TYPES[layer.locals[step.inputs[0].local].elem]
        rate = profile.macs_per_two_cycles(x.bits, is_float=x.kind == "float")
        return "NMU", profile.at("NMU", "latency") + ceil(2 * count * step.depth / rate)
    if step.work == "scalar" or step.nem in ("quantize", "dequantize"):
        return "VPU", profile.at("VPU", "latency") + ceil(
            8 * count / profile.at("VPU", "throughput")
        )
    passes = _PASSES.get(step.nem, 1)
    if step.work == "pool" and layer.window is not None:
        passes = prod(layer.window.kernel)
    throughput = profile.at("CSTL", "eltwise_throughput")
    return "CSTL", profile.at("CSTL", "latency") + ceil(passes * count / throughput)

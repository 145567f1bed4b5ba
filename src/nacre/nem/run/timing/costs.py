"""What tasks cost: cycles on each unit that they occupy, in every row."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nacre.base.elements import ELEMENT_TYPES, Kind
from nacre.base.term_columns import Column, Values
from nacre.kernels.interface.call import Call, Primitive, Work
from nacre.kernels.interface.shapes import dense_strides
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import lookup_at, resolve_symbols
from nacre.nem.plan.core_operations import primitive_of, resolve_call
from nacre.nem.plan.decompression import WDM
from nacre.nem.plan.footprints import copies_elements, strided_pattern
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.placement import table_level
from nacre.nem.run.machine.actions import copy_operands
from nacre.nem.run.machine.machine import operation_name
from nacre.nem.run.machine.signatures import extents, signatures
from nacre.nem.run.timing.array import array_cycles
from nacre.nem.run.timing.profile import TimingProfile

DDR = "DDR"
_LEVELS = ("L1", "L2", DDR)  # from near to far
_CLAMPS = ("relu", "clamp")  # what an array or the pass before does on the way out


def work_of(task: Task, call: Call) -> Work:
    """How much a compute task has to do; for an unknown operation, a pass over its outputs."""
    name = operation_name(task)
    return primitive_work(primitive_of(name), resolve_call(name, call))


def primitive_work(primitive: Primitive | None, call: Call) -> Work:
    """How much a primitive has to do; without one, a pass over the outputs."""
    if primitive is None:
        return Work(elements=sum(t.count for t in call.outputs))
    return primitive.work(call)


def cycles(task: Task, unit: str, grid: Grid, profile: TimingProfile) -> int | Column:
    """Cycles on a unit, as times count them: one number, or one for every row."""
    if task.op in ("transfer", "store"):
        return profile.scale(_copy_cycles(task, unit, grid, profile), unit)
    task_signatures = signatures(task, grid)
    costs = [call_cycles(task, s.call, unit, profile) for s in task_signatures.distinct]
    if task_signatures.index is None:
        return costs[0]
    return _expand_rows(costs, task_signatures.index)


def call_cycles(task: Task, call: Call | None, unit: str, profile: TimingProfile) -> int:
    """Cycles of a compute task on a unit in the iterations in which it is one call."""
    if call is None:
        raise ValueError("a compute task without call")
    return work_cycles(task, call, work_of(task, call), unit, profile)


def work_cycles(task: Task, call: Call, work: Work, unit: str, profile: TimingProfile) -> int:
    """The same where it is known how much there is to do."""
    return profile.scale(_compute_cycles(task, call, work, unit, profile), unit)


class CostKey(NamedTuple):
    """All that the cycles of a task on a unit depend on beside the figures of a profile."""

    operation: str
    unit: str
    way: Hashable  # outwards or not; where the table of a gather lies
    work: Hashable
    parts: tuple[int, ...] | None  # which part of the work each row has; None: all of it

    @property
    def is_by_row(self) -> bool:
        """Whether rows have cycles of their own."""
        return self.parts is not None


def cost_key(task: Task, unit: str, grid: Grid) -> CostKey:
    """Tasks of one key take the same cycles on the unit, or of DDR, whatever figures hold."""
    if unit == DDR:
        return _size_key("", unit, False, 1, ddr_bytes(task, grid))
    if task.op in ("transfer", "store"):
        return _size_key(task.op, unit, _goes_outwards(task), *_copied_runs(task, unit, grid))
    found = signatures(task, grid)
    calls = tuple(_call_key(s.call) for s in found.distinct if s.call is not None)
    index = None if found.index is None else tuple(found.index)
    return CostKey(operation_name(task), unit, table_level(task), calls, index)


def _size_key(
    operation: str, unit: str, way: Hashable, runs: int | Column, size: int | Column
) -> CostKey:
    if isinstance(runs, int) and isinstance(size, int):
        return CostKey(operation, unit, way, (runs, size), None)
    by_row = np.stack(np.broadcast_arrays(runs, size), axis=1)
    return CostKey(operation, unit, way, by_row.tobytes(), tuple(range(len(by_row))))


def _call_key(call: Call) -> Hashable:
    types = [None if t is None else (t.elem, t.shape) for t in (*call.inputs, *call.outputs)]
    return len(call.inputs), tuple(types), repr(sorted(call.attributes.items()))


def latency_of(task: Task, unit: str, profile: TimingProfile) -> int:
    """The cycles of a task that are no work: those before its first result."""
    if task.op not in ("transfer", "store"):
        return profile.scale(profile.at(unit, "latency"), unit)
    return profile.scale(copy_rate(task, unit, profile).latency, unit)


def _expand_rows(values: list[int], index: list[int]) -> Column:
    column: Column = np.array(values, np.int64)[np.array(index)]
    return column


def _compute_cycles(task: Task, call: Call, work: Work, unit: str, profile: TimingProfile) -> int:
    name = operation_name(task)
    if unit == "NMU":
        rate = macs_per_two_cycles(call, profile)
        return profile.at("NMU", "latency") + array_cycles(call, work, name, rate, profile)
    if unit == "CSTL":
        is_clamp = name in _CLAMPS
        return profile.at("CSTL", "latency") + _element_cycles(work, call, profile, is_clamp)
    level = table_level(task)
    if level is not None:
        return _gather_cycles(call, unit, profile)
    if unit == "DMA":
        size = sum(t.count * t.elem.bits for t in call.outputs)
        return profile.at("DMA", "latency") + _ceil(_ceil(size, 8), profile.at("DMA", "bandwidth"))
    operations = max(1, work.scalar_operations)
    return profile.at("VPU", "latency") + _ceil(operations, profile.at("VPU", "throughput"))


def _element_cycles(work: Work, call: Call, profile: TimingProfile, is_clamp: bool) -> int:
    """Cycles of passes over elements: as many as it takes, or as many as their bytes need."""
    figures, passes = profile.elements, max(1, work.elements)
    if is_clamp and figures.clamps:
        return -(-passes // figures.clamps)
    rate, slow = figures.rate, figures.functions
    functions = (passes if work.each > 1 else work.functions) if slow else 0
    busy = -(-(passes - functions) // rate) + -(-functions // (slow or rate))
    if not figures.width:
        return max(busy, 0)
    bits = max([t.elem.bits for t in call.outputs])
    return max(busy, -(-passes * bits // (8 * figures.width)))


def _gather_cycles(call: Call, unit: str, profile: TimingProfile) -> int:
    """Rows of a table outside L1, fetched one run each."""
    indices, result = call.inputs[1], call.outputs[0]
    rows = max(1, indices.count if indices is not None else 1)
    run = _ceil(result.count * result.elem.bits, 8 * rows)
    burst = profile.get("DMA", "burst") or 0
    fetched = rows * (burst + _ceil(run, profile.at(unit, "bandwidth")))
    return profile.at(unit, "latency") + fetched


def macs_per_two_cycles(call: Call, profile: TimingProfile) -> int:
    """MACs in two cycles for the types of a product's operands."""
    types = [(t.elem.bits, t.elem.kind) for t in call.inputs[:2] if t is not None]
    return _product_rate(tuple(types), profile)


@lru_cache(maxsize=256)
def _product_rate(types: tuple[tuple[int, Kind], ...], profile: TimingProfile) -> int:
    is_float = any(kind == "float" for _, kind in types)
    bits = [width for width, _ in types]
    # Narrow weights alone make the array faster; a wide operand of either kind slows it down.
    width = 4 if min(bits) == 4 else max(bits)
    return profile.macs_per_two_cycles(width, is_float=is_float)


class CopyRate(NamedTuple):
    """How fast a unit is with copies of a kind."""

    latency: int
    overhead: int  # of each run of bytes
    rate: int  # bytes in a cycle

    def cycles(self, runs: Values, size: Values) -> Values:
        """Cycles of so many runs, each of so many bytes."""
        return self.latency + runs * (self.overhead + -(-size // self.rate))


def copy_rate(task: Task, unit: str, profile: TimingProfile) -> CopyRate:
    """How fast a unit is with a copy: that depends on the operation and on the two memories."""
    overhead = _run_overhead(unit, profile)
    if unit == "CSTL" and task.op == "store":
        rate, latency = profile.at("CSTL", "store_bandwidth"), profile.at("CSTL", "store_latency")
        return CopyRate(latency, overhead, rate)
    rate, latency = profile.at(unit, "bandwidth"), profile.at(unit, "latency")
    if _goes_outwards(task):
        rate = profile.get(unit, "write_bandwidth") or rate
        latency = profile.get(unit, "write_latency") or latency
    return CopyRate(latency, overhead, rate)


def _copy_cycles(task: Task, unit: str, grid: Grid, profile: TimingProfile) -> int | Column:
    runs, size = _copied_runs(task, unit, grid)
    return copy_rate(task, unit, profile).cycles(runs, size)


def _copied_runs(task: Task, unit: str, grid: Grid) -> tuple[int | Column, int | Column]:
    """How many runs of bytes a unit has with a copy, and how long one is, in every row."""
    source, target = copy_operands(task)
    if source.region is None or target.region is None:
        raise ValueError("a copy without regions")
    if unit == WDM:
        return 1, decompressed_bytes(source.region, grid)
    if not copies_elements(task) or source.region.compression is not None:
        return 1, extents(source.region, grid)
    regions = (source.region, target.region)
    parts = tuple(part for r in regions for part in (*(r.shape or ()), *(r.strides or ())))
    if all(isinstance(part, int) for part in parts):
        return _copy_runs(regions, None, 0)
    by_row = np.array([_copy_runs(regions, grid, row) for row in range(grid.rows)], np.int64)
    return by_row[:, 0], by_row[:, 1]


def _goes_outwards(task: Task) -> bool:
    """Whether a transfer goes to a memory that is farther away than where it comes from."""
    if task.op != "transfer":
        return False
    regions = [operand.region for operand in copy_operands(task)]
    levels = [r.buffer.level if r is not None and r.buffer is not None else "" for r in regions]
    places = [_LEVELS.index(level) if level in _LEVELS else 0 for level in levels]
    return places[1] > places[0]


def moving_cycles(size: int, unit: str, profile: TimingProfile) -> int:
    """Cycles of work that a unit has with so many bytes without a gap."""
    moved = _run_overhead(unit, profile) + _ceil(size, profile.at(unit, "bandwidth"))
    return profile.scale(moved, unit)


def _run_overhead(unit: str, profile: TimingProfile) -> int:
    """What a run of bytes costs beside its length."""
    return profile.get("DMA", "burst") or 0 if unit in ("DMA", "sDMA") else 0


def _copy_runs(regions: tuple[Region, Region], grid: Grid | None, row: int) -> tuple[int, int]:
    """How many runs of bytes a copy of elements consists of, and how long one is at most.

    Without a grid regions are the same in every row. Where a store quantises, the runs of either
    side count as the bytes that it writes.
    """
    most, longest = 0, 0
    target_bits = ELEMENT_TYPES[regions[1].elem or "u8"].bits
    for region in regions:
        shape: Any = region.shape
        strides: Any = region.strides
        if grid is not None:
            lookup = lookup_at((*(shape or ()), *(strides or ())), grid, row)
            shape = resolve_symbols(shape, lookup)
            strides = resolve_symbols(strides, lookup) if strides else None
        strides = strides or dense_strides(shape)
        bits = ELEMENT_TYPES[region.elem or "u8"].bits
        pattern = strided_pattern(shape, strides, bits)
        if len(pattern.runs) > most:
            most = len(pattern.runs)
            longest = _ceil(pattern.longest * target_bits, bits)
    return most, longest


def copied_bytes(task: Task, grid: Grid) -> int | Column:
    """Bytes that a transfer or store moves, in every row."""
    source, target = copy_operands(task)
    if source.region is None or target.region is None:
        raise ValueError("a copy without regions")
    if not copies_elements(task) or source.region.compression is not None:
        return extents(source.region, grid)
    task_signatures = signatures(task, grid)
    bits = ELEMENT_TYPES[target.region.elem or "u8"].bits
    sizes = [
        _ceil(math.prod(s.layouts[0].shape) * bits, 8)
        for s in task_signatures.distinct
        if s.layouts[0]
    ]
    return sizes[0] if task_signatures.index is None else _expand_rows(sizes, task_signatures.index)


def decompressed_bytes(region: Region, grid: Grid) -> int | Column:
    """Bytes that the elements of a compressed region become, in every row."""
    shape = region.shape or ()
    bits = ELEMENT_TYPES[region.elem or "u8"].bits
    if all(isinstance(dim, int) for dim in shape):
        return _ceil(math.prod(resolve_symbols(shape, {})) * bits, 8)
    counts = [
        math.prod(resolve_symbols(shape, lookup_at(shape, grid, row))) for row in range(grid.rows)
    ]
    return np.array([_ceil(count * bits, 8) for count in counts], np.int64)


def ddr_bytes(task: Task, grid: Grid) -> int | Column:
    """Bytes that a task moves over DDR's own wires, in every row: twice within DDR."""
    if table_level(task) == DDR:
        task_signatures = signatures(task, grid)
        calls = [s.call for s in task_signatures.distinct if s.call is not None]
        sizes = [sum(_ceil(t.count * t.elem.bits, 8) for t in call.outputs) for call in calls]
        return (
            sizes[0]
            if task_signatures.index is None
            else _expand_rows(sizes, task_signatures.index)
        )
    levels = copy_levels(task)
    return copied_bytes(task, grid) * levels.count(DDR) if DDR in levels else 0


def touches_ddr(task: Task) -> bool:
    """Whether a task moves anything over DDR's wires."""
    return table_level(task) == DDR or DDR in copy_levels(task)


def copy_levels(task: Task) -> list[str | None]:
    """The memories of a transfer or store, in the order of its operands."""
    if task.op not in ("transfer", "store"):
        return []
    return [o.region.buffer.level for o in task.operands if o.region and o.region.buffer]


def ddr_cycles(task: Task, grid: Grid, profile: TimingProfile) -> int | Column:
    """Cycles for which a task takes all of DDR's bandwidth; 0 where that is not limited."""
    if profile.get(DDR, "bandwidth") is None:
        return 0
    return wire_cycles(ddr_bytes(task, grid), profile)


def wire_cycles(size: Values, profile: TimingProfile) -> Values:
    """Cycles of all of DDR's bandwidth for so many bytes; 0 where that is not limited."""
    rate = profile.get(DDR, "bandwidth")
    return 0 if rate is None else profile.scale(-(-size // rate), DDR)


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)

"""What tasks cost, once more: the formulas of the definition for the oracle's few operations."""

from __future__ import annotations

from collections.abc import Mapping

from tests.nem.run.timing.sketches import Machine, Task

DEFAULTS = {
    "NMU": {"int8_macs": 4096, "latency": 2},
    "CSTL": {"eltwise_throughput": 256, "latency": 1, "store_bandwidth": 32, "store_latency": 4},
    "DMA": {"bandwidth": 32, "latency": 4, "burst": 0},
    "sDMA": {"bandwidth": 32, "latency": 16},
    "VPU": {"throughput": 32, "latency": 4},
    "WDM": {"bandwidth": 64, "latency": 8},
}


def ways_of(task: Task) -> list[tuple[str, ...]]:
    """The units that can run a task, the preferred ones first."""
    if task.op == "transfer":
        levels = {task.source[:2], task.target[:2]}
        if "DD" in levels:
            return [("sDMA", "DMA") if "L1" in levels else ("sDMA",)]
        return [("DMA",)]
    if task.op == "store":
        return [("CSTL",)]
    return [("NMU",), ("VPU",)] if task.op == "gemm" else [("CSTL",), ("VPU",)]


def cost(task: Task, unit: str, env: Mapping[str, int], machine: Machine) -> int:
    """Cycles of a task on a unit."""
    size = task.size.value(env)
    if task.op in ("transfer", "store"):
        prefix = "store_" if unit == "CSTL" else ""
        bandwidth = _number(machine, unit, prefix + "bandwidth")
        burst = 0 if unit == "CSTL" else _number(machine, "DMA", "burst")
        run = burst + ceil(size, bandwidth)
        return _number(machine, unit, prefix + "latency") + max(1, task.rows) * run
    m, n, k = task.product
    work = m * n * k if task.op == "gemm" else size
    latency = _number(machine, unit, "latency")
    if unit == "NMU":
        return latency + _product_cycles(work, task.elem, machine)
    rate = _number(machine, unit, "eltwise_throughput" if unit == "CSTL" else "throughput")
    return latency + ceil(work, rate)


def _product_cycles(macs: int, elem: str, machine: Machine) -> int:
    flat = _figure(machine, "NMU", "mac_throughput")
    if flat is not None:
        return ceil(macs, flat)
    half = _figure(machine, "NMU", "fp16_macs") or _number(machine, "NMU", "int8_macs")
    return ceil(2 * macs, half) if elem == "f32" else ceil(macs, half)


def _figure(machine: Machine, unit: str, key: str) -> int | None:
    for figures in (machine.profile, machine.characteristics, DEFAULTS):
        if key in figures.get(unit, {}):
            return figures[unit][key]
    return None


def _number(machine: Machine, unit: str, key: str) -> int:
    found = _figure(machine, unit, key)
    assert found is not None, (unit, key)
    return found


def ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)

"""Single tasks and transfers of Intel's NPUs as measurements to fit a device to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.silicon.tasks import Row, read_rows, workload_of
from nacre.calibrate import Measurement, Workload

DEVICES = ("npu27", "npu40")
CLOCKS = {"npu27": 1300.0, "npu40": 1700.0}  # MHz, of the tests that the measurements are from
PRODUCTS = ("conv", "dw")
SOURCE = "intel/npu-nn-cost-model, commit 8a2ae92: regression tests of NPU{} and sweeps of its DMA"
# What the rows tell, and what it can be.
FREE = {
    "NMU.latency": (1, 5000),
    "NMU.operand_bandwidth": (8, 1024),
    "sDMA.latency": (1, 5000),
    "sDMA.bandwidth": (4, 256),
    "sDMA.write_latency": (1, 5000),
    "sDMA.write_bandwidth": (4, 256),
}
_MEMORIES = {"DRAM": "DDR", "CMX": "L1"}


def measurements(folder: Path, device: str) -> tuple[Measurement, ...]:
    """All that a device is fitted to."""
    return (*task_measurements(folder, device), *transfer_measurements(folder, device))


def task_measurements(folder: Path, device: str) -> Iterator[Measurement]:
    """Convolutions and depthwise ones that skip no zeros."""
    for row in read_rows(folder / "vpunn.csv"):
        if row["device"] == device and row["operation"] in PRODUCTS:
            microseconds = float(row["measured_cycles"]) / CLOCKS[device]
            kind = row["operation"]
            if _skips_zeros(row):
                kind += ", sparse"
            yield Measurement(workload_of(row), microseconds, "us", row["split_group"], kind)


def _skips_zeros(row: Row) -> bool:
    return "True" in (row["act_sparsity_enabled"], row["weight_sparsity_enabled"])


def transfer_measurements(folder: Path, device: str) -> Iterator[Measurement]:
    """Transfers between DDR and a tile's memory; each size is a group."""
    for row in read_rows(folder / "vpunn_dma.csv"):
        levels = [_MEMORIES[row["source_memory"]], _MEMORIES[row["target_memory"]]]
        if row["device"] != device or row["sweep"] != "default" or len(set(levels)) == 1:
            continue
        copy = Workload("transfer", size_bytes=int(row["bytes"]), source=levels[0],
                        target=levels[1])  # fmt: skip
        microseconds = float(row["measured_cycles"]) / float(row["clock_mhz"])
        kind = "transfer in" if levels[0] == "DDR" else "transfer out"
        yield Measurement(copy, microseconds, "us", f"{kind} of {row['bytes']}", kind)

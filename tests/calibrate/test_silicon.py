"""Real transfers, fitted by a search over every figure that knows nothing of nacre.

The tables lie beside the project, and are not part of it.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from nacre.calibrate import Measurement, Workload, fit

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "silicon" / "vpunn_dma.csv"
SWEEPS = [
    ("npu27", "default", "DRAM", "CMX"),
    ("npu27", "gear4", "CMX", "DRAM"),
    ("npu40", "default", "DRAM", "CMX"),
]


def sweep_rows(device: str, sweep: str, source: str, target: str) -> list[tuple[int, float]]:
    names = ("device", "sweep", "source_memory", "target_memory")
    with DATA.open(newline="") as file:
        table = list(csv.DictReader(file))
    asked = (device, sweep, source, target)
    rows = [row for row in table if tuple(row[name] for name in names) == asked]
    return [(int(row["bytes"]), float(row["measured_cycles"])) for row in rows]


def loss_of(rows: list[tuple[int, float]], latency: int, bandwidth: int) -> float:
    total = 0.0
    for size, cycles in rows:
        off = math.log(latency + math.ceil(size / bandwidth)) - math.log(cycles)
        total += 2 * 0.01 * (math.sqrt(1 + (off / 0.1) ** 2) - 1)
    return total


def best_of_all(rows: list[tuple[int, float]]) -> tuple[float, int, int]:
    """Every bandwidth, and latencies ever finer around the best."""
    best = (math.inf, 0, 0)
    for bandwidth in range(8, 97):
        middle, step = 512, 256
        while step >= 1:
            near = [middle + step * k for k in range(-4, 5) if middle + step * k >= 0]
            middle = min(near, key=lambda latency: loss_of(rows, latency, bandwidth))
            step //= 2
        best = min(best, (loss_of(rows, middle, bandwidth), middle, bandwidth))
    return best


@pytest.mark.sampled(3)
@pytest.mark.skipif(not DATA.is_file(), reason="the measurements are not here")
@pytest.mark.heavy("every bandwidth is tried by hand")
@pytest.mark.parametrize("sweep", SWEEPS)
def test_latency_and_bandwidth_are_those_of_a_search_by_hand(
    sweep: tuple[str, str, str, str],
) -> None:
    rows = sweep_rows(*sweep)
    copies = [
        Measurement(Workload("transfer", size_bytes=size, source="DDR", target="L2"), cycles)
        for size, cycles in rows
    ]
    free = {"sDMA.latency": (0, 5000), "sDMA.bandwidth": (1, 256)}
    found = fit("npm64k", copies, free, starts=2)
    loss, latency, bandwidth = best_of_all(rows)
    values = tuple(one.value for one in found.figures)
    assert loss_of(rows, *values) <= loss * 1.001
    assert values == pytest.approx((latency, bandwidth), rel=0.02, abs=1)
    # What a line through the larger sizes has for its slope is near it, too.
    large = [(size, cycles) for size, cycles in rows if size >= 65536]
    sizes, times = np.array(large, np.float64).T
    slope = float(np.polyfit(sizes, times, 1)[0])
    assert 1 / slope == pytest.approx(bandwidth, rel=0.15)

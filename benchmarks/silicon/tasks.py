"""Single tasks of Intel's array: each row as a workload, and its cycles on any device."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.silicon.fits import Rows
from nacre.base.source import Source
from nacre.calibrate import Workload
from nacre.compile.target import target_of
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.devices import Device

Row = Mapping[str, str]
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "silicon"
CLASSES = ("conv", "dw", "eltwise", "maxpool")
# Values do not matter: i8 and f16 have the types that conv2d and add have everywhere.
ELEMENTS = {"uint8": "i8", "float16": "f16"}
TILE = Path(__file__).parent / "devices" / "tile.nem"


def read_rows(path: Path) -> list[Row]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def workload_of(row: Row) -> Workload:
    """The task of a row, which reads no padding: that is not stored."""
    out_h, out_w, out_c, in_c = _sizes(row, "out_h", "out_w", "out_c", "in_c")
    elem = ELEMENTS[row["in_dtype"]]
    if row["operation"] not in ("conv", "dw"):
        shape = (1, out_h, out_w, out_c)
        return Workload("add", (shape, shape), elem)
    kernel_h, kernel_w, step_h, step_w = _sizes(row, "kernel_h", "kernel_w", "stride_h", "stride_w")
    height, width = (out_h - 1) * step_h + kernel_h, (out_w - 1) * step_w + kernel_w
    is_depthwise = row["operation"] == "dw"
    return Workload(
        "conv2d",
        ((1, height, width, in_c), (kernel_h, kernel_w, 1 if is_depthwise else in_c, out_c)),
        elem,
        {"strides": (step_h, step_w), **({"groups": in_c} if is_depthwise else {})},
    )


def _sizes(row: Row, *names: str) -> list[int]:
    return [int(float(row[name])) for name in names]


@cache
def _tile() -> Device:
    return target_of(TILE, ()).device


def cycles_of(workload: Workload) -> int:
    """NEM's cycles of a task, its operands in L1 of a tile."""
    source = Source("task.nem", workload.program(_tile()))
    program = LoadedProgram(source, CheckOptions(device=_tile()))
    program.require_runnable()
    return int(time_plan(program.plan, program.device).cycles)


def macs_of(row: Row) -> int:
    """MACs of a task, or its output elements where it multiplies nothing."""
    out_h, out_w, out_c, in_c = _sizes(row, "out_h", "out_w", "out_c", "in_c")
    if row["operation"] in ("eltwise", "maxpool"):
        return out_h * out_w * out_c
    kernel_h, kernel_w = _sizes(row, "kernel_h", "kernel_w")
    return out_h * out_w * out_c * kernel_h * kernel_w * (in_c if row["operation"] == "conv" else 1)


@dataclass(frozen=True)
class TaskRows:
    """Rows of one class on one device: as the timing model has them, and as MACs alone do."""

    device: str
    kind: str
    today: Rows
    macs: Rows


def task_rows(folder: Path) -> Iterator[TaskRows]:
    """By device and class."""
    table = read_rows(folder / "vpunn.csv")
    for device in ("npu27", "npu40"):
        for kind in CLASSES:
            rows = [r for r in table if (r["device"], r["operation"]) == (device, kind)]
            if not rows:
                continue
            measured = np.array([float(r["measured_cycles"]) for r in rows])
            groups = tuple(r["split_group"] for r in rows)
            modelled = np.array([float(cycles_of(workload_of(r))) for r in rows])
            macs = np.array([float(macs_of(r)) for r in rows])
            today, counted = (Rows(values, measured, groups) for values in (modelled, macs))
            yield TaskRows(device, kind, today, counted)

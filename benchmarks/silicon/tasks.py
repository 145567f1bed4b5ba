"""Single tasks of Intel's array and its DMA: each row as a NEM program of one task."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.silicon.fits import Rows
from nacre.base.source import Source
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckOptions

Row = Mapping[str, str]
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "silicon"
CLASSES = ("conv", "dw", "eltwise", "maxpool")
ELEMENTS = {"uint8": "u8", "float16": "f16"}
# One tile of either chip; MACs are the maker's, all else is what NEM assumes of any device.
DEVICE = """include "nem_baseline_1.0.nem"
device tile extends nem_baseline_1_0 {
    topology {
        num_engines = 1
        l2_size_bytes = 4194304
        device_units { sDMA = 1  WDM = 0 }
        per_engine { NMU = 1  CSTL = 1  DMA = 1  VPU = 1  SEQ = 1  l1_size_bytes = 4194304 }
    }
    unit_characteristics { NMU { int8_macs = 2048  fp16_macs = 1024 } }
}
"""


def read_rows(path: Path) -> list[Row]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def program_of(row: Row) -> str:
    """A program with the one task of a row, its operands in L1."""
    if row["operation"] in ("conv", "dw"):
        return DEVICE + "".join(_window_task(row))
    return DEVICE + "".join(_elementwise_task(row))


def _sizes(row: Row, *names: str) -> list[int]:
    return [int(float(row[name])) for name in names]


def _window_task(row: Row) -> Iterator[str]:
    out_h, out_w, out_c, in_c = _sizes(row, "out_h", "out_w", "out_c", "in_c")
    kernel_h, kernel_w, step_h, step_w = _sizes(row, "kernel_h", "kernel_w", "stride_h", "stride_w")
    is_depthwise = row["operation"] == "dw"
    # What a part of a layer reads without the rows and columns that are padding.
    height, width = (out_h - 1) * step_h + kernel_h, (out_w - 1) * step_w + kernel_w
    depth = 1 if is_depthwise else in_c
    elem = ELEMENTS[row["in_dtype"]]
    shapes = {
        "X": [1, height, width, in_c],
        "W": [kernel_h, kernel_w, depth, out_c],
        "Y": [1, out_h, out_w, out_c],
    }
    groups = f" groups={in_c}" if is_depthwise else ""
    accumulator = "f32" if elem == "f16" else "i32"
    task = (f"conv2d.sync in x, w out y strides=[{step_h},{step_w}] pads=[0,0,0,0] dilations=[1,1]"
            f" accum_type={accumulator}{groups}")  # fmt: skip
    yield from _one_task(shapes, elem, task)


def _elementwise_task(row: Row) -> Iterator[str]:
    height, width, channels = _sizes(row, "out_h", "out_w", "out_c")
    elem = ELEMENTS[row["in_dtype"]]
    shape = [1, height, width, channels]
    yield from _one_task({"X": shape, "W": shape, "Y": shape}, elem, "add.sync in x, w out y")


def _one_task(shapes: Mapping[str, list[int]], elem: str, task: str) -> Iterator[str]:
    # Values do not matter: f16 and i8 have the types that conv2d and add have everywhere.
    elem = "f16" if elem == "f16" else "i8"
    yield "program task:\n"
    for name, shape in shapes.items():
        size = int(np.prod(shape)) * (2 if elem == "f16" else 1)
        yield f"buffer {name} : L1 (size={size})\n"
    for name, shape in shapes.items():
        layout = "HWIO" if name == "W" and task.startswith("conv2d") else "NHWC"
        size = int(np.prod(shape)) * (2 if elem == "f16" else 1)
        dims = ", ".join(map(str, shape))
        quant = "" if elem == "f16" else ", quant=per_tensor(scale=1.0, zero_point=0)"
        yield (f"let {name.lower()} = region({name}, 0, {size}) elem={elem}, shape=[{dims}],"
               f" layout={layout}{quant}\n")  # fmt: skip
    yield f"t = {task}\n"


def cycles_of(text: str) -> int:
    """NEM's cycles of a program."""
    program = LoadedProgram(Source("task.nem", text), CheckOptions())
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
            modelled = np.array([float(cycles_of(program_of(r))) for r in rows])
            macs = np.array([float(macs_of(r)) for r in rows])
            today, counted = (Rows(values, measured, groups) for values in (modelled, macs))
            yield TaskRows(device, kind, today, counted)

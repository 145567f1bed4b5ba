"""Qualcomm's Hexagon NPUs as measurements of whole networks to fit devices to.

Each network is compiled once for what is assumed of all chips, and its plan is kept; a fit times
plans anew and never plans. Whatever a plan depends on is the same in the files of all chips, and no
such figure is free: so `nacre estimate` on a fitted device makes the plan that was fitted.
Networks of f16 and of i8 have a device each: a call costs them differently on one chip, and a
device has one such figure.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.silicon.kept_plans import KeptPlan, load_or_plan
from benchmarks.silicon.networks import (
    CACHE,
    PRECISIONS,
    build,
    comparable,
    example_inputs,
    first_tensor,
)
from benchmarks.silicon.tasks import Row, read_rows
from nacre.calibrate import Fit, Measurement, NemText, fit
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.estimate.bands import network_class
from nacre.compile.plan_digest import plan_digest
from nacre.compile.target import target_of

PLANS = CACHE / "hexagon"
CHIPS = Path(__file__).resolve().parent / "devices"
SOURCE = "qai_hub_models 0.65.0: perf.yaml of whole networks on {}, qnn_dlc, all layers on the NPU"
DDR_BYTES = 1 << 30  # BERT's weights alone take more than the 256 MB that are usual
# Its recurrent layers are thousands of tasks, whose plan takes an hour.
SKIPPED = ("sequencer2d",)


@dataclass(frozen=True)
class Chip:
    """A generation in one precision, and the device of the table that stands for it."""

    generation: str
    device: str
    precision: str  # as the table has it

    @property
    def name(self) -> str:
        """`hexagon_v79`, and `hexagon_v79_i8`: a call of either has a cost of its own."""
        suffix = "" if self.precision == "float" else f"_{PRECISIONS[self.precision]}"
        return f"hexagon_{self.generation}{suffix}"

    @property
    def file(self) -> Path:
        """What is known and assumed of it."""
        return CHIPS / f"{self.name}.nem"


_GENERATIONS = {
    "v79": "Samsung Galaxy S25",
    "v75": "Samsung Galaxy S24",
    "v73": "Snapdragon X Elite CRD",
}
CHIP_LIST = tuple(
    Chip(generation, device, precision)
    for generation, device in _GENERATIONS.items()
    for precision in PRECISIONS
)
# One free figure for every five rows at most: how fast each unit is, and what a call costs. What a
# unit does in a cycle is assumed, the same for all chips.
FREE: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "float": {
        "NMU.clock": (100, 10_000),
        "CSTL.clock": (50, 10_000),
        "sDMA.clock": (100, 10_000),
        "SEQ.call": (1000, 2_000_000),
    },
    "w8a8": {"NMU.clock": (100, 10_000), "SEQ.call": (1000, 2_000_000)},
}
# What the networks of f16 tell of a chip, and those of i8 take from them.
SHARED = ("CSTL.clock", "sDMA.clock")


def network_measurements(folder: Path, chip: Chip) -> tuple[Measurement, ...]:
    """Whole networks on a chip."""
    precision = PRECISIONS[chip.precision]
    return tuple(
        Measurement(
            NemText(row["model"] + row["component"], plan_of(row, chip).text),
            float(row["latency_ms"]),
            "ms",
            row["split_group"],
            network_class(precision),
        )
        for row in network_table(folder, chip)
    )


def network_table(folder: Path, chip: Chip) -> Iterator[Row]:
    """The rows of a chip that can be compared."""
    for row in read_rows(folder / "qualcomm.csv"):
        is_here = (row["device"], row["precision"]) == (chip.device, chip.precision)
        if is_here and comparable(row) and row["model"] not in SKIPPED:
            yield row


@cache
def fit_chip(name: str, folder: Path) -> Fit:
    """A chip, fitted to its networks; i8 has what is shared from those of f16."""
    chip = next(one for one in CHIP_LIST if one.name == name)
    rows = network_measurements(folder, chip)
    return fit(chip.file, rows, FREE[chip.precision], fixed=shared_figures(chip, folder))


def shared_figures(chip: Chip, folder: Path) -> dict[str, int]:
    """What a chip of i8 takes from the fit of f16."""
    if chip.precision == "float":
        return {}
    fitted = fit_chip(Chip(chip.generation, chip.device, "float").name, folder).figures
    return {one.figure.name: one.value for one in fitted if one.figure.name in SHARED}


def plan_folder(chip: Chip) -> Path:
    """Where plans for the chip lie: those for other figures lie elsewhere, and are never timed."""
    return PLANS / plan_digest(target_of(chip.file).device)


def plan_of(row: Row, chip: Chip) -> KeptPlan:
    """The plan of a row's network, made if it was not before."""
    name = f"{row['model']}{row['component']}.{PRECISIONS[row['precision']]}.nem"
    return load_or_plan(plan_folder(chip) / name, lambda: _compile(row, chip))


def _compile(row: Row, chip: Chip) -> Bundle:
    import torch

    import nacre
    from nacre.compile.sampling.draw import draw_inputs

    torch.manual_seed(0)
    precision = PRECISIONS[row["precision"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = example_inputs(row["inputs"])
        network = build(row["constructor"])
        measure_statistics(network, inputs)
        model = nacre.core.from_torch(first_tensor(network.eval()), inputs)
    if precision == "f16":
        return nacre.compile(model, chip.file, precision, ddr_bytes=DDR_BYTES)
    drawn = draw_inputs(model, 1, (2,))
    return nacre.compile(
        model, chip.file, precision, calibration=drawn, fallback=False, ddr_bytes=DDR_BYTES
    )


def measure_statistics(network: Any, inputs: tuple[Any, ...]) -> None:  # noqa: ANN401
    """Means and variances as one pass of noise has them: those of a new network have no sense."""
    import torch

    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    if norms:
        network.train()
        with torch.no_grad():
            network(*[torch.randn(2, *given.shape[1:]) for given in inputs])

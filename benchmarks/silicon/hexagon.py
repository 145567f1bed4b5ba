"""Qualcomm's Hexagon NPUs as measurements of whole networks to fit devices to.

Each network is compiled once for what is assumed of all chips, and kept as a bundle beside other
results; a fit times the plans anew and never plans. Networks as f16 and as i8 are rows of one
device: the two have rates of their own and share all else.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.silicon.networks import (
    CACHE,
    PRECISIONS,
    build,
    comparable,
    example_inputs,
    first_tensor,
)
from benchmarks.silicon.tasks import Row, read_rows
from nacre.calibrate import Fit, Measurement, ModelFile, fit
from nacre.compile.estimate.bands import network_class

PLANS = CACHE / "hexagon"
CHIPS = Path(__file__).resolve().parent / "devices"
SOURCE = "qai_hub_models 0.65.0: perf.yaml of whole networks on {}, qnn_dlc, all layers on the NPU"
DDR_BYTES = 1 << 30  # BERT's weights alone take more than the 256 MB that are usual
# Its recurrent layers are thousands of tasks, whose plan takes an hour.
SKIPPED = ("sequencer2d",)


@dataclass(frozen=True)
class Chip:
    """A generation, and the device of the table that stands for it."""

    name: str
    device: str

    @property
    def file(self) -> Path:
        """What is known and assumed of it."""
        return CHIPS / f"{self.name}.nem"


# The first has the figures that all of them share.
CHIP_LIST = (
    Chip("hexagon_v79", "Samsung Galaxy S25"),
    Chip("hexagon_v75", "Samsung Galaxy S24"),
    Chip("hexagon_v73", "Snapdragon X Elite CRD"),
)
# What differs from chip to chip.
OF_EACH = {
    "NMU.fp16_macs": (2048, 262144),
    "NMU.int8_macs": (2048, 524288),
    "CSTL.eltwise_throughput": (8, 4096),
    "CSTL.transcendental_throughput": (1, 1024),
    "sDMA.bandwidth": (4, 512),
    "SEQ.call": (1000, 2_000_000),
}
# What the first chip is fitted for, and all have.
SHARED: Mapping[str, tuple[int, int]] = {"CSTL.store_bandwidth": (8, 2048)}


def network_measurements(folder: Path, chip: Chip) -> tuple[Measurement, ...]:
    """Whole networks on a chip; a group is a network, whatever its precision."""
    return tuple(
        Measurement(
            ModelFile(plan_of(row), PRECISIONS[row["precision"]]),
            float(row["latency_ms"]),
            "ms",
            row["split_group"],
            network_class(PRECISIONS[row["precision"]]),
        )
        for row in network_table(folder, chip.device)
    )


def network_table(folder: Path, device: str) -> Iterator[Row]:
    """The rows of a device that can be compared."""
    for row in read_rows(folder / "qualcomm.csv"):
        if row["device"] == device and comparable(row) and row["model"] not in SKIPPED:
            yield row


def fit_chip(name: str, folder: Path) -> Fit:
    """A chip, fitted to its networks; all but the first have what is shared from that one."""
    first, *others = CHIP_LIST
    if name == first.name:
        return fit(first.file, network_measurements(folder, first), {**OF_EACH, **SHARED})
    chip = next(one for one in others if one.name == name)
    return fit(chip.file, network_measurements(folder, chip), OF_EACH)


def plan_of(row: Row) -> Path:
    """The bundle of a row's network, compiled if it was not before."""
    precision = PRECISIONS[row["precision"]]
    path = PLANS / f"{row['model']}{row['component']}.{precision}.bundle"
    if not path.exists():
        print(f"  compiling {path.stem}", file=sys.stderr, flush=True)
        PLANS.mkdir(parents=True, exist_ok=True)
        _compile(row).save(path)
    return path


def _compile(row: Row) -> Any:  # noqa: ANN401 - a bundle
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
    calibration = draw_inputs(model, 1, (2,)) if precision == "i8" else None
    return nacre.compile(
        model, CHIP_LIST[0].file, precision, calibration=calibration, ddr_bytes=DDR_BYTES
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

"""Networks on the STM32N6 as measurements to fit a device to: each planned once, and kept."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.silicon.kept_plans import load_or_plan
from benchmarks.silicon.networks import CACHE
from benchmarks.silicon.tasks import Row, read_rows
from nacre.calibrate import Measurement, NemText
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.plan_digest import plan_digest
from nacre.compile.target import target_of
from tests.detection_names import define_detections

CHIP = Path(__file__).resolve().parent / "devices" / "stm32n6.nem"
PLANS = CACHE / "stm32n6"
FORMAT, BOARD = "Int8", "STM32N6570-DK"
NAME = "stm32n6"
SOURCE = (
    "STMicroelectronics/stm32ai-modelzoo, commit 1423c78: networks of pytorchcv on STM32N6570-DK, "
    "those whose tensors stay on the chip"
)
# What the rows tell, and what it can be.
FREE = {
    "NMU.latency": (1, 100_000),
    "NMU.operand_bandwidth": (1, 1024),
    "CSTL.eltwise_throughput": (1, 1024),
    "sDMA.clock": (10, 200),
}
SETTLING = 4  # images of the pass that settles the statistics of batch norms


def comparable_rows(folder: Path) -> list[Row]:
    """Rows of networks that a constructor of pytorchcv gives, all weights in 8 bits."""
    return [
        row
        for row in read_rows(folder / "stm32n6.csv")
        if row["pytorchcv_name"]
        and row["format"] == FORMAT
        and row["board"] == BOARD
        and not row["note"]
    ]


def stays_on_chip(row: Row, table: list[Row]) -> bool:
    """Whether ST's compiler put no tensor of the row's family into external RAM.

    Where it did, layers that the NPU lacks run on the processor, in floats.
    """
    family = [one for one in table if one["split_group"] == row["split_group"]]
    return all(float(one["external_ram_kib"] or 0) == 0 for one in family)


def measurements(folder: Path) -> Iterator[Measurement]:
    """All that the device is fitted to; networks of a family are left out together."""
    table = comparable_rows(folder)
    for row in (one for one in table if stays_on_chip(one, table)):
        name = row["pytorchcv_name"]
        plan = NemText(name, plan_text(name, row["resolution"]))
        yield Measurement(plan, float(row["latency_ms"]), "ms", row["split_group"], "model")


def plan_text(name: str, resolution: str) -> str:
    """The plan of a network for the chip, from what was kept if it was asked before."""
    folder = PLANS / plan_digest(target_of(CHIP).device)
    file = folder / f"{name}-{resolution}.nem"
    return load_or_plan(file, lambda: _plan(name, resolution)).text


def _plan(name: str, resolution: str) -> CompiledModel:
    import torch

    import nacre

    height, width, channels = (int(size) for size in resolution.split("x"))
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = build(name)
        # Untrained networks amplify from layer to layer; statistics of any image prevent it.
        network.train()(torch.randn(SETTLING, channels, height, width))
        inputs = (torch.randn(1, channels, height, width),)
        found = nacre.estimate(network.eval(), CHIP, "i8", example_args=inputs)
    if found.plan is None:
        raise ValueError(f"{name} does not fit: {found.problems[0].message}")
    return found.plan.bundle


def build(name: str) -> Any:  # noqa: ANN401 - a module of PyTorch
    """The network of a name, without weights."""
    define_detections()
    return importlib.import_module("pytorchcv.model_provider").get_model(name, pretrained=False)

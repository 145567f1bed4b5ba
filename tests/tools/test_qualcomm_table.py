"""The table of Qualcomm's measurements, made of a package that a test wrote."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import pytest

from tools import qualcomm_table
from tools.qualcomm_table import COLUMNS, Package, differences, table

PERF = """
precisions:
  float:
    components:
      ResNet18:
        performance_metrics:
          Samsung Galaxy S25:
            qnn_dlc:
              estimated_peak_memory_range_mb: {max: 27, min: 1}
              inference_time_milliseconds: 0.71
              layer_counts: {npu: 53, total: 53}
              primary_compute_unit: NPU
              tool_versions: {qairt: 2.50.0}
            tflite:
              inference_time_milliseconds: 'No'
              primary_compute_unit: NPU
            onnx:
              inference_time_milliseconds: 9.5
              primary_compute_unit: CPU
          Some Other Phone:
            qnn_dlc: {inference_time_milliseconds: 1.0, primary_compute_unit: NPU}
"""
CHIPS = """
devices:
  Samsung Galaxy S25: {chipset: elite, form_factor: Phone}
chipsets:
  elite: {htp_version: 79}
"""
MANIFEST = "use_case: Image Classification\ntechnical_details: {Number of parameters: 11.7M}\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "package.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {
            "devices_and_chipsets.yaml": CHIPS,
            "models/resnet18/perf.yaml": PERF,
            "models/resnet18/manifest.yaml": MANIFEST,
        }.items():
            archive.writestr(f"qai_hub_models/{name}", text)
    return path


def test_times_on_the_npu_of_known_devices_are_rows(wheel: Path) -> None:
    (row,) = table(Package(wheel))
    assert row["constructor"] == "torchvision.models.resnet18()"
    expected = {
        "latency_ms": "0.71", "hexagon": "v79", "form": "phone", "runtime": "qnn_dlc",
        "precision": "float", "layers_npu": "53", "peak_memory_max_mb": "27",
        "parameters_published": "11700000", "task": "Image Classification", "qairt": "2.50.0",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_a_cell_that_differs_is_named(wheel: Path, tmp_path: Path) -> None:
    rows = list(table(Package(wheel)))
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerow(rows[0])
    assert differences(rows, path) == []
    changed = [{**rows[0], "latency_ms": "0.72"}]
    (found,) = differences(changed, path)
    assert "latency_ms is '0.72', in the table '0.71'" in found
    assert differences([], path) == ["not made: resnet18  Samsung Galaxy S25 float qnn_dlc"]


def test_every_network_has_what_builds_it() -> None:
    for parts in qualcomm_table.networks().values():
        for part in parts:
            assert part["library"] in ("torchvision", "timm", "transformers")
            assert part["constructor"].startswith(part["library"])
            assert part["fidelity"] in ("same graph", "near")

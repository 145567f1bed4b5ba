"""Networks on the STM32N6: which rows are taken, and that each is planned once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.silicon import stm32
from nacre.calibrate import NemText
from nacre.calibrate.free_figures import free_figures
from nacre.compile.target import target_of

HEAD = "format,resolution,board,latency_ms,external_ram_kib,pytorchcv_name,note,split_group"
ROWS = (
    "Int8,224x224x3,STM32N6570-DK,5.5,0,small,,near",
    "Int8,224x224x3,STM32N6570-DK,9.5,,large,,near",
    "Int8,224x224x3,STM32N6570-DK,87,3025,wide,,far",
    "Int8,224x224x3,STM32N6570-DK,86,,wider,,far",
    "W4A8,224x224x3,STM32N6570-DK,4,0,small,,near",
    "Int8,224x224x3,STM32N6570-DK,4,0,,,near",
    "Int8,224x224x3,STM32N6570-DK,4,0,small,likely a slip of the page,near",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stm32n6.csv").write_text("\n".join([HEAD, *ROWS]) + "\n")
    monkeypatch.setattr(stm32, "PLANS", tmp_path / "plans")
    return tmp_path


def test_rows_of_eight_bits_with_a_constructor_and_no_doubt_are_taken(folder: Path) -> None:
    names = [row["pytorchcv_name"] for row in stm32.comparable_rows(folder)]
    assert names == ["small", "large", "wide", "wider"]


def test_a_family_with_tensors_in_external_ram_is_not_fitted_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []

    def plan(name: str, resolution: str) -> Any:  # noqa: ANN401 - as much of a bundle as is read
        planned.append(name)
        manifest = SimpleNamespace(macs=1)
        return SimpleNamespace(program=f"# {name} {resolution}\n", manifest=manifest)

    monkeypatch.setattr(stm32, "_plan", plan)
    for _ in range(2):  # the second time from what was kept
        found = list(stm32.measurements(folder))
        assert [(row.time, row.unit, row.group, row.class_name) for row in found] == [
            (5.5, "ms", "near", "model"),
            (9.5, "ms", "near", "model"),
        ]
        subjects = [row.subject for row in found]
        assert subjects[0] == NemText("small", "# small 224x224x3\n")
    assert planned == ["small", "large"]


def test_the_chip_has_what_is_fitted_within_its_range() -> None:
    device = target_of(stm32.CHIP).device
    for figure in free_figures(device, list(stm32.FREE.items()), {}):
        assert figure.start is not None
        assert figure.low < figure.start < figure.high

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nacre.nem.model.builtins import builtin_names
from tests.cli.runner import invoke, nacre, nacre_here

Capsys = pytest.CaptureFixture[str]

KB, MB = 1024, 1024 * 1024
NAMES = [
    "npm_lite",
    "npm_mid",
    "npm_pro",
    "npm4k",
    "npm8k",
    "npm16k",
    "npm32k",
    "npm64k",
    "nem_reference",
]
HEXAGONS = ["hexagon_v73", "hexagon_v75", "hexagon_v79"]
FITTED = [*HEXAGONS, "intel_npu27", "intel_npu40", "rockchip_rk3588"]  # to measurements
F, A = "fact", "assumption"
_PRODUCTS = [A] * 5  # npm4k to npm64k

# Figure by figure: the values of the devices in the order of NAMES, and what each rests on.
FIGURES: dict[str, tuple[list[int | None], list[str]]] = {
    "num_engines": ([1, 2, 4, 1, 1, 2, 4, 8, 4], [F] * 8 + [A]),
    "NMU": ([1, 1, 2, 1, 1, 1, 1, 1, 2], [F] * 3 + [*_PRODUCTS, A]),
    "NMU.int8_macs": ([4096, 4096, 8192, 4096, 8192, 8192, 8192, 8192, 8192], [F] * 8 + [A]),
    "NMU.fp16_macs": ([2048, 2048, 4096, 2048, 4096, 4096, 4096, 4096, 4096], [F] * 8 + [A]),
    "NMU.int4_macs": (
        [None, 16384, 32768, 16384, 32768, 32768, 32768, 32768, 32768],
        [F] * 8 + [A],
    ),
    "NMU.int16_macs": ([None, 1024, 2048, 1024, 2048, 2048, 2048, 2048, 2048], [F] * 8 + [A]),
    "CSTL": ([2, 2, 4, 2, 4, 4, 4, 4, 4], [F] * 3 + [*_PRODUCTS, A]),
    "DMA": ([2, 2, 4, 2, 4, 4, 4, 4, 4], [F] * 3 + [*_PRODUCTS, A]),
    "VPU": ([1] * 9, [F] * 3 + [*_PRODUCTS, A]),
    "SEQ": ([1] * 9, [F] * 3 + [*_PRODUCTS, A]),
    "l1_size_bytes": ([512 * KB, *[MB] * 7, 4 * MB], [F] * 8 + [A]),
    "l2_size_bytes": (
        [MB, 4 * MB, 8 * MB, 2 * MB, 4 * MB, 8 * MB, 16 * MB, 32 * MB, 64 * MB],
        [F] * 3 + [*_PRODUCTS, A],
    ),
    "sDMA": ([1, 2, 4, 1, 2, 4, 8, 8, 8], [F] * 3 + [*_PRODUCTS, A]),
    "WDM": ([0, 2, 4, 0, 0, 2, 4, 8, 0], [F] * 3 + [*_PRODUCTS, A]),
    "SEQ.max_active_tokens": ([16, 16, 32, 16, 32, 32, 32, 32, 256], [F] * 3 + [*_PRODUCTS, A]),
}
BF16 = ["gemm.float<bf16>.no_bias", "eltwise<bf16>.default", "view<bf16>.default"]
BF16_CONV = ["conv2d.float<bf16>.no_bias", "conv2d.float<bf16>.with_bias"]
PRODUCT_VARIANTS = [
    "gemm.int8<i16>.with_bias",
    "conv2d.int8<i16>.with_bias",
    *(f"{op}.int4.{bias}" for op in ("gemm", "conv2d") for bias in ("no_bias", "with_bias")),
    *(f"{family}<{elem}>.default" for family in ("eltwise", "view") for elem in ("i16", "i32")),
    "quantize<f32, i8>.default",
    "dequantize<i8, f32>.default",
]
# What a device has beyond the mandatory variants of the baseline.
EXTRA_MANDATORY = {
    "npm_lite": BF16,
    "npm_lite_ex": [
        "conv2d.int8<i16>.with_bias",
        "eltwise<i32>.default",
        "dequantize<i8, f32>.default",
    ],
    "npm_mid": BF16 + BF16_CONV,
    "npm_pro": BF16 + BF16_CONV,
    "npm_pro_x1": BF16 + BF16_CONV,
    **{name: PRODUCT_VARIANTS for name in NAMES if name.endswith("k")},
}
STORES = ["store.quant<f16, i8>.default", "store.quant<f32, i8>.default"]
EXTENDED = {
    "npm_pro": ["gemm.float<f32>.no_bias"],
    "npm_pro_x1": [
        "gemm.float<f32>.no_bias",
        "conv2d.float<f32>.no_bias",
        "eltwise<f32>.default",
    ],
    **{name: STORES for name in NAMES if name.endswith("k")},
}


@pytest.fixture(scope="module")
def described() -> dict[str, dict[str, Any]]:
    """Every built-in device as JSON, by name."""
    outcome = nacre_here("devices", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return {device["name"]: device for device in json.loads(outcome.out)}


def figure(device: dict[str, Any], name: str) -> int | None:
    topology = device["topology"]
    unit, dot, key = name.partition(".")
    tables: list[dict[str, Any]] = [topology, topology["per_engine"], topology["device_units"]]
    if dot:
        tables = [device["unit_characteristics"].get(unit, {})]
    found: int | None = next(
        (table[key or name] for table in tables if (key or name) in table), None
    )
    return found


def test_all_built_in_devices_are_listed(described: dict[str, dict[str, Any]]) -> None:
    assert list(described) == list(builtin_names())
    assert set(described) == {*NAMES, *FITTED, "nem_baseline_1_0", "npm_pro_x1", "npm_lite_ex"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", FIGURES)
def test_a_figure_is_the_one_of_the_specification(
    described: dict[str, dict[str, Any]], name: str, row: str
) -> None:
    values, bases = FIGURES[row]
    index = NAMES.index(name)
    device = described[name]
    assert figure(device, row) == values[index]
    if values[index] is None:
        assert row not in device["basis"]
    else:
        assert device["basis"][row] == bases[index]


@pytest.mark.parametrize("name", EXTRA_MANDATORY)
def test_a_device_has_the_variants_of_the_specification(
    described: dict[str, dict[str, Any]], name: str
) -> None:
    baseline = described["nem_baseline_1_0"]["mandatory"]
    device = described[name]
    assert len(baseline) == 17
    assert sorted(device["mandatory"]) == sorted([*baseline, *EXTRA_MANDATORY[name]])
    assert device["extended"] == EXTENDED.get(name, [])


def test_the_reference_device_has_every_variant(described: dict[str, dict[str, Any]]) -> None:
    reference = described["nem_reference"]
    assert len(reference["mandatory"]) == 43
    everywhere = {v for device in described.values() for v in device["mandatory"]}
    assert everywhere <= set(reference["mandatory"])
    assert reference["extended"] == STORES


def test_devices_that_share_a_topology_say_so(described: dict[str, dict[str, Any]]) -> None:
    assert described["npm_pro_x1"]["topology"] == described["npm_pro"]["topology"]
    assert described["npm_pro_x1"]["extends"] == "npm_pro"
    assert described["npm_lite_ex"]["topology"] == described["npm_lite"]["topology"]


def test_the_effective_types_follow_from_the_variants(
    described: dict[str, dict[str, Any]],
) -> None:
    effective = described["npm_lite"]["effective"]
    assert "gemm.float<bf16>.no_bias" in effective["gemm"]
    assert "gemm.int8<i8>.with_bias" in effective["gemm"]
    # The registry gives matmul no bias operand.
    assert [id_ for id_ in effective["matmul"] if "with_bias" in id_] == []
    assert effective["relu"] == effective["add"]


def test_the_overview_has_a_line_for_every_device() -> None:
    outcome = nacre("devices")
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line.strip()}
    assert set(builtin_names()) <= rows.keys()
    assert rows["npm_lite"][1:] == ["1", "1", "4096", "2", "2", "1", "512", "KiB", "1", "MiB", "20"]
    assert rows["nem_baseline_1_0"][1:] == ["abstract", "17"]


@pytest.mark.parametrize("name", builtin_names())
def test_a_device_is_described_by_name(
    capsys: Capsys, described: dict[str, dict[str, Any]], name: str
) -> None:
    outcome = invoke(capsys, "devices", name)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(f"device {name}")
    assert "effective types" in outcome.out
    assert json.loads(invoke(capsys, "devices", name, "--format", "json").out) == described[name]


def test_a_description_says_what_is_assumed_and_why(capsys: Capsys) -> None:
    lines = invoke(capsys, "devices", "npm4k").out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["num_engines"] == ["num_engines", "1", "fact"]
    assert rows["l2_size_bytes"][1:4] == ["2", "MiB", "assumption:"]
    assert " ".join(rows["sDMA"][2:]) == "assumption: at most the eight system ports"


def test_an_abstract_device_says_that_it_is_there_to_be_extended(capsys: Capsys) -> None:
    assert "abstract: it has no topology" in invoke(capsys, "devices", "nem_baseline_1_0").out


# Devices of others

DEVICE = """
include "npm_lite.nem"
device mine extends npm_lite {
    unit_characteristics {
        NMU {
            int8_macs = 1  # fact: see [1], :smile: and [/b]
            other = 7
        }
    }
}
"""


def test_a_device_file_is_described(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "mine.nem"
    path.write_text(DEVICE, encoding="utf-8")
    device = json.loads(invoke(capsys, "devices", path, "--format", "json").out)
    assert (device["name"], device["extends"]) == ("mine", "npm_lite")
    expected = {"int8_macs": 1, "fp16_macs": 2048, "other": 7}
    assert device["unit_characteristics"]["NMU"] == expected
    assert (device["basis"]["NMU.int8_macs"], device["basis"]["NMU.other"]) == ("fact", "")
    assert "fact: see [1], :smile: and [/b]" in invoke(capsys, "devices", path).out


def test_a_device_file_with_errors_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "mine.nem"
    path.write_text(DEVICE.replace("extends npm_lite", "extends npm_light"), encoding="utf-8")
    outcome = nacre_here("devices", path)
    assert outcome.status == 1
    assert "error[INH07]: parent device `npm_light` is not defined" in outcome.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("npm_lit", "no device `npm_lit`; did you mean `npm_lite`?"),
        ("frobnicator", "no device `frobnicator`; the built-in devices are"),
        ("missing.nem", "`missing.nem` does not exist"),
    ],
)
def test_an_unknown_device_is_wrong_usage(tmp_path: Path, name: str, message: str) -> None:
    outcome = nacre_here("devices", name, cwd=tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err

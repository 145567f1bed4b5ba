"""Decoding of language models beside measurements: bytes of a token, and what is fitted to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.silicon import llm, rockchip
from benchmarks.silicon.fits import cross_validate, part_factors
from benchmarks.silicon.llm import Decoder, Decoding
from benchmarks.silicon.tasks import DATA, read_rows
from nacre.compile.estimate.estimate import estimate
from nacre.core import Builder, Module

needs_data = pytest.mark.skipif(
    not (DATA / "llm_configs.csv").is_file(), reason="the measurements are not here"
)
SMALL = Decoder("small", 2, 8, 4, 2, 3, 16, 100, 0)


def decoder_of(layers: int) -> Decoder:
    return Decoder(f"deep {layers}", layers, 64, 4, 2, 16, 256, 1000, 10**6 * layers)


def test_a_token_reads_each_weight_once_and_the_cache() -> None:
    # Query and output are 8 x 12, key and value 8 x 6, the feed-forward layer has three of 8 x 16.
    layer = 2 * 8 * 12 + 2 * 8 * 6 + 3 * 8 * 16
    assert SMALL.weights == 2 * layer + 8 * 100
    cached = 2 * 2 * 2 * 3 * 5  # keys and values of two layers, two heads of three, five tokens
    assert SMALL.token_bytes("w8a8", 5) == SMALL.weights + 8 + cached
    assert SMALL.token_bytes("w4a16", 5) == SMALL.weights / 2 + 4 + 2 * cached


@needs_data
def test_weights_are_the_published_ones_but_for_an_embedding_that_is_no_head() -> None:
    for row in read_rows(DATA / "llm_configs.csv"):
        decoder = llm.read_decoders(DATA)[row["rows"].split(";")[0]]
        untied = 0 if row["tied_head"] == "1" else decoder.vocabulary * decoder.width
        assert decoder.weights + untied == pytest.approx(decoder.parameters, rel=1e-3)


@needs_data
def test_the_best_runtime_of_a_row_is_taken() -> None:
    found = llm.qualcomm_decodings(DATA)
    table = read_rows(DATA / "qualcomm_llm.csv")
    asked = [
        float(row["decode_tokens_per_s"])
        for row in table
        if (
            row["model"],
            row["device"],
            row["precision"],
            row["context_length"],
            row["compute_unit"],
        )
        == ("qwen3_1_7b", "Samsung Galaxy S25", "w4a16", "4096", "npu")
    ]
    own = [
        one.rate
        for one in found
        if (one.decoder.architecture, one.device, one.tokens)
        == ("Qwen3-1.7B", "Samsung Galaxy S25", 2048)
    ]
    assert len(asked) > 1
    assert own == [max(asked)]


def test_a_bandwidth_and_a_cost_are_found_on_architectures_that_were_left_out() -> None:
    pytest.importorskip("scipy")
    rows = []
    for layers in (4, 9, 16, 30, 50, 80):
        size = decoder_of(layers).token_bytes("w8a8", 100)
        rows.append(Decoding(decoder_of(layers), "chip", "w8a8", 100, 1 / (size / 2e7 + 0.01)))
    table = llm.decoding_rows(rows)
    assert cross_validate(table["bytes"], llm.fit_decoding).most < 1e-3
    assert cross_validate(table["parameters"], llm.fit_parameters).median > 0.05


def test_factors_of_parts_are_found_and_a_part_that_is_nowhere_does_no_harm() -> None:
    pytest.importorskip("scipy")
    parts = np.array([[float(n), 1.0, 0.0] for n in range(1, 30)])
    found = part_factors(parts, parts @ np.array([3.0, 7.0, 0.0]))
    assert found == pytest.approx([3, 7, 0], rel=1e-4)


@needs_data
def test_the_shipped_chip_is_what_the_rows_give() -> None:
    pytest.importorskip("scipy")
    chip = Path(rockchip.__file__).parent / "devices" / f"{rockchip.NAME}.nem"
    found = rockchip.fit_rk3588(chip, DATA)
    band, values = found.overall, {one.figure.name: one.value for one in found.figures}
    assert band.median < 0.15
    assert values["DDR.bandwidth"] < rockchip.PINS[rockchip.CHIP]
    shipped = estimate(relu(), rockchip.NAME).device
    assert shipped.characteristics["DDR"]["bandwidth"] == values["DDR.bandwidth"]


def relu() -> Module:
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 8, 16, 16))
    return builder.module(builder.add("Relu", x))


def test_networks_are_not_calibrated_by_decoding() -> None:
    plan = estimate(relu(), rockchip.NAME).plan
    assert plan is not None
    assert plan.calibration is not None
    assert not plan.band.is_calibrated
    assert plan.band.basis.endswith("fitted to the decoding of language models alone")

"""Decoding of language models: bytes of a token over the bandwidth of DDR, and a cost per token.

A token reads every weight once, the cache of keys and values of what came before it, and one row of
the embedding. What a chip computes meanwhile hides behind that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.silicon.fits import Predictor, Rows, fit_parts, fit_scale
from benchmarks.silicon.tasks import Row, read_rows
from nacre.calibrate.timed_rows import Floats

LEAST_ROWS = 15  # five for each of three figures
ROBUST = 0.1  # logarithms further off count less: a runtime may be slow for one model alone
LEAN = "genie"  # the runtime of Qualcomm's that costs least where there are several
PROMPT, NEW = 128, 64  # tokens of Rockchip's measurements
# Bytes of a weight and of an element of the cache; a group of 128 weights has a scale of its own.
PRECISIONS: Mapping[str, tuple[float, float]] = {
    "w4a16": (0.5, 2.0),
    "w4a16_g128": (0.5 + 2 / 128, 2.0),
    "w8a8": (1.0, 1.0),
}


@dataclass(frozen=True)
class Decoder:
    """The dimensions of a dense decoder with gated feed-forward layers."""

    architecture: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    ffn_width: int
    vocabulary: int
    parameters: int

    @property
    def weights(self) -> int:
        """Weights that a token reads: of all layers and of the head; norms are next to nothing."""
        attention = 2 * self.heads + 2 * self.kv_heads
        layer = attention * self.head_size + 3 * self.ffn_width
        return self.width * (self.layers * layer + self.vocabulary)

    def cached(self, tokens: float) -> float:
        """Keys and values of so many tokens."""
        return 2 * tokens * self.layers * self.kv_heads * self.head_size

    def token_bytes(self, precision: str, tokens: float) -> float:
        """Bytes that a token reads after so many others."""
        weight, cached = PRECISIONS[precision]
        embedding = self.width * weight
        return self.weights * weight + embedding + self.cached(tokens) * cached


@dataclass(frozen=True)
class Decoding:
    """One measured row."""

    decoder: Decoder
    device: str
    precision: str
    tokens: float  # that are in the cache, in the mean
    rate: float  # tokens per second
    is_lean: bool = True  # by the runtime that costs least beside the NPU

    @property
    def size(self) -> float:
        """Bytes that a token reads."""
        return self.decoder.token_bytes(self.precision, self.tokens)


def read_decoders(folder: Path) -> dict[str, Decoder]:
    """Decoders by the names of models that have their dimensions."""
    found = {}
    for row in read_rows(folder / "llm_configs.csv"):
        sizes = {name: int(row[name]) for name in Decoder.__annotations__ if name != "architecture"}
        decoder = Decoder(row["architecture"], **sizes)
        found.update(dict.fromkeys(row["rows"].split(";"), decoder))
    return found


def qualcomm_decodings(folder: Path) -> list[Decoding]:
    """On the NPU, the best runtime of each model, device, precision and context."""
    decoders = read_decoders(folder)
    best: dict[tuple[str, ...], Decoding] = {}
    for row in read_rows(folder / "qualcomm_llm.csv"):
        rate = float(row["decode_tokens_per_s"] or 0)
        is_known = row["model"] in decoders and row["precision"] in PRECISIONS
        if not is_known or row["compute_unit"] != "npu" or rate <= 0:
            continue
        key = tuple(row[name] for name in ("model", "device", "precision", "context_length"))
        tokens = float(row["context_length"]) / 2
        decoder, is_lean = decoders[row["model"]], row["runtime"] == LEAN
        one = Decoding(decoder, row["device"], row["precision"], tokens, rate, is_lean)
        if key not in best or best[key].rate < rate:
            best[key] = one
    return list(best.values())


def rockchip_decodings(folder: Path) -> list[Decoding]:
    """Those of models whose dimensions are known."""
    decoders = read_decoders(folder)
    return [
        _rockchip_decoding(row, decoders[row["model"]])
        for row in read_rows(folder / "rockchip_llm.csv")
        if row["model"] in decoders and row["precision"] in PRECISIONS
    ]


def _rockchip_decoding(row: Row, decoder: Decoder) -> Decoding:
    rate = float(row["decode_tokens_per_s"])
    return Decoding(decoder, row["chip"], row["precision"], PROMPT + NEW / 2, rate)


def qualcomm_rows(folder: Path) -> Iterator[tuple[str, Mapping[str, Rows]]]:
    """By device with enough of them: rows by parameters alone, and by bytes."""
    found = qualcomm_decodings(folder)
    for device in sorted({one.device for one in found}):
        own = [one for one in found if one.device == device]
        if len(own) >= LEAST_ROWS:
            yield device, decoding_rows(own)


def decoding_rows(found: list[Decoding]) -> dict[str, Rows]:
    """Tokens per second beside parameters and beside bytes; an architecture is a group.

    Bytes come with the parts of a cost per token: one of all rows, one of the heavier runtimes.
    """
    rates = np.array([one.rate for one in found])
    groups = tuple(one.decoder.architecture for one in found)
    parameters = np.array([float(one.decoder.parameters) for one in found])
    parts = np.array([[one.size, 1.0, float(not one.is_lean)] for one in found])
    return {
        "parameters": Rows(parameters, rates, groups),
        "bytes": Rows(parts[:, :2], rates, groups),
        "bytes, by runtime": Rows(parts, rates, groups),
    }


def fit_parameters(parameters: Floats, rates: Floats) -> Predictor:
    """Tokens per second are a rate over the parameters, and nothing else."""
    time = fit_scale(parameters, 1 / rates)
    return lambda values: 1 / time(values)


def fit_decoding(parts: Floats, rates: Floats) -> Predictor:
    """A bandwidth and costs of every token."""
    time = fit_parts(parts, 1 / rates, ROBUST)
    return lambda values: 1 / time(values)

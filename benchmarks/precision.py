"""What precisions cost and keep: embeddings of sentences, one row by a stack of products, bytes.

    python -m benchmarks.precision                 everything
    python -m benchmarks.precision stack minilm    some

Every plan is judged by sentences that nobody has seen: data to calibrate with are those of
`benchmarks/sentences.txt`. `i8` leaves out stages of quantisation, one by one and all together.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import nacre
from nacre import core
from nacre.compile.options import WEIGHT_BITS
from nacre.compile.quantise_stages import stages_of
from nacre.core.module import Module
from nacre.core.values import Array
from tools.fetch_models import model_path

DEVICE = "npm4k"
LENGTH = 32
PRECISIONS = (
    ("f16", None),
    ("w8f16", 128),
    ("w8f16", 32),
    ("w4f16", 128),
    ("w4f16", 64),
    ("w4f16", 32),
)
CALIBRATED = 32  # sentences for i8; all of them for weights in groups
ACCURACY_DB = 20.0
SIZES = (576, 1536, 576, 1536, 576, 2048, 2048)
SCALE_BITS = 16
SENTENCES = (
    "The ferry leaves at seven and takes two hours to cross the sound.",
    "She tuned the old piano by ear, one string after the other.",
    "Prices of wheat fell for the third week in a row.",
    "A compiler that proves its own plans needs no luck.",
    "The committee postponed its decision until the report is complete.",
    "Heavy rain flooded the lower fields, but the road stayed open.",
    "How many moons does Neptune have?",
    "He apologised for the delay and offered to pay for dinner.",
    "Bees communicate the direction of food by dancing.",
    "The library closes early on public holidays.",
    "Turn the valve clockwise until the pressure drops below two bars.",
    "My grandmother kept every letter that my grandfather wrote.",
)


def table(rows: Iterator[tuple[str, ...]]) -> None:
    """Rows as they come."""
    for row in rows:
        print("".join(f"{cell:<{28 if not at else 16}}" for at, cell in enumerate(row)), flush=True)


# MiniLM: embeddings of sentences


def minilm_rows() -> Iterator[tuple[str, ...]]:
    """Embeddings against those in f32: noise, and the cosines."""
    module, feeds, sentences = minilm()
    expected = np.stack([pooled(core.evaluate(module, one)[0], one) for one in feeds])
    yield "MiniLM, pooled", "SQNR", "least cosine", "mean cosine", "bytes", "cycles"
    rows: list[tuple[str, int | None, list[dict[str, Array]] | None]] = [
        (precision, group, None) for precision, group in PRECISIONS
    ]
    rows += [(precision, group, sentences) for precision, group in PRECISIONS if group]
    for precision, group, data in rows:
        bundle = nacre.compile(module, DEVICE, precision, calibration=data, group_size=group)  # type: ignore[arg-type]
        (name,) = (port.name for port in bundle.manifest.outputs)
        found = np.stack([pooled(bundle.run(one)[name], one) for one in feeds])
        noise = np.square(found - expected).sum() / np.square(expected).sum()
        cosines = (found * expected).sum(axis=1)
        yield (
            name_of(precision, group) + (", gptq" if data else ""),
            f"{-10 * np.log10(noise):.1f} dB",
            f"{cosines.min():.4f}",
            f"{cosines.mean():.4f}",
            f"{len(bundle.weights):,}",
            f"{bundle.time().cycles:,}",
        )


def i8_rows() -> Iterator[tuple[str, ...]]:
    """States of real tokens by i8 plans without some stages; what 20 dB cost, and 15."""
    module, feeds, sentences = minilm()
    names = stages_of("i8")
    asked: list[tuple[str, float | None, tuple[str, ...]]] = [
        ("no stage, all on integers", None, names),
        *(
            (f"{name} alone, all on integers", None, _others(names, name))
            for name in ("smooth", "wide", "bias")
        ),
        ("all stages", None, ()),
        ("no stage, 15 dB by f16", 15.0, names),
        ("all stages, 20 dB", ACCURACY_DB, ()),
        ("without parts, 20 dB by f16", ACCURACY_DB, ("parts",)),
    ]  # fmt: skip
    seen = [list(one.values())[1][0].astype(bool) for one in feeds]
    wanted = [core.evaluate(module, one)[0] for one in feeds]
    states = np.concatenate([array[0][own] for array, own in zip(wanted, seen, strict=True)])
    expected = np.stack([pooled(array, one) for array, one in zip(wanted, feeds, strict=True)])
    yield "MiniLM, i8", "SQNR", "least cosine", "f16 of MACs", "cycles"
    for title, accuracy, without in asked:
        bundle = nacre.compile(
            module, DEVICE, "i8", calibration=sentences[:CALIBRATED], accuracy_db=accuracy,
            fallback=accuracy is not None, quantise_without=without,
        )  # fmt: skip
        (name,) = (port.name for port in bundle.manifest.outputs)
        runs = [bundle.run(one)[name] for one in feeds]
        found = np.concatenate([array[0][own] for array, own in zip(runs, seen, strict=True)])
        noise = np.square(found - states).sum() / np.square(states).sum()
        cosines = np.stack([pooled(array, one) for array, one in zip(runs, feeds, strict=True)])
        yield (
            title,
            f"{-10 * np.log10(noise):.1f} dB",
            f"{(cosines * expected).sum(axis=1).min():.4f}",
            f"{bundle.float_share:.0%}",
            f"{bundle.time().cycles:,}",
        )


def _others(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)


def minilm() -> tuple[Module, list[dict[str, Array]], list[dict[str, Array]]]:
    """The model for sentences of up to 32 tokens, sentences to judge by, and to calibrate with."""
    import torch
    from tokenizers import Tokenizer

    from nacre.core.torch.importer import from_torch
    from tests.core.models.minilm import minilm as network_of

    path = model_path("minilm")
    tokenizer: Any = Tokenizer.from_file(str(path.parent / "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    lines = Path(__file__).with_name("sentences.txt").read_text().splitlines()
    encoded = [tokenizer.encode(sentence) for sentence in (*SENTENCES, *lines)]
    pairs = [(np.array([e.ids]), np.array([e.attention_mask])) for e in encoded]
    module = from_torch(network_of(path), tuple(map(torch.from_numpy, pairs[0])))
    feeds = [dict(zip(module.input_types, pair, strict=True)) for pair in pairs]
    return module, feeds[: len(SENTENCES)], feeds[len(SENTENCES) :]


def pooled(states: Array, feeds: dict[str, Array]) -> Array:
    """The mean of the tokens that are there, of length 1."""
    seen = list(feeds.values())[1][0].astype(bool)
    mean = states[0][seen].astype(np.float64).mean(axis=0)
    made: Array = mean / np.linalg.norm(mean)
    return made


def name_of(precision: str, group: int | None) -> str:
    """A precision with its groups."""
    return precision if group is None else f"{precision}, groups of {group}"


# A stack of products, one row


def stack() -> Module:
    """Products after each other, as a step of a language model has them."""
    rng, builder = np.random.default_rng(0), core.Builder("nacre-1")
    value = builder.input("x", "f32", (1, SIZES[0]))
    for depth, columns in pairwise(SIZES):
        weights = (rng.standard_normal((columns, depth)) / np.sqrt(depth)).astype(np.float32)
        value = builder.add("Linear", value, builder.constant(weights))
    return builder.module(value)


def stack_rows() -> Iterator[tuple[str, ...]]:
    """Cycles over what DDR allows, and bytes over those that weights and scales have."""
    module = stack()
    count = sum(depth * columns for depth, columns in pairwise(SIZES))
    yield f"one row, {len(SIZES) - 1} products", "cycles", "bound", "over it", "bytes", "over ideal"
    for precision, group in PRECISIONS:
        found = nacre.estimate(module, DEVICE, precision, group_size=group)  # type: ignore[arg-type]
        assert found.plan is not None
        assert found.bounds is not None
        bits = WEIGHT_BITS[precision] + SCALE_BITS / (group or 1) if group else SCALE_BITS
        cycles, size = found.plan.ideal.cycles, len(found.plan.bundle.weights)
        yield (
            name_of(precision, group),
            f"{cycles:,}",
            f"{found.bounds.whole:,}",
            f"{cycles / found.bounds.whole:.3f}",
            f"{size:,}",
            f"{8 * size / (count * bits):.3f}",
        )


# Quantisers side by side


def peer_rows() -> Iterator[tuple[str, ...]]:
    """Signal over noise at i8 on unseen inputs, of ours, onnxruntime's and NNCF's."""
    from benchmarks.quantisers.networks import NETWORKS
    from benchmarks.quantisers.peers import compare

    yield "i8, unseen inputs", "ours", "onnxruntime", "NNCF", "ours in f16"
    yield from map(compare, NETWORKS)


PARTS = {"peers": peer_rows, "stack": stack_rows, "minilm": minilm_rows, "i8": i8_rows}


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for name in parser.parse_args().parts or PARTS:
        table(PARTS[name]())
        print()


if __name__ == "__main__":
    main()

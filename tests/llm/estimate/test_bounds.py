"""Bounds of language models: bytes and cycles of known ones, worked out by hand elsewhere."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.checkpoint.configuration import read_config_json
from nacre.llm.estimate.bounds import ModelEstimate, estimate_model
from nacre.llm.estimate.sizes import ModelSizes, Precision
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.config import config_of
from nacre.nem.model.target import builtin_device
from tests.llm.reference import Sizes, llama_bytes, random_weights


def config(
    layers: int, width: int, heads: int, kv: int, ff: int, vocabulary: int, tied: bool
) -> dict[str, object]:
    return {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": ff,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 8192,
    }


# MB a token at f16, w8 and w4 in groups of 32, w4 in groups of 128; bytes of a cache row; decoding
# after 1,024 tokens on one sDMA, and prompts of 128 and 1,024 tokens on npm4k, in millions of
# cycles at f16, w4 and i8.
TABLE = {
    "smollm2-135m": (
        config(30, 576, 9, 3, 1536, 49_152, True),
        (269, 143, 75.6, 69.3),
        23_040,
        (9.14, 5.20, 3.10),
        (8.5, 6.9, 4.6),
        (71, 71, 44),
    ),
    "smollm2-360m": (
        config(32, 960, 15, 5, 2560, 49_152, True),
        (724, 384, 203, 187),
        40_960,
        (23.9, 13.3, 7.67),
        (23, 20, 12),
        (189, 189, 110),
    ),
    "llama-3.2-1b": (
        config(16, 2048, 32, 8, 8192, 128_256, True),
        (2_471, 1_313, 695, 637),
        32_768,
        (78.3, 42.1, 22.8),
        (77, 62, 41),
        (520, 520, 277),
    ),
    "llama-3.1-8b": (
        config(32, 4096, 32, 8, 14_336, 128_256, False),
        (15_009, 7_974, 4_221, 3_870),
        131_072,
        (473, 253, 136),
        (470, 439, 250),
        (3_624, 3_624, 1_879),
    ),
}


def sizes_of(said: dict[str, object], folder: Path) -> ModelSizes:
    path = folder / "config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return ModelSizes(*read_config_json(path))


def estimated(sizes: ModelSizes, precision: Precision, device: str = "npm4k") -> ModelEstimate:
    return estimate_model(
        sizes, builtin_device(device), precision, context=1024, group_size=32, ddr_bytes=1 << 34
    )


@pytest.mark.parametrize("name", TABLE)
def test_bytes_and_cycles_are_those_that_were_worked_out_by_hand(name: str, tmp_path: Path) -> None:
    said, megabytes, row, decode, short, long = TABLE[name]
    sizes = sizes_of(said, tmp_path)
    kinds: tuple[tuple[Precision, int], ...] = (
        ("f16", 32),
        ("w8f16", 32),
        ("w4f16", 32),
        ("w4f16", 128),
    )
    found = [sizes.weight_bytes(precision, group) / 1e6 for precision, group in kinds]
    assert found == pytest.approx(megabytes, rel=4e-3)
    assert sizes.cache_row_bytes == row
    for (precision, _), cycles in zip(kinds[:3], decode, strict=True):
        last = estimated(sizes, precision).decode[-1]
        assert last.cycles / 1e6 == pytest.approx(cycles, rel=6e-3)
        assert last.limit == "DDR"
    # By hand weights of i8 had scales in groups, too; ours have one a column.
    ungrouped = 0.5 / 0.53125
    prompts: tuple[tuple[Precision, float, float], ...] = (
        ("f16", short[0], long[0]),
        ("w4f16", short[1], long[1]),
        ("i8", short[2] * ungrouped, long[2]),
    )
    for precision, *expected in prompts:
        prefill = [step.cycles / 1e6 for step in estimated(sizes, precision).prefill]
        assert prefill == pytest.approx(expected, rel=0.02)


def test_more_ports_and_engines_divide_the_cycles(tmp_path: Path) -> None:
    sizes = sizes_of(TABLE["llama-3.2-1b"][0], tmp_path)
    one, eight = (estimated(sizes, "f16", device) for device in ("npm4k", "npm64k"))
    assert one.decode[-1].cycles == pytest.approx(8 * eight.decode[-1].cycles, rel=1e-6)
    assert one.prefill[1].mac_cycles == pytest.approx(16 * eight.prefill[1].mac_cycles, rel=1e-6)


def test_a_large_model_is_answered_within_a_second(tmp_path: Path) -> None:
    sizes = sizes_of(TABLE["llama-3.1-8b"][0], tmp_path)
    begun = time.process_time()
    found = estimated(sizes, "w4f16")
    assert time.process_time() - begun < 1
    assert sizes.parameters == 8_030_261_248
    assert found.fits
    assert found.tokens_per_second(found.decode[-1]) == pytest.approx(7.35, rel=0.01)


def test_a_file_is_counted_as_it_is() -> None:
    sizes = Sizes()
    found = ModelSizes(config_of(parse_gguf(llama_bytes(sizes))), is_tied=True)
    assert found.parameters == sum(array.size for array in random_weights(sizes).values())


def test_windows_bound_what_is_read(tmp_path: Path) -> None:
    said = {**TABLE["smollm2-135m"][0], "model_type": "mistral", "sliding_window": 100}
    sizes = sizes_of(said, tmp_path)
    assert sizes.cache_bytes(1000) == sizes.cache_bytes(100) == 100 * sizes.cache_row_bytes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "LLM02"),
        ("[1]", "LLM02"),
        ("[" * 100_000, "LLM02"),
        ("{}", "LLM01"),
        ('{"model_type": "bert"}', "LLM01"),
        ('{"model_type": ["llama"]}', "LLM01"),
        ('{"model_type": "llama"}', "LLM02"),
        (json.dumps({**TABLE["smollm2-135m"][0], "hidden_size": -1}), "LLM02"),
        (json.dumps({**TABLE["smollm2-135m"][0], "num_key_value_heads": 2}), "LLM02"),
    ],
)
def test_a_configuration_that_is_none_is_refused(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=code):
        read_config_json(path)

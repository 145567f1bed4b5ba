"""Files that are sound and whose model is none, or none that is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.families import FAMILIES
from nacre.llm.model.runner import Decoder
from nacre.llm.rules import model as model_rules
from tests.llm.gguf_bytes import ARRAY, BOOL, F32, TEXT, U16, U32, Pair, f32_tensor, gguf_bytes
from tests.llm.reference import Sizes, keys_of, random_weights

ROOT = Path(__file__).parents[3]
ELSEWHERE = {"LLM06", "LLM07", "LLM08", "LLM09"}  # of steps and bundles, with theirs


def file_with(
    *changes: Pair, without: Sequence[str] = (), more: Sequence[str] = (), shapes: str = ""
) -> bytes:
    """A small Llama with pairs in the place of others, without some tensors, with others."""
    keys = {pair.key: pair for pair in keys_of(Sizes())}
    keys |= {pair.key: pair for pair in changes}
    arrays = random_weights(Sizes())
    tensors = [
        f32_tensor(name, array[:-1] if name == shapes else array)
        for name, array in arrays.items()
        if name not in without
    ]
    tensors += [f32_tensor(name, np.zeros(4, np.float32)) for name in more]
    return gguf_bytes([pair for pair in keys.values() if pair.key not in without], tensors)


CASES = {
    "LLM01": [
        file_with(without=["general.architecture"]),
        file_with(Pair("general.architecture", TEXT, "mamba")),
        file_with(Pair("general.architecture", U32, 1)),
        file_with(Pair("general.architecture", TEXT, "llamma")),
    ],
    "LLM02": [
        file_with(without=["llama.block_count"]),
        file_with(Pair("llama.block_count", U32, 0)),
        file_with(Pair("llama.embedding_length", TEXT, "16")),
        file_with(Pair("llama.attention.head_count_kv", U32, 3)),
        file_with(Pair("llama.attention.layer_norm_rms_epsilon", F32, float("nan"))),
        file_with(Pair("llama.rope.freq_base", F32, -1.0)),
        file_with(Pair("llama.rope.dimension_count", U32, 3)),
        file_with(Pair("llama.rope.dimension_count", U32, 40)),
        file_with(Pair("llama.rope.scaling.type", U32, 1)),
        file_with(Pair("llama.context_length", BOOL, 1)),
    ],
    "LLM03": [
        file_with(without=["blk.1.attn_k.weight"]),
        file_with(without=["token_embd.weight"]),
        file_with(shapes="blk.0.ffn_up.weight"),
        file_with(Pair("llama.block_count", U32, (1 << 31) - 1)),
        file_with(Pair("llama.vocab_size", U32, 30)),
        file_with(Pair("llama.embedding_length", U32, 1 << 30)),
    ],
    "LLM04": [
        file_with(more=["blk.0.attn_q_norm.weight"]),
        file_with(Pair("llama.block_count", U32, 1)),
    ],
    "LLM05": [
        file_with(Pair("llama.expert_count", U32, 8)),
        file_with(Pair("split.count", U16, 2)),
        file_with(Pair("llama.rope.scaling.type", TEXT, "yarn")),
        file_with(Pair("llama.attention.head_count_kv", ARRAY, [1, 2], U32)),
        file_with(Pair("llama.attention.value_length", U32, 8)),
    ],
}


def test_every_code_is_shown() -> None:
    codes = {code for code in vars(model_rules) if code.startswith("LLM")}
    assert {*CASES, *ELSEWHERE} == codes


@pytest.mark.parametrize(
    ("code", "number"), [(code, n) for code, cases in CASES.items() for n in range(len(cases))]
)
def test_a_model_breaks_one_promise(code: str, number: int) -> None:
    file = parse_gguf(CASES[code][number])
    with pytest.raises(InputError) as refused:
        Decoder.from_gguf(file)
    assert [finding.code for finding in refused.value.diagnostics] == [code], str(refused.value)


def test_numbers_that_are_the_same_for_every_layer_may_be_an_array() -> None:
    data = file_with(Pair("llama.attention.head_count_kv", ARRAY, [2, 2], U32))
    assert Decoder.from_gguf(parse_gguf(data)).config.kv_heads == 2


def test_families_are_those_of_the_page() -> None:
    page = (ROOT / "docs/llm.md").read_text(encoding="utf-8")
    assert [name for name in FAMILIES if f"`{name}`" not in page] == []

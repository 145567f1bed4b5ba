"""Folders of transformers: logits are those of plain NumPy, and what is wrong has a code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.checkpoint.checkpoint import Checkpoint, checkpoint_of, read_checkpoint
from nacre.llm.model.runner import Decoder
from nacre.llm.sources import open_model
from tests.llm.checkpoint.folders import Arrays, llama_arrays, llama_config, write_folder
from tests.llm.reference import Sizes, random_weights, reference_logits

SIZES = Sizes()
TOKENS = [3, 1, 4, 1, 5, 9, 2]


def logits_of(checkpoint: Checkpoint) -> np.ndarray:
    runner = Decoder.from_gguf(checkpoint).runner(SIZES.context)
    return np.stack([runner.feed([token]) for token in TOKENS])


def expected() -> np.ndarray:
    return reference_logits(random_weights(SIZES), SIZES, TOKENS)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_is_the_model(tmp_path: Path, shards: int) -> None:
    write_folder(tmp_path, llama_config(SIZES), llama_arrays(SIZES), shards)
    assert np.abs(logits_of(read_checkpoint(tmp_path)) - expected()).max() < 1e-4


def test_names_may_lack_the_stem(tmp_path: Path) -> None:
    arrays = {key.removeprefix("model."): value for key, value in llama_arrays(SIZES).items()}
    write_folder(tmp_path, llama_config(SIZES), arrays)
    assert np.abs(logits_of(read_checkpoint(tmp_path)) - expected()).max() < 1e-4


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_weights_of_other_types_are_read_as_they_are(tmp_path: Path, dtype: type) -> None:
    rounded: Arrays = {key: value.astype(dtype) for key, value in llama_arrays(SIZES).items()}
    write_folder(tmp_path, llama_config(SIZES), rounded)
    plain = {key: value.astype(np.float32) for key, value in rounded.items()}
    write_folder(tmp_path / "plain", llama_config(SIZES), plain)
    found = logits_of(read_checkpoint(tmp_path))
    assert found.tobytes() == logits_of(read_checkpoint(tmp_path / "plain")).tobytes()


def test_a_head_of_its_own_is_used_where_the_configuration_says_so(tmp_path: Path) -> None:
    arrays = llama_arrays(SIZES)
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"][::-1].copy()
    write_folder(tmp_path / "tied", llama_config(SIZES), arrays)
    write_folder(tmp_path / "own", llama_config(SIZES, tie_word_embeddings=False), arrays)
    assert np.abs(logits_of(read_checkpoint(tmp_path / "tied")) - expected()).max() < 1e-4
    found = logits_of(read_checkpoint(tmp_path / "own"))
    assert np.abs(found[:, ::-1] - expected()).max() < 1e-4


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def with_array(name: str, array: np.ndarray) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: array}


LLAMA3 = {
    "rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
    "original_max_position_embeddings": 32,
}  # fmt: skip
REFUSED: dict[str, tuple[str, dict[str, Any], Callable[[Arrays], Arrays]]] = {
    "unknown family": ("LLM01", {"model_type": "mixtral"}, dict),
    "no family": ("LLM01", {"model_type": None}, dict),
    "a size that is a text": ("LLM02", {"hidden_size": "16"}, dict),
    "no layers": ("LLM02", {"num_hidden_layers": 0}, dict),
    "heads that share unevenly": ("LLM02", {"num_key_value_heads": 3}, dict),
    "scaling that is no mapping": ("LLM02", {"rope_scaling": 4}, dict),
    "a factor below 0": ("LLM02", {"rope_scaling": {"type": "linear", "factor": -1}}, dict),
    "no factor": ("LLM02", {"rope_scaling": {"type": "linear"}}, dict),
    "factors that are no list": (
        "LLM02", {"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": 2}},
        dict,
    ),
    "frequencies the wrong way round": (
        "LLM02",
        {
            "rope_scaling": {
                "rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1,
                "original_max_position_embeddings": 32,
            }
        },
        dict,
    ),
    "an epsilon that no float holds": ("LLM02", {"rms_norm_eps": 10**400}, dict),
    "an epsilon that f32 does not hold": ("LLM02", {"rms_norm_eps": 1e39}, dict),
    "an epsilon in a list": ("LLM02", {"rms_norm_eps": [1e-5]}, dict),
    "heads in a list": ("LLM02", {"num_key_value_heads": [2]}, dict),
    "a word whether the head is tied": ("LLM02", {"tie_word_embeddings": "no"}, dict),
    "a base that no float holds": ("LLM02", {"rope_theta": 10**400}, dict),
    "more than a head that turns": ("LLM02", {"partial_rotary_factor": 1e30}, dict),
    "heads larger than memory": (
        "LLM02", {"head_dim": 1 << 30, "rope_scaling": {**LLAMA3, "factor": 8}}, dict,
    ),
    "a scaling whose type is a list": ("LLM02", {"rope_scaling": {"rope_type": ["linear"]}}, dict),
    "a scaling to nothing": ("LLM02", {"rope_scaling": {**LLAMA3, "factor": 1e-300}}, dict),
    "a scaling beyond f32": ("LLM02", {"rope_scaling": {**LLAMA3, "factor": 1e300}}, dict),
    "an original context of 1": (
        "LLM02",
        {
            "rope_scaling": {
                "type": "longrope", "original_max_position_embeddings": 1,
                "short_factor": [1] * 4, "long_factor": [1] * 4,
            }
        },
        dict,
    ),
    "a word whether windows are on": (
        "LLM02", {"use_sliding_window": "yes", "sliding_window": 4}, dict,
    ),
    "windows of too few layers": (
        "LLM02",
        {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["sliding_attention"] * 9},
        dict,
    ),
    "windows from a layer that is a list": (
        "LLM02", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": [0]}, dict,
    ),
    "layers of kinds that are lists": (
        "LLM05", {"use_sliding_window": True, "sliding_window": 4, "layer_types": [[]]}, dict,
    ),
    "infinitely many layers": (
        "LLM05",
        {
            "use_sliding_window": True, "sliding_window": 4,
            "attention_types": [[["local"], float("inf")]],
        },
        dict,
    ),
    "a window of minus 3": ("LLM02", {"use_sliding_window": True, "sliding_window": -3}, dict),
    "no weights of a layer": ("LLM03", {}, without("model.layers.1.mlp.up_proj.weight")),
    "weights of another shape": (
        "LLM03", {}, with_array("model.layers.0.mlp.up_proj.weight", np.zeros((3, 4), np.float32)),
    ),
    "weights that are integers": (
        "LLM03", {}, with_array("model.norm.weight", np.ones(SIZES.width, np.int32)),
    ),
    "an embedding without rows": (
        "LLM02", {"vocab_size": None},
        with_array("model.embed_tokens.weight", np.zeros((), np.float32)),
    ),
    "weights of a layer whose number is endless": (
        "LLM04", {},
        with_array(f"model.layers.{'9' * 5000}.mlp.up_proj.weight", np.zeros(3, np.float32)),
    ),
    "weights of nobody": ("LLM04", {}, with_array("model.extra", np.zeros(3, np.float32))),
    "another activation": ("LLM05", {"hidden_act": "relu"}, dict),
    "scaling that is not built": ("LLM05", {"rope_scaling": {"rope_type": "yarn"}}, dict),
    "quantised weights": ("LLM05", {"quantization_config": {"quant_method": "gptq"}}, dict),
    "windows here and there": (
        "LLM05",
        {
            "use_sliding_window": True, "sliding_window": 4,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        dict,
    ),
    "layers of another kind": (
        "LLM05", {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["mamba"]}, dict,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_built_is_refused(tmp_path: Path, case: str) -> None:
    code, more, change = REFUSED[case]
    write_folder(tmp_path, llama_config(SIZES, **more), change(llama_arrays(SIZES)))
    with pytest.raises(InputError) as refused:
        Decoder.from_gguf(read_checkpoint(tmp_path))
    assert [finding.code for finding in refused.value.diagnostics] == [code], str(refused.value)


def test_weights_that_are_programs_are_not_run(tmp_path: Path) -> None:
    write_folder(tmp_path, llama_config(SIZES), llama_arrays(SIZES))
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"LLM03.*no `model.safetensors`"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("place", ["../other.safetensors", "/etc/passwd", "a\\b.safetensors", 3])
def test_an_index_names_files_beside_it(tmp_path: Path, place: object) -> None:
    write_folder(tmp_path, llama_config(SIZES), llama_arrays(SIZES), shards=2)
    index = {"weight_map": {"model.norm.weight": place}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="LLM03"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"model_type":' + "[" * 100_000])
def test_a_configuration_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match="LLM02"):
        read_checkpoint(tmp_path)


def test_cut_weights_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, llama_config(SIZES), llama_arrays(SIZES))
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="LLM03"):
            Decoder.from_gguf(read_checkpoint(tmp_path))


def test_a_folder_without_a_configuration_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json.*LLM02.*does not exist"):
        open_model(tmp_path)


def test_what_is_no_model_is_refused_by_its_kind() -> None:
    with pytest.raises(InputError, match=r"LLM01.*a dict is no language model"):
        checkpoint_of({})

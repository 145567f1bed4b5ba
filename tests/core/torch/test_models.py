"""Whole models: those of `transformers` from small random configurations, and a trained one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify
from tools.fetch_models import Unavailable, model_path

pytestmark = pytest.mark.full  # with packages that CI does without


torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

Loose = Any
TEXT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
}  # fmt: skip
WORDS = {"vocab_size": 99}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class Picked(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A model that gives one of its outputs."""

    def __init__(self, model: Loose, key: str, **given: object) -> None:
        super().__init__()
        self.model, self.key, self.given = model, key, given

    def forward(self, *inputs: Loose) -> Loose:
        return getattr(self.model(*inputs, **self.given), self.key)


def words() -> tuple[Loose, Loose]:
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    return torch.randint(3, 99, (2, 12)), mask


def picture(side: int) -> tuple[Loose]:
    return (torch.randn(1, 3, side, side),)


def bert() -> Loose:
    model = transformers.BertModel(transformers.BertConfig(**TEXT, **WORDS))
    return Picked(model, "last_hidden_state"), words()


def gpt2() -> Loose:
    return Picked(gpt2_model(), "logits", use_cache=False), words()[:1]


def gpt2_model() -> Loose:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **WORDS, **ENDS))


def t5() -> Loose:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    model = transformers.T5EncoderModel(transformers.T5Config(**sizes, **WORDS))
    return Picked(model, "last_hidden_state"), words()


def llama() -> Loose:
    config = transformers.LlamaConfig(
        **TEXT, **WORDS, num_key_value_heads=2, max_position_embeddings=64
    )
    return Picked(transformers.LlamaForCausalLM(config), "logits", use_cache=False), words()


def vit() -> Loose:
    model = transformers.ViTModel(transformers.ViTConfig(**TEXT, image_size=32, patch_size=8))
    return Picked(model, "last_hidden_state"), picture(32)


def resnet() -> Loose:
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 1, 1]
    )
    return Picked(transformers.ResNetForImageClassification(config), "logits"), picture(64)


def convnext() -> Loose:
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1])
    return Picked(transformers.ConvNextForImageClassification(config), "logits"), picture(64)


def mobilenet() -> Loose:
    config = transformers.MobileNetV2Config(depth_multiplier=0.25, image_size=64)
    model = transformers.MobileNetV2ForImageClassification(config)
    return Picked(model, "logits"), picture(64)


def whisper() -> Loose:
    sizes = {
        "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "decoder_layers": 1,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
        "max_source_positions": 50, "decoder_start_token_id": 1, "suppress_tokens": None,
        "begin_suppress_tokens": None,
    }  # fmt: skip
    model = transformers.WhisperModel(transformers.WhisperConfig(**sizes, **WORDS, **ENDS))
    return Picked(model.encoder, "last_hidden_state"), (torch.randn(1, 80, 100),)


def lively(model: Loose) -> None:
    """Statistics as training leaves them: with those of a fresh model, signals die out."""
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.001, 0.01)


MODELS = [bert, gpt2, t5, llama, vit, resnet, convnext, mobilenet, whisper]


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_model_of_transformers(make: Callable[[], Loose]) -> None:
    torch.manual_seed(6)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    model, inputs = make()
    model.eval()
    lively(model)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    module = from_torch(model, inputs)
    assert verify(module, profile="nacre-1") == []
    given = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    found = evaluate(module, given)[0]
    size = np.abs(expected).max()
    assert size > 0.01
    assert np.abs(found - expected).max() <= 1e-4 * max(size, 1.0)


def test_gpt2_with_its_cache_as_state() -> None:
    executorch = pytest.importorskip("transformers.integrations.executorch")
    torch.manual_seed(7)
    model = gpt2_model().eval()
    cache = {"batch_size": 1, "max_cache_len": 16}
    model.generation_config = transformers.GenerationConfig(
        use_cache=True, cache_implementation="static", cache_config=cache
    )
    wrapped = executorch.TorchExportableModuleWithStaticCache(model, **cache, device="cpu")
    token, position = torch.tensor([[3]]), torch.tensor([0])
    module = from_torch(wrapped, (), {"input_ids": token, "cache_position": position})
    assert {"key_cache_0", "value_cache_1"} <= {state.name for state in module.states}
    session = module.session()
    ids = torch.randint(3, 99, (1, 12))
    with torch.no_grad():
        expected = model(ids, use_cache=False).logits[0].numpy()
    for step in range(12):
        given = {"input_ids": ids[:, step : step + 1].numpy(), "cache_position": np.array([step])}
        found = session.run(given)[0]
        np.testing.assert_allclose(found[0, -1], expected[step], rtol=1e-4, atol=1e-4)


@pytest.mark.full
def test_minilm() -> None:
    try:
        folder = model_path("minilm").parent
    except Unavailable as problem:
        pytest.skip(str(problem))
    model = Picked(transformers.BertModel.from_pretrained(folder), "last_hidden_state").eval()
    torch.manual_seed(8)
    ids, mask = torch.randint(0, 30000, (1, 32)), torch.ones(1, 32, dtype=torch.int64)
    module = from_torch(model, (ids, mask))
    with torch.no_grad():
        expected = model(ids, mask).numpy()
    found = evaluate(
        module, dict(zip(module.input_types, (ids.numpy(), mask.numpy()), strict=True))
    )
    assert np.abs(found[0] - expected).max() <= 1e-4

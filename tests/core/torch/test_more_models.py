"""Further architectures that people have, from small random configurations of `transformers`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from nacre.core.verify import verify

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.core.torch.programs import findings  # noqa: E402 - it needs both
from tests.core.torch.test_models import (  # noqa: E402 - it needs both
    ENDS,
    TEXT,
    WORDS,
    lively,
    picture,
    words,
)

Loose = Any
HIDDEN, LOGITS = ("last_hidden_state",), ("logits",)
BOXES = ("logits", "pred_boxes")
VIEW = {**TEXT, "image_size": 32, "patch_size": 8}
SEEING = {"text_config": {**TEXT, **WORDS, **ENDS, "max_position_embeddings": 16},
          "vision_config": VIEW}  # fmt: skip
TURNS = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}  # fmt: skip
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
WINDOWS = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
           "num_heads": [2, 4], "window_size": 4}  # fmt: skip
SOUND = {**TEXT, **WORDS, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2),
         "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 4}  # fmt: skip
DEBERTA = {**TEXT, **WORDS, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
SHARED = {**TEXT, **WORDS, "num_key_value_heads": 2}
GEMMA = {**SHARED, "head_dim": 8}
BLOCKS = {"embedding_size": 8, "hidden_sizes": [8, 16, 32, 64], "depths": [1, 1, 1, 1]}


@dataclass(frozen=True)
class Entry:
    """A class of `transformers`, its configuration, what it is given and what is looked at."""

    model: str
    config: str
    sizes: Mapping[str, Any]
    outputs: tuple[str, ...] = HIDDEN
    inputs: Callable[[], tuple[Loose, ...]] = words
    names: tuple[str, ...] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def image() -> tuple[Loose, ...]:
    return picture(32)


def large_image() -> tuple[Loose, ...]:
    return picture(64)


def sound() -> tuple[Loose, ...]:
    return (torch.randn(1, 800),)


def both() -> tuple[Loose, ...]:
    ids, mask = words()
    return ids, *image(), mask


def step() -> tuple[Loose, ...]:
    return *words(), torch.randint(3, 99, (2, 1))


def text(name: str, sizes: Mapping[str, Any]) -> Entry:
    return Entry(f"{name}Model", f"{name}Config", sizes)


def causal(name: str, sizes: Mapping[str, Any], config: str | None = None) -> Entry:
    named = ("input_ids", "attention_mask")
    return Entry(f"{name}ForCausalLM", config or f"{name}Config", sizes, LOGITS, names=named,
                 given={"use_cache": False})  # fmt: skip


def seen(name: str, sizes: Mapping[str, Any], kind: str = "Model") -> Entry:
    outputs = HIDDEN if kind == "Model" else LOGITS
    inputs = image if kind == "Model" else large_image
    return Entry(f"{name}{kind}", f"{name}Config", sizes, outputs, inputs)


IMAGE = "ForImageClassification"
MODELS = [
    text("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, **WORDS}),
    text("Roberta", {**TEXT, **WORDS, **ENDS}),
    text("XLMRoberta", {**TEXT, **WORDS, **ENDS}),
    text("Albert", {**TEXT, **WORDS, "embedding_size": 16}),
    text("MPNet", {**TEXT, **WORDS}),
    text("Electra", {**TEXT, **WORDS, "embedding_size": 16}),
    text("Deberta", DEBERTA),
    text("DebertaV2", {**DEBERTA, "position_buckets": 8, "max_relative_positions": 16}),
    text("ModernBert", {**TEXT, **WORDS, **ENDS, "cls_token_id": 1, "sep_token_id": 2}),
    text("XLNet", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, **WORDS}),
    Entry("BartModel", "BartConfig", {**TURNS, **WORDS, **ENDS, "decoder_start_token_id": 2},
          given={"use_cache": False}),
    Entry("T5ForConditionalGeneration", "T5Config", {
        "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, **WORDS,
        "decoder_start_token_id": 0}, LOGITS, step,
        ("input_ids", "attention_mask", "decoder_input_ids"), {"use_cache": False}),
    causal("OPT", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "ffn_dim": 64, "word_embed_proj_dim": 32, **WORDS, **ENDS}),
    causal("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, **WORDS}),
    causal("Mistral", {**SHARED, "sliding_window": 6}),
    causal("Qwen2", SHARED),
    causal("Qwen3", GEMMA),
    causal("Gemma", GEMMA),
    causal("Gemma2", GEMMA),
    causal("Gemma3", {**GEMMA, "sliding_window": 6}, "Gemma3TextConfig"),
    causal("Phi", {**TEXT, **WORDS}),
    causal("GPTNeoX", {**TEXT, **WORDS}),
    seen("Swin", WINDOWS),
    seen("Swinv2", WINDOWS),
    seen("Beit", {**VIEW, "use_relative_position_bias": True}),
    seen("DeiT", VIEW),
    seen("Dinov2", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "mlp_ratio": 2, "image_size": 24, "patch_size": 8}),
    Entry("SegformerForSemanticSegmentation", "SegformerConfig", {
        **STAGES, "decoder_hidden_size": 16, "num_attention_heads": [1, 2, 3, 4]}, LOGITS,
        large_image),
    Entry("YolosForObjectDetection", "YolosConfig", {
        **VIEW, "image_size": [32, 32], "num_detection_tokens": 5}, BOXES, image),
    seen("EfficientNet", {"image_size": 64, "width_coefficient": 0.25, "depth_coefficient": 0.2,
                          "hidden_dim": 320}, IMAGE),
    seen("RegNet", {"embedding_size": 8, **STAGES, "groups_width": 8}, IMAGE),
    seen("MobileViT", {"image_size": 64, "hidden_sizes": [16, 24, 32],
                       "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 64]}, IMAGE),
    seen("MobileNetV1", {"depth_multiplier": 0.25, "image_size": 64}, IMAGE),
    seen("ConvNextV2", STAGES, IMAGE),
    seen("PoolFormer", STAGES, IMAGE),
    Entry("CLIPModel", "CLIPConfig", {**SEEING, "projection_dim": 16},
          ("logits_per_image", "text_embeds"), both,
          ("input_ids", "pixel_values", "attention_mask")),
    Entry("SiglipModel", "SiglipConfig", {
        "text_config": {**SEEING["text_config"], "projection_size": 32}, "vision_config": VIEW},
        ("logits_per_image", "text_embeds"), both,
        ("input_ids", "pixel_values", "attention_mask")),
    Entry("Wav2Vec2Model", "Wav2Vec2Config", SOUND, inputs=sound),
    Entry("HubertModel", "HubertConfig", SOUND, inputs=sound),
    Entry("ASTModel", "ASTConfig", {
        **TEXT, "patch_size": 8, "max_length": 64, "num_mel_bins": 32, "frequency_stride": 4,
        "time_stride": 4}, inputs=lambda: (torch.randn(1, 64, 32),)),
]  # fmt: skip


class Chosen(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A model that takes inputs by place and gives some of its outputs."""

    def __init__(self, entry: Entry, model: Loose) -> None:
        super().__init__()
        self.entry, self.model = entry, model

    def forward(self, *inputs: Loose) -> tuple[Loose, ...]:
        entry = self.entry
        if entry.names is None:
            found = self.model(*inputs, **entry.given)
        else:
            found = self.model(**dict(zip(entry.names, inputs, strict=True)), **entry.given)
        return tuple(getattr(found, name) for name in entry.outputs)


def made(entry: Entry) -> Loose:
    return getattr(transformers, entry.model)(getattr(transformers, entry.config)(**entry.sizes))


def experts() -> Loose:
    """Whose products of chosen experts are calls of ATen, not of `transformers`."""
    model = made(causal("Mixtral", {**SHARED, "num_local_experts": 4}))
    model.set_experts_implementation("batched_mm")
    return model


def detector() -> Loose:
    backbone = transformers.ResNetConfig(**BLOCKS, out_features=["stage4"])
    config = transformers.DetrConfig(
        **TURNS, num_queries=6, use_timm_backbone=False, use_pretrained_backbone=False,
        backbone_config=backbone)  # fmt: skip
    return transformers.DetrForObjectDetection(config)


def check(entry: Entry, make: Callable[[], Loose]) -> None:
    torch.manual_seed(6)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    model = Chosen(entry, make()).eval()
    lively(model)
    inputs = entry.inputs()
    with torch.no_grad():
        expected = model(*inputs)
    module = from_torch(model, inputs)
    assert verify(module, profile="nacre-1") == []
    arrays = dict(zip(module.input_types, (x.numpy() for x in inputs), strict=True))
    for found, wanted in zip(evaluate(module, arrays), expected, strict=True):
        size = float(wanted.abs().max())
        assert size > 1e-5  # fresh weights are small, and so is what some models give
        assert np.abs(found - wanted.numpy()).max() <= 1e-4 * size


@pytest.mark.full
@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.model)
@pytest.mark.filterwarnings("ignore")  # those of transformers
def test_a_model_from_its_configuration(entry: Entry) -> None:
    check(entry, lambda: made(entry))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_a_mixture_of_experts() -> None:
    check(causal("Mixtral", {}), experts)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_experts_as_they_are_by_default() -> None:
    entry = causal("Mixtral", {**SHARED, "num_local_experts": 4})
    found = findings(Chosen(entry, made(entry)).eval(), *entry.inputs())
    assert {code for code, _, _ in found} == {"TCH01"}
    experts_ = [help_ for _, message, help_ in found if "grouped_mm" in message]
    assert experts_
    assert all('set_experts_implementation("batched_mm")' in str(help_) for help_ in experts_)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_a_detector_with_a_backbone() -> None:
    check(Entry("", "", {}, BOXES, large_image), detector)

"""Random encoder-decoders of transformers, and the tokens that they write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Network = Any  # of transformers, which may not be installed
VOCABULARY, MELS, FRAMES = 29, 10, 50
T5 = {
    "vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
    "num_heads": 4, "decoder_start_token_id": 0, "n_positions": 256,
}  # fmt: skip
WHISPER = {
    "vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40, "num_mel_bins": MELS, "max_source_positions": FRAMES // 2,
    "max_target_positions": 256, "decoder_start_token_id": 3, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 0, "begin_suppress_tokens": None,
}  # fmt: skip
SETTINGS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "t5": ("T5", T5),
    "t5 gated": (
        "T5",
        {
            **T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
            "num_decoder_layers": 3,
        },
    ),
    "t5 far": ("T5", {**T5, "relative_attention_num_buckets": 8,
                      "relative_attention_max_distance": 20}),
    "whisper": ("Whisper", WHISPER),
}  # fmt: skip


def random_model(name: str, spread_by: float = 3, **more: object) -> Network:
    """A model with weights that are large enough for its tokens to differ."""
    import torch
    import transformers

    kind, settings = SETTINGS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**settings, **more})
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config).eval().float()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            is_norm = "norm" in key
            is_small = is_norm or parameter.ndim < 2
            spread = 0.2 if is_small else parameter[0].numel() ** -0.5 * spread_by
            if "relative" in key:
                spread = 0.8
            centre = 1.0 if is_norm and key.endswith("weight") else 0.0
            parameter.copy_(centre + spread * torch.randn_like(parameter))
    return model


def a_source(name: str) -> Any:  # noqa: ANN401 - tokens, or features
    import numpy as np

    if name != "whisper":
        return [5, 9, 2, 6, 5, 3, 5, 8]
    return np.random.default_rng(0).standard_normal((MELS, FRAMES)).astype(np.float32)


def logits_of(model: Network, source: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401 - NumPy's
    """What comes after tokens, without a cache."""
    import torch

    tensor = torch.as_tensor(source)[None]
    name = "input_features" if tensor.ndim == 3 else "input_ids"
    with torch.no_grad():
        done = model(**{name: tensor}, decoder_input_ids=torch.tensor([ids]), use_cache=False)
    return done.logits[0].numpy()


def greedy(model: Network, source: Any, start: int, count: int) -> list[int]:  # noqa: ANN401
    """The tokens that transformers writes about a source."""
    ids = [start]
    for _ in range(count):
        ids.append(int(logits_of(model, source, ids)[-1].argmax()))
    return ids

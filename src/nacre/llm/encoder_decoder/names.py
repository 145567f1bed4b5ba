"""What transformers calls the tensors of both kinds."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.llm.encoder_decoder.config import Kind


@dataclass(frozen=True)
class AttentionNames:
    """The modules of an attention."""

    norm: str
    query: str
    key: str
    value: str
    out: str


@dataclass(frozen=True)
class FeedForwardNames:
    """The modules of what follows an attention; without a gate `gate` is none."""

    norm: str
    gate: str
    up: str
    down: str


@dataclass(frozen=True)
class Names:
    """Tensors of a kind, by what they are."""

    kind: Kind

    def self_attention(self, side: str, layer: int) -> AttentionNames:
        """Of an encoder's or a decoder's layer, to its own side."""
        if self.kind == "t5":
            return _t5_attention(f"{side}.block.{layer}.layer.0", "SelfAttention")
        return _whisper_attention(f"model.{side}.layers.{layer}", "self_attn")

    def cross_attention(self, layer: int) -> AttentionNames:
        """Of a decoder's layer, to the source."""
        if self.kind == "t5":
            return _t5_attention(f"decoder.block.{layer}.layer.1", "EncDecAttention")
        return _whisper_attention(f"model.decoder.layers.{layer}", "encoder_attn")

    def feed_forward(self, side: str, layer: int) -> FeedForwardNames:
        """What is behind the attentions of a layer."""
        if self.kind == "t5":
            stem = f"{side}.block.{layer}.layer.{1 if side == 'encoder' else 2}"
            dense = f"{stem}.DenseReluDense"
            return FeedForwardNames(f"{stem}.layer_norm", f"{dense}.wi_0", f"{dense}.wi_1",
                                    f"{dense}.wo")  # fmt: skip
        stem = f"model.{side}.layers.{layer}"
        return FeedForwardNames(f"{stem}.final_layer_norm", "", f"{stem}.fc1", f"{stem}.fc2")

    def last_norm(self, side: str) -> str:
        """What an encoder or a decoder ends with."""
        if self.kind == "t5":
            return f"{side}.final_layer_norm"
        return f"model.{side}.layer_norm"

    @property
    def embedding(self) -> str:
        """Rows of tokens."""
        return "shared.weight" if self.kind == "t5" else "model.decoder.embed_tokens.weight"

    @property
    def head(self) -> str:
        """The product that gives logits, where it is not the embedding."""
        return "lm_head.weight" if self.kind == "t5" else "proj_out.weight"

    def is_copy(self, name: str) -> bool:
        """Whether a tensor is the embedding again."""
        return self.kind == "t5" and name in (
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
        )


def _t5_attention(stem: str, module: str) -> AttentionNames:
    parts = (f"{stem}.{module}.{part}" for part in "qkvo")
    return AttentionNames(f"{stem}.layer_norm", *parts)


def _whisper_attention(stem: str, module: str) -> AttentionNames:
    parts = (f"{stem}.{module}.{part}_proj" for part in ("q", "k", "v", "out"))
    return AttentionNames(f"{stem}.{module}_layer_norm", *parts)

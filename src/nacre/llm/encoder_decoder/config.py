"""What an encoder-decoder is made of: as configurations say it, and as bundles keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from nacre.base.excerpt import backquote
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.keys import LARGEST_NUMBER
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM02, LLM05

Kind = Literal["t5", "whisper"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Activation = Literal["relu", "gelu", "gelu_tanh"]
_ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
}  # fmt: skip
_MOST = 1 << 24
_UNSAID_CONTEXT = 512  # positions of T5, where a configuration does not say


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig:
    """An encoder-decoder in numbers."""

    kind: Kind
    encoder_layers: int
    layers: int  # of the decoder
    width: int
    encoder_heads: int
    kv_heads: int  # of the decoder, of queries, too
    head_size: int
    encoder_ff: int
    ff: int
    vocabulary: int
    context: int  # positions of the decoder
    source: int  # rows of the encoder
    mels: int  # of features; 0: the source is tokens
    buckets: int  # of relative positions; 0: positions are learned
    distance: int  # from which on all are in the last bucket
    epsilon: float
    output_scale: float  # of what the head takes
    activation: Activation
    is_gated: bool
    start: int  # the token that texts begin with

    @property
    def query_scale(self) -> float:
        """What queries are multiplied by."""
        return self.head_size**-0.5 if self.kind == "whisper" else 1.0

    @property
    def metadata(self) -> dict[str, Value]:
        """The same under keys, as a bundle keeps them."""
        keys: dict[str, Value] = {"general.architecture": self.kind}
        for field in fields(self)[1:]:
            keys[f"{self.kind}.{field.name}"] = getattr(self, field.name)
        return keys


def kind_of(metadata: Mapping[str, Value]) -> Kind | None:
    """The kind that metadata are of; None where they are those of a decoder."""
    return next((kind for kind in KINDS if metadata.get("general.architecture") == kind), None)


def config_of_metadata(name: str, metadata: Mapping[str, Value]) -> EncoderDecoderConfig:
    """What a bundle kept; InputError where it cannot be."""
    kind = kind_of(metadata)
    assert kind is not None  # who calls this has seen to it
    numbers: dict[str, Any] = {}
    for field in fields(EncoderDecoderConfig)[1:]:
        value = metadata.get(f"{kind}.{field.name}")
        wanted = {"int": int, "float": float, "bool": bool}.get(str(field.type), str)
        is_right = type(value) is wanted and (wanted is not int or 0 <= value < _MOST)  # type: ignore[operator]
        if not is_right or (wanted is str and value not in _ACTIVATIONS.values()):
            message = f"`{kind}.{field.name}` is {backquote(str(value)[:40])}"
            raise refusal(LLM02, name, f"{message}, expected {wanted.__name__}")
        numbers[field.name] = value
    config = EncoderDecoderConfig(kind=kind, **numbers)
    for key in ("layers", "kv_heads", "head_size", "vocabulary", "context", "source"):
        if getattr(config, key) < 1:
            raise refusal(LLM02, name, f"`{kind}.{key}` is 0, expected 1 or more")
    _require_start(name, config)
    return config


def config_of_values(name: str, values: Mapping[str, Any], source: int) -> EncoderDecoderConfig:
    """That of a `config.json`, for a source of at most so many tokens where these are tokens."""
    reader = _Values(name, values)
    found = _t5(reader, source) if values.get("model_type") == "t5" else _whisper(reader)
    _require_start(name, found)
    return found


def _require_start(name: str, config: EncoderDecoderConfig) -> None:
    if config.start >= config.vocabulary:
        message = f"texts begin with the token {config.start:,} of {config.vocabulary:,}"
        raise refusal(LLM02, name, message)


class _Values:
    """A configuration, asked for numbers and words."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name, self.values = name, values

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        value = self.values.get(key)
        value = default if value is None else value
        if type(value) is not int or not least <= value < _MOST:
            found = backquote(str(value)[:40])
            raise refusal(LLM02, self.name, f"`{key}` is {found}, expected a number from {least}")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.values.get(key)
        value = default if value is None else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= LARGEST_NUMBER:
            found = backquote(str(value)[:40])
            raise refusal(LLM02, self.name, f"`{key}` is {found}, expected a number above 0")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            found = backquote(str(value)[:40])
            raise refusal(LLM02, self.name, f"`{key}` is {found}, expected true or false")
        return value

    def activation(self, key: str, word: object) -> Activation:
        known = _ACTIVATIONS.get(word) if isinstance(word, str) else None
        if known is None:
            found = backquote(str(word)[:40])
            raise refusal(LLM05, self.name, f"`{key}` is {found}, which is not built")
        return known


def _t5(reader: _Values, source: int) -> EncoderDecoderConfig:
    heads, layers = reader.count("num_heads", 8), reader.count("num_layers", 6)
    buckets = reader.count("relative_attention_num_buckets", 32, least=4)
    distance = reader.count("relative_attention_max_distance", 128)
    if distance <= buckets // 2 or buckets % 4:
        message = f"{buckets} buckets of relative positions up to {distance} cannot be"
        raise refusal(LLM02, reader.name, message)
    is_gated, activation = _feed_forward(reader)
    scales = reader.flag("scale_decoder_outputs", reader.flag("tie_word_embeddings", True))
    width = reader.count("d_model", 512)
    return EncoderDecoderConfig(
        kind="t5", encoder_layers=layers, layers=reader.count("num_decoder_layers", layers),
        width=width, encoder_heads=heads, kv_heads=heads, head_size=reader.count("d_kv", 64),
        encoder_ff=reader.count("d_ff", 2048), ff=reader.count("d_ff", 2048),
        vocabulary=reader.count("vocab_size", 32_128),
        context=reader.count("n_positions", _UNSAID_CONTEXT), source=source, mels=0,
        buckets=buckets, distance=distance, epsilon=reader.number("layer_norm_epsilon", 1e-6),
        output_scale=width**-0.5 if scales else 1.0, activation=activation, is_gated=is_gated,
        start=reader.count(
            "decoder_start_token_id", reader.count("pad_token_id", 0, least=0), least=0
        ),
    )  # fmt: skip


def _feed_forward(reader: _Values) -> tuple[bool, Activation]:
    """Whether T5's products are gated, and by what."""
    key = "feed_forward_proj"
    words = str(reader.values.get(key) or "relu")
    if words == "gated-gelu":
        return True, "gelu_tanh"
    gate, _, word = words.rpartition("-")
    if gate not in ("", "gated"):
        message = f"`{key}` is {backquote(words[:40])}, which is not built"
        raise refusal(LLM05, reader.name, message)
    return gate == "gated", reader.activation(key, word)


def _whisper(reader: _Values) -> EncoderDecoderConfig:
    heads, width = reader.count("decoder_attention_heads", 6), reader.count("d_model", 384)
    encoder_heads = reader.count("encoder_attention_heads", 6)
    if width % heads or encoder_heads != heads:
        message = f"{width} elements are {encoder_heads} heads in one part, {heads} in the other"
        raise refusal(LLM05, reader.name, f"{message}: heads of one size are built")
    if reader.flag("scale_embedding", False):
        raise refusal(LLM05, reader.name, "`scale_embedding` is on, which is not built")
    return EncoderDecoderConfig(
        kind="whisper", encoder_layers=reader.count("encoder_layers", 4),
        layers=reader.count("decoder_layers", 4), width=width, encoder_heads=encoder_heads,
        kv_heads=heads, head_size=width // heads, encoder_ff=reader.count("encoder_ffn_dim", 1536),
        ff=reader.count("decoder_ffn_dim", 1536), vocabulary=reader.count("vocab_size", 51_865),
        context=reader.count("max_target_positions", 448),
        source=reader.count("max_source_positions", 1500), mels=reader.count("num_mel_bins", 80),
        buckets=0, distance=0, epsilon=1e-5, output_scale=1.0,
        activation=reader.activation("activation_function",
                                   reader.values.get("activation_function") or "gelu"),
        is_gated=False, start=reader.count("decoder_start_token_id", 50_257, least=0),
    )  # fmt: skip

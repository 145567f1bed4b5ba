"""What a decoder is made of: its sizes, and what its family leaves to the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.families import FAMILIES, GRAPH, Family
from nacre.llm.model.keys import Keys
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.model import LLM01, LLM02, LLM05

_LARGEST_GEMMA2_LAYERS = 46  # its queries are scaled by width over heads


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """How positions turn queries and keys."""

    base: float
    dimensions: int  # the first of a head that are turned
    scale: float = 1.0  # of positions: linear scaling divides them
    original_context: int = 0  # of a model whose factors depend on the context; 0: they do not
    attention_factor: float = 1.0  # of cosines and sines


@dataclass(frozen=True, kw_only=True)
class Config:
    """A decoder in numbers."""

    family: Family
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    ff: int
    vocabulary: int
    context: int  # positions that it was made for
    epsilon: float
    rotary: Rotary | None
    query_scale: float
    is_parallel: bool = False
    window: int | None = None
    score_cap: float | None = None
    logit_cap: float | None = None

    @property
    def group(self) -> int:
        """Heads of queries that share one of keys."""
        return self.heads // self.kv_heads

    def window_of(self, layer: int) -> int | None:
        """How far a layer sees back; None for all the way."""
        return self.window if self.family.is_windowed(layer) else None


def config_of(file: ModelFile) -> Config:
    """The numbers of a file's model; InputError where one is missing or cannot be."""
    rows = file.tensors.get("token_embd.weight")
    count = rows.shape[0] if rows is not None and rows.shape else None
    return config_from(file.name, file.metadata, count)


def config_from(name: str, metadata: Mapping[str, Value], embedding_rows: int | None) -> Config:
    """The same of metadata that are at hand."""
    family = _family(name, metadata)
    keys = Keys(name, family.name, metadata)
    _require_whole(keys)
    heads, width = keys.count("attention.head_count"), keys.count("embedding_length")
    kv_heads = keys.count("attention.head_count_kv", heads)
    head_size = keys.count("attention.key_length", max(1, width // heads))
    _require_heads(keys, heads, kv_heads, head_size)
    layers = keys.count("block_count")
    norm = "rms_epsilon" if family.norm == "rms" else "epsilon"
    scale_by = head_size
    if family.name == "gemma2" and layers == _LARGEST_GEMMA2_LAYERS:
        scale_by = width // heads
    return Config(
        family=family,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        ff=keys.count("feed_forward_length", 4 * width),
        vocabulary=keys.count("vocab_size", _vocabulary(metadata, embedding_rows)),
        context=keys.count("context_length"),
        epsilon=keys.number(f"attention.layer_norm_{norm}", 1e-5),
        rotary=_rotary(keys, head_size) if family.positions == "rotary" else None,
        query_scale=scale_by**-0.5 if family.is_query_scaled else 1.0,
        is_parallel=_is_parallel(keys, family),
        window=keys.optional_count("attention.sliding_window"),
        score_cap=keys.optional_number("attn_logit_softcapping"),
        logit_cap=keys.optional_number("final_logit_softcapping"),
    )


def _family(file: str, metadata: Mapping[str, Value]) -> Family:
    name = metadata.get("general.architecture")
    if not isinstance(name, str):
        raise refusal(LLM01, file, "the file has no key `general.architecture`")
    if name == GRAPH:
        message = "the model is a graph of ONNX, which is built, run and served, but nothing else"
        raise refusal(LLM05, file, message, "give its checkpoint, or its GGUF file")
    if name not in FAMILIES:
        hint = did_you_mean(name, FAMILIES)
        known = ", ".join(FAMILIES)
        message = f"the architecture is {backquote(name)}, which is not built"
        raise refusal(LLM01, file, message, f"{hint or 'built are'} {known}".strip())
    return FAMILIES[name]


def _vocabulary(metadata: Mapping[str, Value], embedding_rows: int | None) -> int | None:
    tokens = metadata.get("tokenizer.ggml.tokens")
    return len(tokens) if isinstance(tokens, list) and tokens else embedding_rows


def _require_whole(keys: Keys) -> None:
    parts = keys.values.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        message = f"the model is split into {parts:,} files, which is not read"
        raise refusal(LLM05, keys.file, message, "merge them: `gguf-split --merge`")
    experts = keys.optional_count("expert_count")
    if experts:
        raise refusal(LLM05, keys.file, f"the model has {experts:,} experts, which is not built")


def _require_heads(keys: Keys, heads: int, kv_heads: int, head_size: int) -> None:
    if heads % kv_heads:
        message = f"{heads:,} heads of queries cannot share {kv_heads:,} of keys"
        raise refusal(LLM02, keys.file, message)
    if keys.count("attention.value_length", head_size) != head_size:
        message = f"values of heads have another size than keys, {head_size:,}: that is not built"
        raise refusal(LLM05, keys.file, message)


def _is_parallel(keys: Keys, family: Family) -> bool:
    if family.residual == "by_key":
        return keys.flag("use_parallel_residual", True)
    return family.residual == "parallel"


def _rotary(keys: Keys, head_size: int) -> Rotary:
    dimensions = keys.count("rope.dimension_count", head_size)
    if dimensions % 2 or dimensions > head_size:
        message = f"{dimensions:,} dimensions of a head of {head_size:,} cannot be turned in pairs"
        raise refusal(LLM02, keys.file, message)
    kind = keys.text("rope.scaling.type", "none")
    if kind not in ("none", "linear", "longrope"):
        message = f"positions are scaled by {backquote(kind)}, which is not built"
        raise refusal(LLM05, keys.file, message)
    factor = keys.number("rope.scaling.factor", 1.0) if kind == "linear" else 1.0
    return Rotary(
        base=keys.number("rope.freq_base", 10_000.0),
        dimensions=dimensions,
        scale=1 / factor,
        original_context=keys.optional_count("rope.scaling.original_context_length") or 0,
        attention_factor=keys.number("rope.scaling.attn_factor", 1.0),
    )

"""Rotary positions of a configuration: their base and size, and how long texts stretch them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.config import Config
from nacre.llm.model.keys import LARGEST_NUMBER
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array
from nacre.llm.rules.model import LLM02, LLM05

_PLAIN = frozenset({"default", "none"})
_MOST_DIMENSIONS = 1 << 16  # of a head: no model is near it
_LEAST_CONTEXT = 2  # whose logarithm divides
_BUILT = ("default", "linear", "llama3", "longrope")


def rotary_keys(
    name: str, parsed: Mapping[str, Any], config: Config
) -> tuple[dict[str, Value], dict[str, Array]]:
    """Keys of GGUF, and tensors of factors that divide the frequencies."""
    scaling = _scaling(name, parsed)
    reader = _Reader(name, parsed, scaling)
    share = reader.number("partial_rotary_factor", reader.number_if_given("rotary_pct", 1.0))
    size = int(config.head_size * share) if share <= 1 else 0
    if not 0 < size <= _MOST_DIMENSIONS:
        message = f"{share:g} of a head of {config.head_size:,} cannot be turned"
        raise refusal(LLM02, name, message, f"1 to {_MOST_DIMENSIONS:,} dimensions can")
    base = reader.number("rope_theta", reader.number_if_given("rotary_emb_base", 10_000.0))
    keys: dict[str, Value] = {"rope.dimension_count": size, "rope.freq_base": base}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if not isinstance(kind, str):
        message = f"`rope_type` is {backquote(str(kind))}, expected a text"
        raise refusal(LLM02, name, message)
    if kind in _PLAIN:
        return keys, {}
    if kind == "linear":
        return {**keys, **_linear(reader)}, {}
    if kind == "llama3":
        return keys, {"rope_freqs.weight": _llama3_factors(reader, base, size)}
    if kind in ("longrope", "su"):
        more, factors = _longrope(reader, config, size)
        return {**keys, **more}, factors
    message = f"positions are scaled by {backquote(str(kind))}, which is not built"
    raise refusal(LLM05, name, message, f"built are {', '.join(_BUILT)}")


def _scaling(name: str, parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    """`rope_parameters`, which older versions call `rope_scaling`."""
    found = parsed.get("rope_parameters", parsed.get("rope_scaling"))
    if found is None:
        return {}
    if not isinstance(found, dict):
        message = f"`rope_scaling` is {backquote(str(found)[:40])}, expected a mapping"
        raise refusal(LLM02, name, message)
    return found


class _Reader:
    """Numbers beside the scaling, which may hold them itself."""

    def __init__(self, name: str, parsed: Mapping[str, Any], scaling: Mapping[str, Any]) -> None:
        self.name, self._parsed, self._scaling = name, parsed, scaling

    def number_if_given(self, key: str, default: float) -> float:
        """A number under the name that it has elsewhere."""
        return self.number(key, default) if key in self._parsed else default

    def number(self, key: str, default: float | None = None) -> float:
        """A number above 0 that f32 holds."""
        value = self._scaling.get(key)
        value = self._parsed.get(key, default) if value is None else value
        if not _is_factor(value):
            shown = "missing" if value is None else backquote(str(value)[:40])
            raise refusal(LLM02, self.name, f"`{key}` is {shown}, expected a number above 0")
        return float(value)

    def has(self, key: str) -> bool:
        """Whether a key says something."""
        return self._scaling.get(key) is not None or self._parsed.get(key) is not None

    def factors(self, key: str, count: int) -> Array:
        """A list of so many numbers above 0."""
        values = self._scaling.get(key)
        if not isinstance(values, list) or len(values) != count or not all(map(_is_factor, values)):
            message = f"`{key}` is no list of {count:,} numbers above 0"
            raise refusal(LLM02, self.name, message)
        return np.array(values, np.float32)


def _is_factor(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= LARGEST_NUMBER  # type: ignore[operator]


def _linear(reader: _Reader) -> dict[str, Value]:
    return {"rope.scaling.type": "linear", "rope.scaling.factor": reader.number("factor")}


def _llama3_factors(reader: _Reader, base: float, size: int) -> Array:
    """Long waves are stretched, short ones are not, those between as far as they are long."""
    factor, low = reader.number("factor"), reader.number("low_freq_factor")
    high = reader.number("high_freq_factor")
    original = reader.number("original_max_position_embeddings")
    if high <= low:
        message = f"`high_freq_factor` is {high:g}, expected more than `low_freq_factor`, {low:g}"
        raise refusal(LLM02, reader.name, message)
    half = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    frequencies = 1.0 / np.float64(base) ** half
    turns = original * frequencies / (2 * math.pi)  # in the context that it was made for
    share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    with np.errstate(all="ignore"):
        found = np.asarray(1 / ((1 - share) / factor + share), np.float32)
    if not np.all((found > 0) & np.isfinite(found)):
        raise refusal(LLM02, reader.name, f"`factor` is {factor:g}, which leaves no frequencies")
    return found


def _longrope(
    reader: _Reader, config: Config, size: int
) -> tuple[dict[str, Value], dict[str, Array]]:
    """Factors by dimension, others for texts beyond the original context."""
    original = int(reader.number("original_max_position_embeddings", config.context))
    if original < _LEAST_CONTEXT:
        message = f"`original_max_position_embeddings` is {original}, expected {_LEAST_CONTEXT:,}"
        raise refusal(LLM02, reader.name, f"{message} or more")
    factors = {
        f"rope_factors_{part}.weight": reader.factors(f"{part}_factor", size // 2)
        for part in ("short", "long")
    }
    stretch = config.context / original
    attention = math.sqrt(1 + math.log(stretch) / math.log(original)) if stretch > 1 else 1.0
    if reader.has("attention_factor"):
        attention = reader.number("attention_factor")
    keys: dict[str, Value] = {
        "rope.scaling.type": "longrope",
        "rope.scaling.original_context_length": original,
        "rope.scaling.attn_factor": attention,
    }
    return keys, factors

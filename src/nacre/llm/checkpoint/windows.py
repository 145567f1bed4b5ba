"""Which layers of a configuration see a window only, as far as the family has them so."""

from __future__ import annotations

from itertools import chain

from nacre.base.excerpt import backquote
from nacre.llm.checkpoint.architectures import Architecture
from nacre.llm.checkpoint.json_files import JsonObject
from nacre.llm.model.families import FAMILIES
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM02, LLM05

_WINDOWED = frozenset({"sliding_attention", "local"})
_WHOLE = frozenset({"full_attention", "global"})
_MOST_LAYERS = 1 << 16


def window_of(name: str, architecture: Architecture, values: JsonObject) -> int | None:
    """How far layers see back; None where all see everything. InputError where they mix."""
    size = values.get("sliding_window", values.get("window_size"))
    if size is None or not _is_switched_on(name, architecture, values):
        return None
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        message = f"`sliding_window` is {backquote(str(size))}, expected a number of rows"
        raise refusal(LLM02, name, message)
    kinds = _kinds(name, values)
    if kinds is None:
        return size or None
    count = values.get("num_hidden_layers", values.get("num_layers"))
    if isinstance(count, int) and len(kinds) != count:
        message = f"what layers see is said of {len(kinds):,}, the model has {count:,}"
        raise refusal(LLM02, name, message)
    found = [kind in _WINDOWED for kind in kinds]
    if not any(found):
        return None
    family = FAMILIES[architecture.family]
    if found != [family.is_windowed(layer) for layer in range(len(found))]:
        shown = ", ".join(kinds[:4]) + (", ..." if len(kinds) > 4 else "")
        message = f"layers see {shown}, which is not built"
        raise refusal(LLM05, name, message)
    return size or None


def _is_switched_on(name: str, architecture: Architecture, values: JsonObject) -> bool:
    parsed = values.get("use_sliding_window")
    if parsed is not None and not isinstance(parsed, bool):
        message = f"`use_sliding_window` is {backquote(str(parsed))}, expected true or false"
        raise refusal(LLM02, name, message)
    return architecture.has_windows or parsed is True


def _kinds(name: str, values: JsonObject) -> list[str] | None:
    """What each layer sees, where the configuration says so."""
    parsed = values.get("layer_types", values.get("attention_layers"))
    if parsed is None and "attention_types" in values:
        parsed = _expand_repeats(values["attention_types"]) or values["attention_types"]
    if parsed is None and values.get("max_window_layers") is not None:
        parsed = _from_layer(name, values)
    if parsed is None:
        return None
    if not isinstance(parsed, list) or not all(map(_is_kind, parsed)):
        known = ", ".join(sorted(_WINDOWED | _WHOLE))
        message = f"what layers see is {backquote(str(parsed)[:60])}, expected a list of {known}"
        raise refusal(LLM05, name, message)
    return parsed


def _is_kind(kind: object) -> bool:
    return isinstance(kind, str) and kind in _WINDOWED | _WHOLE


def _expand_repeats(types: object) -> list[str] | None:
    """`[[["global", "local"], 12]]`, as GPT-Neo has it."""
    try:
        parts = [(list(kinds), int(count)) for kinds, count in types]  # type: ignore[attr-defined]
    except (OverflowError, TypeError, ValueError):
        return None
    if sum(len(kinds) * max(count, 0) for kinds, count in parts) > _MOST_LAYERS:
        return None
    return list(chain.from_iterable(kinds * count for kinds, count in parts))


def _from_layer(name: str, values: JsonObject) -> list[str] | None:
    """Qwen's: layers from a number on have windows."""
    first, count = values["max_window_layers"], values.get("num_hidden_layers")
    if not isinstance(first, int):
        message = f"`max_window_layers` is {backquote(str(first))}, expected a number of layers"
        raise refusal(LLM02, name, message)
    if not isinstance(count, int) or count > _MOST_LAYERS:
        return None
    return ["full_attention" if at < first else "sliding_attention" for at in range(count)]

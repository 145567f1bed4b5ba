"""The inputs and outputs of a decoder as exporters name them: tokens, places, a cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nacre.base.excerpt import backquote, safe
from nacre.llm.model.problems import refusal
from nacre.llm.rules.graph import LLM30

_PAST = re.compile(
    r"past(?:_key_values)?[._](?:([0-9]{1,4})[._])?(keys?|values?|k|v)(?:[._]([0-9]{1,4}))?"
)
_PRESENT = re.compile(
    r"present(?:_key_values)?[._](?:([0-9]{1,4})[._])?(keys?|values?|k|v)(?:[._]([0-9]{1,4}))?"
)
_TOKENS, _MASK, _POSITIONS, _BRANCH = (
    "input_ids", "attention_mask", "position_ids", "use_cache_branch",
)  # fmt: skip
_LOGITS = "logits"
_MOST_SIZE = 1 << 16  # of heads and of their sizes
_MOST_ELEMENTS = 1 << 21  # of a token in all layers; the largest models have an eighth
_HELP = (
    "export it with past and present, such as `optimum-cli export onnx --task "
    "text-generation-with-past`"
)


@dataclass(frozen=True)
class CachePort:
    """A part of the cache: the input with its rows, and the output that has the new ones, too."""

    past: str
    present: str


@dataclass(frozen=True)
class Ports:
    """What a decoder's graph takes and gives."""

    mask: str | None
    positions: str | None  # None: nodes count them
    branch: str | None  # says whether there is a cache
    caches: tuple[CachePort, ...]  # keys and values of each layer in turn
    kv_heads: int
    head_size: int
    tokens: str = _TOKENS
    logits: str = _LOGITS

    context: int = 0  # not said by a graph

    @property
    def layers(self) -> int:
        """How many layers have a cache."""
        return len(self.caches) // 2


def find_ports(name: str, graph: Any) -> Ports:  # noqa: ANN401 - onnx.GraphProto
    """The ports of a graph; InputError where they are not those of a decoder."""
    held = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in held}
    outputs = [value.name for value in graph.output]
    for needed, names, what in ((_TOKENS, inputs, "input"), (_LOGITS, outputs, "output")):
        if needed not in names:
            raise _refusal(name, f"the graph has no {what} {backquote(needed)}")
    past, present = _parts(name, inputs, _PAST), _parts(name, outputs, _PRESENT)
    caches = _pairs(name, past, present)
    known = {_TOKENS, _MASK, _POSITIONS, _BRANCH, *past.values()}
    odd = next((given for given in inputs if given not in known), None)
    if odd is not None:
        raise _refusal(name, f"the graph has an input {backquote(odd)}, which is not known")
    heads, size = _sizes(name, [inputs[cache.past] for cache in caches])
    if heads * size * len(caches) > _MOST_ELEMENTS:
        message = f"a token has {heads * size * len(caches):,} elements in the cache"
        raise _refusal(name, f"{message}, expected {_MOST_ELEMENTS:,} at most")
    return Ports(
        mask=_MASK if _MASK in inputs else None,
        positions=_POSITIONS if _POSITIONS in inputs else None,
        branch=_BRANCH if _BRANCH in inputs else None,
        caches=caches,
        kv_heads=heads,
        head_size=size,
    )


def _parts(name: str, names: Iterable[str], form: re.Pattern[str]) -> dict[tuple[int, str], str]:
    """Parts of a cache by layer, and `k` or `v`."""
    found: dict[tuple[int, str], str] = {}
    for given in names:
        match = form.fullmatch(given)
        number = (match.group(1) or match.group(3)) if match else None
        if match is None or number is None:
            continue
        place = int(number), match.group(2)[0]
        if place in found:
            both = f"{backquote(found[place])} and {backquote(given)}"
            raise _refusal(name, f"{both} are the same part of the cache")
        found[place] = given
    return found


def _pairs(
    name: str, past: dict[tuple[int, str], str], present: dict[tuple[int, str], str]
) -> tuple[CachePort, ...]:
    """Keys and values of layers 0, 1, ..., each as it was and as it will be."""
    wanted = [(layer, part) for layer in range((len(past) + 1) // 2) for part in ("k", "v")]
    if not wanted or set(past) != set(wanted) or set(present) != set(wanted):
        message = (
            f"the graph takes {len(past):,} parts of a cache and gives {len(present):,}, expected "
            "`past_key_values.N.key`, `.value` and `present.N.key`, `.value` for each layer"
        )
        raise _refusal(name, message)
    return tuple(CachePort(past[place], present[place]) for place in wanted)


def _sizes(name: str, values: Sequence[Any]) -> tuple[int, int]:
    """Heads of keys and their size, which all parts of the cache have in common."""
    found = {_dims_of(name, value) for value in values}
    if len(found) > 1:
        raise _refusal(name, "parts of the cache differ in their heads, which is not built")
    return found.pop()


def _dims_of(name: str, value: Any) -> tuple[int, int]:  # noqa: ANN401 - onnx.ValueInfoProto
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    if len(dims) != 4 or not all(1 <= dim <= _MOST_SIZE for dim in (dims[1], dims[3])):
        message = f"{backquote(value.name)} is {safe(str(dims))[:60]}"
        raise _refusal(name, f"{message}, expected [batch, heads, past, size] with known heads")
    return dims[1], dims[3]


def _refusal(name: str, message: str) -> Exception:
    return refusal(LLM30, name, message, _HELP)

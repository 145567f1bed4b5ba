"""A checkpoint as a GGUF file would have it: keys, and tensors under GGUF's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.digits import is_digits
from nacre.llm.checkpoint.architectures import Architecture
from nacre.llm.checkpoint.arrays import BUFFERS, Arrays, StateArrays, stored_arrays
from nacre.llm.checkpoint.configuration import (
    CONFIGURATION,
    Configuration,
    configuration_of,
    read_configuration,
)
from nacre.llm.checkpoint.tokenizer import folder_tokenizer_keys, tokenizer_keys
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.config import Config
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array
from nacre.llm.rules.model import LLM01, LLM03

_MOST_DIGITS = 10  # of the number of a layer


@dataclass(frozen=True)
class CheckpointTensor:
    """A tensor as a GGUF file of the model would have it."""

    shape: tuple[int, ...]
    read: Callable[[], Array]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model of transformers."""

    name: str
    metadata: Mapping[str, Value]
    tensors: Mapping[str, CheckpointTensor] = field(repr=False)

    def tensor(self, name: str) -> Array:
        """A tensor in f32."""
        return self.tensors[name].read()


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has a configuration."""
    try:
        return (folder / CONFIGURATION).is_file()
    except (OSError, ValueError):
        return False


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The model of a folder that `save_pretrained` wrote; InputError says what is wrong with it."""
    folder = Path(path)
    found = read_configuration(folder / CONFIGURATION)
    tokenizer = folder_tokenizer_keys(folder, found.values)
    return _checkpoint(str(folder), found, stored_arrays(folder), tokenizer)


def checkpoint_of(model: object, tokenizer: object = None) -> Checkpoint:
    """That of a model in memory, with its tokenizer where texts are wanted."""
    model = getattr(model, "_orig_mod", model)  # what `torch.compile` was given
    name = f"<{type(model).__name__}>"
    values = _call_method(getattr(model, "config", None), "to_dict")
    state = _call_method(model, "state_dict")
    if values is None or state is None:
        message = f"a {type(model).__name__} is no language model of transformers"
        raise refusal(LLM01, name, message, "give a GGUF file, a folder, or a `PreTrainedModel`")
    found = configuration_of(name, values)
    keys = {} if tokenizer is None else tokenizer_keys(name, tokenizer, found.values)
    return _checkpoint(name, found, StateArrays(name, state), keys)


def _call_method(thing: object, method: str) -> Mapping[str, Any] | None:
    """What a method gives; None where there is none, or it gives no mapping."""
    found = getattr(thing, method, None)
    given = found() if callable(found) else None
    return given if isinstance(given, Mapping) else None


def _checkpoint(
    name: str, found: Configuration, arrays: Arrays, tokenizer: Mapping[str, Value]
) -> Checkpoint:
    config = found.config(name)
    tensors = dict(_tensors(name, found, config, arrays))
    for key, factors in found.factors.items():
        tensors[key] = CheckpointTensor(factors.shape, partial(np.asarray, factors))
    metadata = {**found.metadata, **tokenizer}
    return Checkpoint(name, MappingProxyType(metadata), MappingProxyType(tensors))


def _tensors(
    name: str, found: Configuration, config: Config, arrays: Arrays
) -> Iterator[tuple[str, CheckpointTensor]]:
    """Tensors by GGUF's names; what has none keeps its own, and is refused by whoever builds."""
    named: dict[str, str] = {}
    for key, shape in arrays.shapes.items():
        known = _gguf_name(key, found.architecture)
        if BUFFERS.search(key) or (found.is_tied and known == "output.weight"):
            continue
        if known in named:
            message = f"`{named[known]}` and `{key}` are both `{known}`"
            raise refusal(LLM03, name, message)
        named[known] = key
        yield known, _tensor(known, key, shape, found.architecture, config, arrays)


def _gguf_name(key: str, architecture: Architecture) -> str:
    """What GGUF calls a tensor; its own name where that is not known."""
    inner = key.removeprefix(f"{architecture.stem}.")
    module, _, part = inner.rpartition(".")
    if module in architecture.top:
        return f"{architecture.top[module]}.{part}"
    stem, _, rest = module.partition(".")
    number, _, layer = rest.partition(".")
    is_layer = is_digits(number) and len(number) < _MOST_DIGITS
    if stem == architecture.layer_stem and is_layer and layer in architecture.layers:
        return f"blk.{int(number)}.{architecture.layers[layer]}.{part}"
    return key


def _tensor(
    known: str,
    key: str,
    shape: tuple[int, ...],
    architecture: Architecture,
    config: Config,
    arrays: Arrays,
) -> CheckpointTensor:
    """A tensor, changed as far as GGUF has it otherwise."""
    is_matrix = known.startswith("blk.") and len(shape) == 2
    if architecture.has_turned_products and is_matrix:
        return CheckpointTensor(shape[::-1], lambda: np.ascontiguousarray(arrays.read(key).T))
    if architecture.adds_one_to_norms and known.endswith("norm.weight"):
        return CheckpointTensor(shape, lambda: arrays.read(key) + np.float32(1))
    order = _row_order(known, architecture, config)
    if order is not None and shape and shape[0] == order.count:
        # Made behind the read, so that no more rows are counted than the file has.
        return CheckpointTensor(shape, lambda: arrays.read(key)[order.rows()])
    return CheckpointTensor(shape, lambda: arrays.read(key))


@dataclass(frozen=True)
class _RowOrder:
    count: int
    rows: Callable[[], Any]


def _row_order(known: str, architecture: Architecture, config: Config) -> _RowOrder | None:
    """The rows of a product in the order that GGUF has them, where it is another."""
    part = known.rpartition(".")[0].rpartition(".")[2]
    size = config.head_size
    if architecture.is_qkv_by_head and part == "attn_qkv":
        count = 3 * config.heads * size
        return _RowOrder(count, partial(_deinterleave_projections, config.heads, size))
    if not config.family.is_permuted or part not in ("attn_q", "attn_k"):
        return None
    heads = config.heads if part == "attn_q" else config.kv_heads
    turned = config.rotary.dimensions if config.rotary is not None else 0
    return _RowOrder(heads * size, partial(_interleave_halves, heads, size, turned))


def _deinterleave_projections(heads: int, size: int) -> Any:  # noqa: ANN401
    """All queries, then all keys, then all values."""
    return np.arange(3 * heads * size).reshape(heads, 3, size).swapaxes(0, 1).reshape(-1)


def _interleave_halves(heads: int, size: int, turned: int) -> Any:  # noqa: ANN401
    """Of what is turned of each head, the halves become neighbours."""
    inner = np.arange(size)
    inner[:turned] = inner[:turned].reshape(2, -1).T.reshape(-1)
    return (np.arange(heads)[:, None] * size + inner).reshape(-1)

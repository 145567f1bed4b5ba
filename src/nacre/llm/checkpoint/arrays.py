"""Where the arrays of a checkpoint come from: files of a folder, or a model in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nacre.base.excerpt import backquote
from nacre.core.tensor_file import TensorFile, TensorProblem, read_tensor_file
from nacre.llm.checkpoint.json_files import read_json_object
from nacre.llm.model.problems import refusal
from nacre.llm.model.weights import Array
from nacre.llm.rules.model import LLM03

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_SHARD = re.compile(r"[\w-][\w.-]*\.safetensors")
# Tables that follow from the configuration, and that checkpoints carry nevertheless.
BUFFERS = re.compile(r"(^|\.)(rotary_emb\.inv_freq|(attn|attention)\.(bias|masked_bias))$")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt")
_MOST_INDEX_BYTES = 1 << 24


class Arrays(Protocol):
    """Arrays by name, converted to f32 when they are asked for."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each."""
        ...

    def read(self, name: str) -> Array:
        """One of them."""
        ...


class StoredArrays:
    """Those of `.safetensors` files, which stay there until somebody asks."""

    def __init__(self, places: Mapping[str, tuple[str, TensorFile]]) -> None:
        self._tensor_files = places
        self.shapes = {key: self._shape(key) for key in places}

    def read(self, name: str) -> Array:
        """One of them, in f32."""
        path, file = self._tensor_files[name]
        try:
            found = file.tensor(name, file.type_of(name))
        except TensorProblem as problem:
            raise refusal(LLM03, path, str(problem)) from None
        if found.dtype.kind not in "fV" and found.dtype.name != "bfloat16":
            message = f"{backquote(name)} is of {found.dtype}, expected floating point"
            raise refusal(LLM03, path, message)
        with np.errstate(over="ignore"):  # infinite, as it is for PyTorch
            return np.asarray(found, np.float32)

    def _shape(self, name: str) -> tuple[int, ...]:
        path, file = self._tensor_files[name]
        try:
            return file.type_of(name).shape
        except TensorProblem as problem:
            raise refusal(LLM03, path, str(problem)) from None


class StateArrays:
    """Those of a module of PyTorch."""

    def __init__(self, model: str, state: Mapping[str, Any]) -> None:
        self._state = {str(name): value for name, value in state.items()}
        for name, value in self._state.items():
            _require_floats(model, name, value)
        self.shapes = {name: tuple(map(int, value.shape)) for name, value in self._state.items()}

    def read(self, name: str) -> Array:
        """One of them, in f32."""
        value = self._state[name]
        return np.asarray(value.detach().cpu().float().numpy(), np.float32)


def _require_floats(model: str, name: str, value: Any) -> None:  # noqa: ANN401 - of PyTorch
    """InputError for what is no tensor with elements, or not in floating point."""
    what = backquote(name)
    if not all(hasattr(value, part) for part in ("shape", "detach", "is_floating_point")):
        message = f"{what} is a {type(value).__name__}, expected a tensor in floating point"
        raise refusal(LLM03, model, message, "give the model before it was quantised")
    if getattr(value, "is_meta", False):
        message = f"{what} is on the device `meta`: it has no elements"
        raise refusal(LLM03, model, message, "load the weights first")
    if not value.is_floating_point() and value.dim() > 0 and not BUFFERS.search(name):
        raise refusal(LLM03, model, f"{what} is of {value.dtype}, expected floating point")


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights that are read."""
    try:
        return any((folder / name).is_file() for name in (WHOLE, INDEX))
    except (OSError, ValueError):
        return False


def stored_arrays(folder: Path) -> StoredArrays:
    """The arrays of a folder; InputError where it has none that are read."""
    if (folder / WHOLE).is_file():
        return StoredArrays(_tensor_files(folder, [WHOLE]))
    if (folder / INDEX).is_file():
        return StoredArrays(_tensor_files(folder, _shards(folder / INDEX)))
    message = f"the folder has no `{WHOLE}`"
    pickled = next((name for name in _PICKLED if (folder / name).is_file()), None)
    if pickled is None:
        raise refusal(LLM03, str(folder), message)
    help_text = f"`{pickled}` is a program: load it where it is trusted, and `save_pretrained` it"
    raise refusal(LLM03, str(folder), message, help_text)


def _shards(index: Path) -> list[str]:
    """The files that an index names, which lie beside it."""
    named = read_json_object(index, _MOST_INDEX_BYTES).get("weight_map")
    files = sorted({str(file) for file in named.values()}) if isinstance(named, dict) else []
    odd = next((file for file in files if _SHARD.fullmatch(file) is None), None)
    if not files or odd is not None:
        found = "missing" if not files else f"a file {backquote(odd or '')}"
        message = f"`weight_map` is {found}, expected names of files beside it"
        raise refusal(LLM03, str(index), message)
    return files


def _tensor_files(folder: Path, files: list[str]) -> dict[str, tuple[str, TensorFile]]:
    places: dict[str, tuple[str, TensorFile]] = {}
    for file in files:
        path = str(folder / file)
        try:
            read = read_tensor_file(folder / file)
        except TensorProblem as problem:
            raise refusal(LLM03, path, f"the file {problem}") from None
        for key in read.names:
            if key in places:
                raise refusal(LLM03, path, f"{backquote(key)} is in two files")
            places[key] = (path, read)
    return places

"""The weights of a model, by name and shape, in f32; which of a file's tensors nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nacre.base.excerpt import backquote
from nacre.llm.gguf.file import GgufFile
from nacre.llm.gguf.kept_blocks import KeptBlocks, kept_blocks
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM03, LLM04

Array = npt.NDArray[np.float32]
# Tables that follow from keys, and that some tools write nevertheless.
_REDUNDANT = (".attn_rot_embd.", ".rotary_emb.", ".attn.masked_bias", ".attention.masked_bias")
_SHOWN = 3


class HasShape(Protocol):
    """What a file's table says of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy counts: rows first."""
        ...


class ModelFile(Protocol):
    """A model by the keys and names of GGUF, whatever it is stored in."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def metadata(self) -> Mapping[str, Value]:
        """What it says of itself."""
        ...

    @property
    def tensors(self) -> Mapping[str, HasShape]:
        """Its tensors by name."""
        ...

    def tensor(self, name: str) -> Array:
        """One of them, in f32."""
        ...


class Weights:
    """A file's tensors: shapes are compared before any element is looked at, each once."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._used: set[str] = set()
        self._arrays: dict[str, Array] = {}

    @property
    def name(self) -> str:
        """The file's name."""
        return self._file.name

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._file.tensors

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tensor, which must be there with this shape."""
        row = self._file.tensors.get(name)
        if row is None:
            message = f"the file has no tensor {backquote(name)} of {_dims(shape)}"
            raise refusal(LLM03, self.name, message)
        if row.shape != shape:
            message = f"{backquote(name)} is of {_dims(row.shape)}, expected {_dims(shape)}"
            raise refusal(LLM03, self.name, message)
        self._used.add(name)
        if name not in self._arrays:
            self._arrays[name] = self._file.tensor(name)
        return self._arrays[name]

    def optional(self, name: str, shape: tuple[int, ...]) -> Array | None:
        """The same, or None where there is no such tensor."""
        return self.get(name, shape) if self.has(name) else None

    def blocks(self, name: str) -> KeptBlocks | None:
        """The blocks of a matrix that is there, where they can be taken as they are."""
        return kept_blocks(self._file, name) if isinstance(self._file, GgufFile) else None

    def require_all_used(self) -> None:
        """Refuse a file with tensors that nobody asked for."""
        unused = [
            name
            for name in self._file.tensors
            if name not in self._used and not any(part in name for part in _REDUNDANT)
        ]
        if unused:
            shown = ", ".join(map(backquote, unused[:_SHOWN]))
            more = f" and {len(unused) - _SHOWN:,} more" if len(unused) > _SHOWN else ""
            message = f"the architecture does not use the tensors {shown}{more}"
            raise refusal(LLM04, self.name, message)


def _dims(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{dim:,}" for dim in shape)

"""Constants that several bundles have: in one file above their folders, stored and read once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nacre.base.files import HashedFile
from nacre.core.module import Module
from nacre.core.storage import Reference, StoredConstants, stored_constants
from nacre.core.tensor_file import TensorFile
from nacre.core.values import Array

Tensors = Mapping[str, tuple[str, Array]]
_KEY_BYTES = 16


@dataclass(frozen=True)
class SharedConstants:
    """A file of constants in the folder above, which has them under keys that follow from them."""

    file: HashedFile
    keys: frozenset[str]

    def references(self, constants: StoredConstants) -> Iterator[tuple[str, Reference]]:
        """Those of a module that lie in the file, by their keys in the module."""
        for key, (dtype, array) in constants.tensors.items():
            name = _key_of(dtype, array)
            if name in self.keys:
                yield key, Reference(self.file.stored, name)


@dataclass(frozen=True)
class OpenFiles:
    """Files above the folders of bundles that were read already, by their hash."""

    folder: Path
    tensors: dict[str, TensorFile] = field(default_factory=dict)


def tensors_in_all(modules: Sequence[Module]) -> Tensors:
    """The big constants that every one of some modules has, by keys that follow from them."""
    found: dict[str, tuple[str, Array]] = {}
    for number, module in enumerate(modules):
        tensors = stored_constants(module).tensors.values()
        own = {_key_of(dtype, array): (dtype, array) for dtype, array in tensors}
        found = own if not number else {key: found[key] for key in found if key in own}
    return found


def _key_of(dtype: str, array: Array) -> str:
    digest = hashlib.blake2b(f"{dtype} {array.shape}".encode(), digest_size=_KEY_BYTES)
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()

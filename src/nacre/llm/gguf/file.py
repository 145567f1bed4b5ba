"""A GGUF file: metadata, and tensors that are dequantised when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.binary.cursor import Broken
from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, map_bytes, whole_file
from nacre.base.suggest import did_you_mean
from nacre.llm.gguf.cursor import Cursor
from nacre.llm.gguf.formats import dequantise
from nacre.llm.gguf.metadata import Value, read_metadata, read_pair_count
from nacre.llm.gguf.tensors import TensorRow, read_tensor_count, read_tensors
from nacre.llm.rules.gguf import GGF01, GGF02, GGF03

MAGIC = b"GGUF"
_VERSIONS = (2, 3)


@dataclass(frozen=True, eq=False)
class GgufFile:
    """What a file says, and its bytes, which stay in the file until somebody asks."""

    name: str
    version: int
    byte_order: str  # `little` or `big`
    alignment: int
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorRow]  # by name, in the order of the file's table
    _view: memoryview = field(repr=False)

    @property
    def size_bytes(self) -> int:
        """How long the file is."""
        return len(self._view)

    def tensor(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor in f32; its last dimension is the one whose elements lie side by side."""
        row = self._row(name)
        return dequantise(self.blocks(name), row.format).reshape(row.shape)

    def blocks(self, name: str) -> npt.NDArray[Any]:
        """The blocks of a tensor as they lie in the file, a record with named fields each."""
        row = self._row(name)
        dtype = row.format.layout
        if self.byte_order == "big":
            dtype = dtype.newbyteorder(">")
        return np.frombuffer(self._view, dtype, row.elements // row.format.elements, row.offset)

    def _row(self, name: str) -> TensorRow:
        row = self.tensors.get(name)
        if row is None:
            hint = did_you_mean(name, self.tensors)
            raise KeyError(f"no tensor {backquote(name)}{'; ' + hint if hint else ''}")
        return row


def read_gguf(path: str | os.PathLike[str]) -> GgufFile:
    """The file at a path; InputError says what is wrong with it, and at which byte."""
    name = os.fspath(path)
    view = map_bytes(Path(path))
    if isinstance(view, Unreadable):
        raise InputError([GGF01.at(whole_file(name), f"the file {view.reason}")])
    return parse_gguf(view, name)


def parse_gguf(data: bytes | memoryview, name: str = "<bytes>") -> GgufFile:
    """The same of bytes that are at hand."""
    try:
        return _parse(memoryview(data), name)
    except Broken as problem:
        message = f"at byte {problem.offset:,}: {problem.message}"
        finding = problem.rule.at(whole_file(name), message, help=problem.help)
        raise InputError([finding]) from None


def _parse(view: memoryview, name: str) -> GgufFile:
    cursor = Cursor(view)
    version = _version(cursor)
    tensors = read_tensor_count(cursor)
    pairs = read_pair_count(cursor)
    metadata = read_metadata(cursor, pairs)
    rows = read_tensors(cursor, tensors, metadata.alignment, len(view))
    return GgufFile(
        name,
        version,
        cursor.byte_order,
        metadata.alignment,
        MappingProxyType(metadata.values),
        MappingProxyType(rows),
        view,
    )


def _version(cursor: Cursor) -> int:
    """The version; the cursor takes on the byte order in which it is one."""
    if not cursor.remaining:
        raise Broken(GGF02, 0, "the file is empty")
    magic = cursor.take(min(len(MAGIC), cursor.remaining), "the magic number")
    if magic != MAGIC:
        raise Broken(GGF02, 0, f"the file begins with {magic!r}, expected {MAGIC!r}")
    at = cursor.at
    version = cursor.u32("the version")
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in _VERSIONS and swapped in _VERSIONS:
        cursor.byte_order = "big"
        return swapped
    if version not in _VERSIONS:
        message = f"the version is {version:,}, expected 2 or 3"
        help_text = "convert the file with a newer tool" if version == 1 else None
        raise Broken(GGF03, at, message, help_text)
    return version

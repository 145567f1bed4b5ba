"""Tables of SentencePiece, made here: a double array over bytes, and texts behind it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping

_LEAF = 1 << 31


class _DoubleArray:
    """Children of a node lie where its base and their label lead, one in the place of another."""

    def __init__(self) -> None:
        self.units: dict[int, int] = {}
        self._first_free = 1

    def place(self, node: int, keys: list[tuple[bytes, int]], depth: int, label: int) -> None:
        """Write a node whose keys share their first `depth` bytes."""
        leaves = [value for key, value in keys if len(key) == depth]
        children: dict[int, list[tuple[bytes, int]]] = {}
        for key, value in keys:
            if len(key) > depth:
                children.setdefault(key[depth], []).append((key, value))
        wanted = [*children, *([0] if leaves else [])]
        base = self._base(node, wanted)
        self.units[node] = (base ^ node) << 10 | (1 << 8 if leaves else 0) | label
        for one in wanted:
            self.units.setdefault(base ^ one, 0)
        if leaves:
            self.units[base] = leaves[0] | _LEAF
        for one, below in children.items():
            self.place(base ^ one, below, depth + 1, one)

    def _base(self, node: int, wanted: list[int]) -> int:
        while self._first_free in self.units:
            self._first_free += 1
        base = self._first_free
        while any(base ^ one in self.units or base ^ one == node for one in wanted):
            base += 1
        return base


def charsmap(table: Mapping[str, str]) -> bytes:
    """A table that maps these texts."""
    texts = bytearray()
    keys: list[tuple[bytes, int]] = []
    for key in sorted(table):
        keys.append((key.encode(), len(texts)))
        texts += table[key].encode() + b"\0"
    array = _DoubleArray()
    array.units[0] = 0
    array.place(0, keys, 0, 0)
    units = [array.units.get(at, 0) for at in range(max(array.units) + 256)]
    raw = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(raw)) + raw + bytes(texts)


def precompiled(table: Mapping[str, str] | bytes) -> dict[str, str]:
    """The normaliser of `tokenizer.json`."""
    raw = table if isinstance(table, bytes) else charsmap(table)
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(raw).decode()}

"""What is in a GGUF file, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.llm.gguf.file import GgufFile
from nacre.llm.gguf.metadata import Value

_SHOWN_VALUES = 4


@dataclass(frozen=True)
class TypeUse:
    """What a file has in tensors of one type."""

    type: str
    tensors: int
    elements: int
    size_bytes: int

    @property
    def bits(self) -> float:
        """Bits an element."""
        return 8 * self.size_bytes / self.elements


@dataclass(frozen=True)
class GgufInfo:
    """A file in numbers."""

    version: int
    byte_order: str
    alignment: int
    file_bytes: int
    pairs: int
    tensors: int
    elements: int
    tensor_bytes: int
    types: tuple[TypeUse, ...]  # the one with most bytes first


def gguf_info(file: GgufFile) -> GgufInfo:
    """Count it."""
    uses: dict[str, TypeUse] = {}
    for row in file.tensors.values():
        name = row.format.name
        one = uses.get(name, TypeUse(name, 0, 0, 0))
        uses[name] = TypeUse(
            name,
            one.tensors + 1,
            one.elements + row.elements,
            one.size_bytes + row.size_bytes,
        )
    types = tuple(sorted(uses.values(), key=lambda use: -use.size_bytes))
    return GgufInfo(
        file.version,
        file.byte_order,
        file.alignment,
        file.size_bytes,
        len(file.metadata),
        len(file.tensors),
        sum(use.elements for use in types),
        sum(use.size_bytes for use in types),
        types,
    )


def value_text(value: Value) -> str:
    """A value of the metadata on a line; of an array its length and first elements."""
    if isinstance(value, list):
        shown = ", ".join(map(value_text, value[:_SHOWN_VALUES]))
        more = ", ..." if len(value) > _SHOWN_VALUES else ""
        return f"{len(value):,} values: {shown}{more}" if value else "no values"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def metadata_json(values: Mapping[str, Value]) -> dict[str, object]:
    """The metadata for JSON: arrays as they are, numbers that JSON lacks as texts."""
    return {key: _json(value) for key, value in values.items()}


def _json(value: Value) -> object:
    if isinstance(value, list):
        return [_json(element) for element in value]
    is_plain = not isinstance(value, float) or value - value == 0
    return value if is_plain else str(value)

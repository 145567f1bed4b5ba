"""Keys of an architecture in the metadata, each with what it must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.base.excerpt import backquote, safe
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM02, LLM05

# No model is near it; sizes that follow from counts stay far below 64 bits.
_MOST = 1 << 31
LARGEST_NUMBER = 3.4028234e38  # of f32, which weights and tables are made in


@dataclass(frozen=True)
class Keys:
    """The metadata of a file, asked by keys of its architecture: `A.block_count`."""

    file: str
    prefix: str
    values: Mapping[str, Value]

    def count(self, key: str, default: int | None = None) -> int:
        """A number of things, at least 1; an array must say the same for every layer."""
        name = f"{self.prefix}.{key}"
        value = self.values.get(name, default)
        if isinstance(value, list):
            value = self._same_everywhere(name, value)
        if value is None:
            raise refusal(LLM02, self.file, f"the file has no key {backquote(name)}")
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < _MOST:
            message = f"{backquote(name)} is {_excerpt(value)}, expected a number of 1 or more"
            raise refusal(LLM02, self.file, message)
        return value

    def optional_count(self, key: str) -> int | None:
        """The same, or None where there is no such key or it says 0."""
        return self.count(key) if self.values.get(f"{self.prefix}.{key}") else None

    def number(self, key: str, default: float | None = None) -> float:
        """A number above 0 that f32 holds."""
        name = f"{self.prefix}.{key}"
        value = self.values.get(name, default)
        if value is None:
            raise refusal(LLM02, self.file, f"the file has no key {backquote(name)}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= LARGEST_NUMBER:  # type: ignore[operator]
            message = f"{backquote(name)} is {_excerpt(value)}, expected a number above 0"
            raise refusal(LLM02, self.file, message)
        return float(value)  # type: ignore[arg-type]

    def optional_number(self, key: str) -> float | None:
        """The same, or None where there is no such key or it says 0."""
        return self.number(key) if self.values.get(f"{self.prefix}.{key}") else None

    def flag(self, key: str, default: bool) -> bool:
        """Whether something holds."""
        value = self.values.get(f"{self.prefix}.{key}", default)
        if not isinstance(value, bool):
            name = backquote(f"{self.prefix}.{key}")
            message = f"{name} is {_excerpt(value)}, expected true or false"
            raise refusal(LLM02, self.file, message)
        return value

    def text(self, key: str, default: str) -> str:
        """A word."""
        value = self.values.get(f"{self.prefix}.{key}", default)
        if not isinstance(value, str):
            message = f"{backquote(f'{self.prefix}.{key}')} is {_excerpt(value)}, expected a text"
            raise refusal(LLM02, self.file, message)
        return value

    def _same_everywhere(self, name: str, values: list[Value]) -> Value | None:
        if values and all(value == values[0] for value in values):
            return values[0]
        message = f"{backquote(name)} differs from layer to layer, which is not built"
        raise refusal(LLM05, self.file, message)


def _excerpt(value: object) -> str:
    return safe(str(value))[:40]

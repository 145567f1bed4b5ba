"""`tokenizer.json` as parts that know where they stand; what is wrong with one says so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.base.source import Unreadable, read_bytes
from nacre.nac.rules.tokenizer import NAC68, NAC69
from nacre.nac.tisa.bundle import refusal
from nacre.nac.tisa.scores import read_decimal

FILE = "tokenizer.json"
_MOST_BYTES = 1 << 28
_UNSAID = object()


@runtime_checkable
class Serialisable(Protocol):
    """A `tokenizers.Tokenizer`."""

    def to_str(self) -> str:
        """Its `tokenizer.json`."""


class UnsupportedPart(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A part that is malformed, or that TISA cannot say."""

    def __init__(self, rule: Rule, path: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.path = path
        self.message = message
        self.help = help

    def refusal(self) -> InputError:
        """What users see."""
        return refusal(self.rule, f"{self.path}: {self.message}", self.help, FILE)


class Part:
    """A value of the file and its place."""

    def __init__(self, value: object, path: str = "") -> None:
        self.value: Any = value
        self.path = path or "the file"

    def _malformed(self, expected: str) -> UnsupportedPart:
        return UnsupportedPart(
            NAC68, self.path, f"{_describe(self.value)} stands where {expected} is expected"
        )

    def unsupported(self, reason: str, help: str | None = None) -> UnsupportedPart:
        """The part is well-formed, and TISA has no instructions for it."""
        return UnsupportedPart(NAC69, self.path, reason, help)

    def wrong(self, reason: str) -> UnsupportedPart:
        """The part contradicts another one."""
        return UnsupportedPart(NAC68, self.path, reason)

    def __bool__(self) -> bool:
        return self.value is not None

    def __getitem__(self, key: str) -> Part:
        return self.get(key, _UNSAID)

    def get(self, key: str, default: object = None) -> Part:
        """A member; malformed where there is none and no default."""
        if not isinstance(self.value, dict):
            raise self._malformed("an object")
        value = self.value.get(key, default)
        if value is _UNSAID:
            raise self._malformed(f"an object with `{key}`")
        return Part(value, key if self.path == "the file" else f"{self.path}.{key}")

    def has(self, key: str) -> bool:
        """Whether there is such a member."""
        return isinstance(self.value, dict) and key in self.value

    def list(self) -> Iterator[Part]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self._malformed("a list")
        for index, value in enumerate(self.value):
            yield Part(value, f"{self.path}[{index}]")

    def members(self) -> Iterator[tuple[str, Part]]:
        """The members of an object."""
        if not isinstance(self.value, dict):
            raise self._malformed("an object")
        for key, value in self.value.items():
            yield key, Part(value, f"{self.path}.{key}")

    def text(self) -> str:
        """A text that is Unicode."""
        if not isinstance(self.value, str):
            raise self._malformed("a text")
        try:
            self.value.encode("utf-8")
        except UnicodeEncodeError:
            raise self._malformed("a text without halves of surrogate pairs") from None
        return self.value

    def text_or_none(self) -> str | None:
        """The same, or None where it is null or empty."""
        return self.text() or None if self.value is not None else None

    def flag(self) -> bool:
        """A truth value."""
        if not isinstance(self.value, bool):
            raise self._malformed("true or false")
        return self.value

    def integer(self) -> int:
        """A whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._malformed("an integer")
        return self.value

    def number(self) -> float:
        """A number."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self._malformed("a number")
        return float(self.value)


def _describe(value: object) -> str:
    try:
        text = json.dumps(value, default=repr)
    except RecursionError:
        return "what nests too deep"
    return text if len(text) <= 40 else f"{text[:40]}..."


def open_part(source: object) -> Part:
    """The file of a folder, a path, a text, or an object that can write itself."""
    inner = getattr(source, "backend_tokenizer", source)  # what transformers wraps
    try:
        if isinstance(inner, Serialisable):
            return Part(json.loads(inner.to_str()))
        # Numbers of a file are what the library would read.
        return Part(json.loads(_text_of(source), parse_float=read_decimal))
    except (ValueError, RecursionError) as error:
        raise UnsupportedPart(NAC68, FILE, f"this is no JSON: {error}") from None


def _text_of(source: object) -> str | bytes:
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    if not isinstance(source, str | os.PathLike):
        raise UnsupportedPart(
            NAC68, "the tokenizer", f"an object of the type {type(source).__name__} is no tokenizer"
        )
    path = Path(source)
    if path.is_dir():
        path /= FILE
    raw = read_bytes(path, limit=_MOST_BYTES)
    if isinstance(raw, Unreadable):
        raise UnsupportedPart(NAC68, path.name, f"the file {raw.reason}")
    return raw

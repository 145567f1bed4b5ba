"""Buffers whose contents come from outside: the host marks them, the language has no syntax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

_WORDS = ("mutable", "noalias")


class Import(Struct, frozen=True):
    """A buffer that the host provides; read-only and possibly aliased unless it says otherwise."""

    name: str
    is_mutable: bool = False
    may_alias: bool = True


def parse_import(text: str) -> Import:
    """`W`, `X:mutable`, `X:mutable:noalias`; ValueError says what is wrong."""
    name, *words = str(text).split(":")
    unknown = [word for word in words if word not in _WORDS]
    if not name or unknown or len(set(words)) < len(words):
        raise ValueError(f"`{text}` is no import such as W, W:mutable or W:mutable:noalias")
    return Import(name, "mutable" in words, "noalias" not in words)


Imports = Iterable[str | Import] | Mapping[str, str]


def as_imports(imports: Imports) -> tuple[Import, ...]:
    """Imports as a caller gives them: marks, or words by buffer; a later mark replaces one."""
    if isinstance(imports, Mapping):
        imports = [f"{name}:{words}" if words else str(name) for name, words in imports.items()]
    listed = [imports] if isinstance(imports, str) else list(imports)
    parsed = [item if isinstance(item, Import) else parse_import(item) for item in listed]
    return tuple({item.name: item for item in parsed}.values())

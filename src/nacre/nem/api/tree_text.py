"""A syntax tree as indented text."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.source import Source
from nacre.nem.syntax.ast import Document, Node


def tree_text(document: Document, source: Source | None) -> str:
    """One node a line: its kind, its plain fields, and its place."""
    return "\n".join(_lines(document, source, "", 0)) + "\n"


def _lines(node: Node, source: Source | None, label: str, depth: int) -> Iterator[str]:
    plain, inner = [], []
    for name in node.__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, Node):
            inner.append((name, value))
        elif isinstance(value, tuple):
            inner += [
                (f"{name}[{i}]", item) for i, item in enumerate(value) if isinstance(item, Node)
            ]
        elif name not in ("start", "end") and value is not None:
            plain.append(f" {name}={value!r}")
    where = f"{node.start}..{node.end}"
    if source is not None:
        location = source.span(node.start, node.end).location
        where = f"{location.line}:{location.column}"
    head = f"{label}: " if label else ""
    yield f"{'  ' * depth}{head}{type(node).__name__}{''.join(plain)}  @{where}"
    for name, child in inner:
        yield from _lines(child, source, name, depth + 1)

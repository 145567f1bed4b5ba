"""A program with its names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nacre.base.source import Source, Span
from nacre.nem.model.folding import Folded
from nacre.nem.syntax import ast

Level = Literal["DDR", "L2", "L1"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A storage object. None stands for a figure whose mistake has been reported."""

    name: str
    level: Level | None
    engine: int | None  # of L1 only; an unindexed L1 is engine 0
    size: int | None
    align: int
    in_loop: bool
    node: ast.BufferDecl = field(repr=False)

    @property
    def place(self) -> str:
        """The memory that holds it: `DDR`, `L2` or `L1[k]`."""
        return f"L1[{self.engine}]" if self.level == "L1" else str(self.level)


@dataclass(frozen=True, slots=True)
class Region:
    """A view into a buffer; offsets, extents and dimensions may depend on loop variables."""

    buffer: str | None
    offset: Folded
    extent: Folded
    elem: str | None
    shape: tuple[Folded, ...] | None
    layout: str | None
    strides: tuple[Folded, ...] | None
    node: ast.RegionExpr = field(repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """What the rules look at."""

    source: Source
    document: ast.Document
    constants: Mapping[str, int]
    buffers: tuple[Buffer, ...]

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.source.span(node.start, node.end)

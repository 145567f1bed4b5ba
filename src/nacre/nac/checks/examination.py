"""What checks look at: a file, and which of its sections could be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.nac.format.external import External
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.values import NacFile
from nacre.nac.program.blocks import Blocks, blocks_of
from nacre.nac.spec.instructions import CONTROL_FLOW, CONVERGENCE, INPUT


@dataclass(frozen=True)
class Examination:
    """A file under examination."""

    file: NacFile
    source: Source
    lost: frozenset[str]
    external: External | None = None  # the weights beside it, where they could be read

    def has(self, *tags: str) -> bool:
        """Whether these sections can be relied on: a section that is absent is empty."""
        return not self.lost.intersection(tags)

    def position(self, tag: str, record: int, kind: str = "") -> Position:
        """The place of a record of a section."""
        offsets = self.file.record_offsets.get(f"{tag} {kind}" if kind else tag, ())
        offset = offsets[record] if record < len(offsets) else 0
        return Position(offset, tag, record if tag == "OPS " else None)

    def at(self, rule: Rule, place: Position, message: str, help: str | None = None) -> Diagnostic:
        """A finding."""
        return finding(rule, self.source, place, message, help)

    @cached_property
    def blocks(self) -> Blocks:
        """The branches of the program."""
        return blocks_of(self.file.instructions)

    @cached_property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """The offsets of operands of every instruction; 0 stands for a constant."""
        return tuple(operand_offsets(i.op, i.c, i.d) for i in self.file.instructions)


def operand_offsets(op: int, c: tuple[int, ...], d: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of an instruction that point to others before it."""
    if op == INPUT:
        return ()
    if op == CONVERGENCE:
        return c[1:2]
    if op == CONTROL_FLOW:
        return d[:1]
    return d


Check = Callable[[Examination], Iterator[Diagnostic]]

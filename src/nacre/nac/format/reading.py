"""What sections share while a file is read: what is known already, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nacre.base.diagnostics import Diagnostic
from nacre.base.handlers import Handlers
from nacre.base.rules import Rule
from nacre.base.source import Source
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.positions import Position, finding
from nacre.nac.format.values import Bytes, Header
from nacre.nac.rules.container import NAC14

_MOST_FINDINGS = 1000  # a hostile file may have one in every byte


@dataclass
class ReadContext:
    """A file that is being read."""

    source: Source
    header: Header
    signatures: dict[int, str] | None = None  # None: PERM cannot be read
    record_offsets: dict[str, tuple[int, ...]] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # parts that are there and cannot be read

    def report(self, rule: Rule, place: Position, message: str, help: str | None = None) -> None:
        """Keep a finding; a thousand are enough."""
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(finding(rule, self.source, place, message, help))

    def report_broken(self, problem: Broken) -> None:
        """Keep what ended the reading of a part."""
        self.report(problem.rule, problem.position, problem.message, problem.help)

    def report_repeated(
        self, keys: Iterable[int | str], offsets: tuple[int, ...], tag: str, what: str
    ) -> None:
        """Report what is defined twice."""
        seen: set[int | str] = set()
        for key, offset in zip(keys, offsets, strict=True):
            if key in seen:
                shown = f"`{key}`" if isinstance(key, str) else str(key)
                self.report(NAC14, Position(offset, tag), f"{what} {shown} is defined twice")
            seen.add(key)


class SectionCodec(NamedTuple):
    """How a section is read and written; both see what is behind the tag."""

    read: Callable[[Cursor, ReadContext], Any]
    write: Callable[[Any], Bytes | Iterable[Bytes]] | None = None  # None: it asks the header, too


CODECS = Handlers[SectionCodec]()  # by tag, of the sections that are imported

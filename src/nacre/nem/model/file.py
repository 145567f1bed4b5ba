"""A document, and the files that it includes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source, Span
from nacre.nem.syntax.parser import ParseResult


@dataclass(slots=True)
class File:
    """A document, what it includes, and what loading it brought up."""

    parsed: ParseResult
    is_builtin: bool
    includes: list[tuple[Span, File]] = field(default_factory=list)
    device_file: tuple[Span, File] | None = None  # of `device "file"`
    findings: list[Diagnostic] = field(default_factory=list)

    @property
    def source(self) -> Source:
        """The text."""
        return self.parsed.source

    def reachable(self) -> Iterator[File]:
        """The files that this one includes, directly or not, each once; includes come first."""
        seen: set[int] = {id(self)}
        stack = [iter([f for _, f in self.includes])]
        path: list[File] = []
        while stack:
            file = next(stack[-1], None)
            if file is None:
                stack.pop()
                if path:
                    yield path.pop()
            elif id(file) not in seen:
                seen.add(id(file))
                path.append(file)
                stack.append(iter([f for _, f in file.includes]))

    def needed(self) -> Iterator[File]:
        """What a program includes, and the file that has its device."""
        yield from self.reachable()
        if self.device_file is not None:
            yield from (*self.device_file[1].reachable(), self.device_file[1])

"""Documents of bytecode as sources: trees are known, texts are made when somebody asks."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Container, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from nacre.base.binary.cursor import Broken
from nacre.base.source import Source, Unreadable, read_source
from nacre.nem.bytecode.container import Entry, read_file
from nacre.nem.bytecode.document import Content, DocumentReader
from nacre.nem.bytecode.foreign import Foreign
from nacre.nem.bytecode.magic import SUFFIX
from nacre.nem.bytecode.reconstruction import reconstruct
from nacre.nem.spec.rules.bytecode import BYT01, BYT09
from nacre.nem.syntax.ast import Document
from nacre.nem.syntax.parser import ParsedSource, ParseResult

SHIPPED: Final = "nacre"  # the folder of what nacre ships, in files that bring it along
_EMPTY = Document(0, 0, (), (), None, None, ())


def remedy_of(problem: Broken) -> str:
    """How to mend a file that breaks a promise."""
    is_damaged = problem.rule is BYT01
    fetch = "fetch the file again, as binary; or " if is_damaged else ""
    return problem.help or f"{fetch}pack the program again, with `nacre pack`"


class RefusedSource(ParsedSource):
    """Bytes that are no bytecode: an empty document, and why."""

    text = ""
    is_shown = False

    def __init__(
        self,
        name: str,
        path: Path | None,
        problem: Broken,
        library: Library | None = None,
        member: str = "",
    ) -> None:
        super().__init__(name, path, 0)
        self.library = library  # that was read, though not which document of it is meant
        self.member = member  # which one was asked for
        at = f"byte {problem.offset:,}: " if problem.offset else ""
        finding = problem.rule.at(self.span(0, 0), at + problem.message, help=remedy_of(problem))
        self.finding = replace(finding, data={"offset": problem.offset})
        self.parsed = ParseResult(self, _EMPTY, (), (self.finding,))


class BytecodeSource(ParsedSource):
    """A document of a file. Its places are those of the text that the file was made of."""

    def __init__(self, library: Library, entry: Entry, reader: DocumentReader) -> None:
        foreign = reader.foreign
        path = library.path
        name = library.display_name(entry)
        if foreign is not None and foreign.name:
            name = str(Path(name).parent / foreign.name)
        super().__init__(name, path, reader.size if foreign is None else foreign.size)
        self.library, self.member = library, entry.name
        self._found = reader
        document, comments = reader.document()
        self.parsed = ParseResult(self, document, comments, ())

    @cached_property
    def content(self) -> Content:
        """Everything that the file says of the document."""
        return self._found.canonical()

    @property
    def canonical_text(self) -> str:
        """The text in canonical form."""
        return self.content.text

    @cached_property
    def text(self) -> str:
        """The text that places are counted in; blanks stand for what is not known of it."""
        foreign = self._found.foreign
        if foreign is None:
            return self.canonical_text
        original = _original_text(foreign, self._places_of_original())
        return reconstruct(self.content, self.parsed, foreign) if original is None else original

    def _places_of_original(self) -> list[Path]:
        """Folders where the text may lie that the document was made of.

        Documents keep their places to each other: beside the packed file lie the texts of the
        program that it was packed for, or all of them in their folders.
        """
        if self.path is None:
            return []
        own = posixpath.dirname(self.member)
        program = posixpath.dirname(self.library.entry_names[0])
        between = posixpath.relpath(own or ".", program or ".")
        return [self.path.parent / way for way in dict.fromkeys((between, own))]

    @property
    def key(self) -> str:
        """What the document is known by."""
        return f"{self.library.key}/{self.member}"

    def enclosed(self, text: str) -> tuple[str, ParseResult] | None:
        """The document that an include means, where the file has it."""
        member = self.library.included(self.member, text)
        if member is None:
            return None
        return f"{self.library.key}/{member}", self.library.document(member).parsed

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line."""
        foreign = self._found.foreign
        if foreign is None:
            return Source(self.name, self.text).line_starts
        lines: list[int] = foreign.line_starts.tolist()
        return lines


def _original_text(foreign: Foreign, folders: Iterable[Path]) -> str | None:
    """The text that a document was made of, where it lies in one of these unchanged."""
    for folder in folders if foreign.name else ():
        source = read_source(folder / foreign.name)
        if (
            not isinstance(source, Unreadable)
            and hashlib.sha256(source.text.encode()).digest() == foreign.sha256
        ):
            return source.text
    return None


def shipped_name(text: str) -> str:
    """What a file that nacre ships is called in a file that brings it along."""
    return f"{SHIPPED}/{text}"


def included_name(names: Container[str], member: str, text: str) -> str | None:
    """Which of the documents an include in one of them means."""
    name = posixpath.normpath(posixpath.join(posixpath.dirname(member), text))
    return next((n for n in (name, shipped_name(text)) if n in names), None)


class Library:
    """The documents of a file; each is read when it is asked for."""

    def __init__(self, data: bytes, name: str, path: Path | None) -> None:
        self.name, self.path = name, path
        self.entries = {entry.name: entry for entry in read_file(data)}
        self._sources: dict[str, BytecodeSource] = {}

    @property
    def entry_names(self) -> list[str]:
        """The documents that are there for themselves."""
        return [entry.name for entry in self.entries.values() if entry.is_entry]

    def display_name(self, entry: Entry) -> str:
        """What a document is called in findings."""
        return self.name if [entry.name] == self.entry_names else f"{self.name}/{entry.name}"

    def source(self, member: str = "") -> BytecodeSource:
        """A document, the only one where none is named; Broken where it cannot be had."""
        names = self.entry_names
        if not member and len(names) == 1:
            member = names[0]
        if member not in self.entries:
            raise self._unknown(member)
        if member not in self._sources:
            entry = self.entries[member]
            self._sources[member] = BytecodeSource(
                self, entry, DocumentReader(entry.sections, entry.has_compressed)
            )
        return self._sources[member]

    def _unknown(self, member: str) -> Broken:
        names = ", ".join(f"`{name}`" for name in self.entry_names[:8])
        help_ = f"name one behind the file: `{self.name.rstrip('/')}/{self.entry_names[0]}`"
        if self.path is None:  # it came through a pipe
            example = f"`lib{SUFFIX}/{self.entry_names[0]}`"
            help_ = f"keep it in a file, and name one behind that: {example}"
        if not member:
            return Broken(
                BYT09, 0, f"there are {len(self.entry_names)} programs in it: {names}", help_
            )
        return Broken(BYT09, 0, f"there is no `{member}` in it, but {names}", help_)

    @property
    def key(self) -> str:
        """What the file is known by, whichever way leads to it."""
        return self.name if self.path is None else str(self.path.resolve())

    def document(self, member: str) -> BytecodeSource | RefusedSource:
        """A document that is there, or why it cannot be read."""
        try:
            return self.source(member)
        except Broken as problem:
            return RefusedSource(f"{self.name}/{member}", self.path, problem)

    def included(self, member: str, text: str) -> str | None:
        """The document that an include in another one means, if it is here."""
        return included_name(self.entries, member, text)


def bytecode_source(
    data: bytes, name: str, path: Path | None = None, member: str = ""
) -> BytecodeSource | RefusedSource:
    """The document that bytes hold, or why they hold none."""
    library = None
    try:
        library = Library(data, name, path)
        return library.source(member)
    except Broken as problem:
        shown = f"{name}/{member}" if member and library is not None else name
        return RefusedSource(shown, path, problem, library, member)

"""Source to document: includes, then a program or a config document."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Edit, Fix, has_errors, in_order
from nacre.base.fixes import insertion_fix, removal_fix
from nacre.base.source import Source, Span
from nacre.nem.spec.rules.document import DOC01, DOC02, DOC03, DOC04, DOC05
from nacre.nem.syntax.ast import (
    Comment,
    DeviceConfig,
    DeviceRef,
    Document,
    Include,
    ProgramHeader,
    TypeFamily,
)
from nacre.nem.syntax.cursor import Cursor, Recover, opens_device
from nacre.nem.syntax.devices import device_config
from nacre.nem.syntax.expressions import string_literal
from nacre.nem.syntax.families import type_family
from nacre.nem.syntax.lexer import Tokens, tokenize
from nacre.nem.syntax.statements import StatementReader


class ParseResult(Struct, frozen=True):
    """A source, its tree, its comments, and what is wrong with its syntax."""

    source: Source
    document: Document
    comments: tuple[Comment, ...]
    diagnostics: tuple[Diagnostic, ...]
    unread: frozenset[str] = frozenset()  # devices and families that could not be read

    @property
    def is_valid(self) -> bool:
        """Whether the text follows the grammar."""
        return not has_errors(self.diagnostics)


class ParsedSource(Source):
    """A source that comes with its tree, and may make its text only when that is asked for."""

    parsed: ParseResult

    def __init__(self, name: str, path: Path | None, size: int) -> None:
        self.__dict__.update(name=name, path=path)
        self._size = size

    def __setattr__(self, name: str, value: object) -> None:
        # Filled in by its makers, one thing after the other: a tree knows its source.
        object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """How many characters the text has, though it may not be there."""
        return self._size

    @property
    def canonical_text(self) -> str:
        """The text in canonical form."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """What the source is known by, whichever way leads to it."""
        return self.name if self.path is None else str(self.path.resolve())

    def enclosed(self, text: str) -> tuple[str, ParseResult] | None:
        """What an include means, and its key, where that comes with this source."""
        return None


def parse(source: Source) -> ParseResult:
    """Read a whole document; every mistake is reported, and there is always a tree."""
    if isinstance(source, ParsedSource):
        return source.parsed
    return parse_tokens(source, tokenize(source))


def parse_tokens(source: Source, tokens: Tokens) -> ParseResult:
    """The same for a source whose tokens are known."""
    reader = _DocumentReader(Cursor(source, tokens))
    document = reader.read()
    findings = in_order([*tokens.diagnostics, *reader.findings])
    return ParseResult(source, document, tokens.comments, tuple(findings), frozenset(reader.unread))


@dataclass(slots=True)
class _Parts:
    includes: list[Include] = field(default_factory=list)
    configs: list[TypeFamily | DeviceConfig] = field(default_factory=list)
    device: DeviceRef | None = None
    header: ProgramHeader | None = None

    @property
    def has_device(self) -> bool:
        return any(isinstance(config, DeviceConfig) for config in self.configs)


class _DocumentReader:
    """Reads the top level, where the order of things matters."""

    def __init__(self, cursor: Cursor) -> None:
        self._c = cursor
        self._parts = _Parts()
        self.unread: list[str] = []
        self._statements = StatementReader(cursor)
        # Which word begins what; anything else is a statement.
        self._readers = {
            "include": self._include,
            "program": self._program,
            "device": self._device,
            "type_family": self._family,
        }

    @property
    def findings(self) -> list[Diagnostic]:
        """What was reported so far."""
        return self._c.findings

    def read(self) -> Document:
        """The document up to the end of the file."""
        c, parts = self._c, self._parts
        while c.texts[c.i]:
            reader = self._readers.get(c.texts[c.i])
            if reader is None or c.texts[c.i + 1] == "=":
                self._statements.read()
                continue
            c.begin_statement()
            begun = c.i
            try:
                reader()
            except Recover:
                self._recover(begun)
        body = self._statements.finish()
        document = Document(
            0,
            len(c.source.text),
            tuple(parts.includes),
            tuple(parts.configs),
            parts.device,
            parts.header,
            body,
        )
        self._check_kind(document)
        return document

    def _recover(self, begun: int) -> None:
        c = self._c
        word, name = c.texts[begun], c.texts[begun + 1]
        if word == "type_family" or (
            word == "device" and opens_device(c.texts[begun + 2], c.texts[begun + 3])
        ):
            self.unread.append(name)
            c.skip_block()
        else:
            c.skip_to_statement()

    @property
    def _program_has_begun(self) -> bool:
        return self._parts.header is not None or not self._statements.is_empty

    def _include(self) -> None:
        c, parts = self._c, self._parts
        start = c.start()
        is_late = bool(parts.configs) or parts.device is not None or self._program_has_begun
        c.i += 1
        path = string_literal(c)
        if is_late:
            span = c.source.span(start, path.end)
            c.report(DOC01, "`include` stands after something else", start, path.end,
                     help="move it to the top of the file",
                     fix=_move_to_top_fix(span, c.starts[0]))  # fmt: skip
        parts.includes.append(Include(start, path.end, path))

    def _program(self) -> None:
        c, parts = self._c, self._parts
        start = c.start()
        c.i += 1
        if not c.texts[c.i].isidentifier():
            c.fail(DOC05, f"expected the program's name, found {c.describe()}",
                   help="write `program NAME:`")  # fmt: skip
        name = c.reference("the program's name")
        has_colon = c.texts[c.i] == ":"
        c.i += has_colon
        header = ProgramHeader(start, c.last_end(), name)
        if parts.header is not None:
            c.report(DOC02, f"a second program, `{name.name}`, in one file", start, header.end,
                     help="put it in a file of its own")  # fmt: skip
        elif not self._statements.is_empty:
            c.report(DOC05, "the program header stands after a statement", start, header.end,
                     help="move it above the first statement")  # fmt: skip
        elif not has_colon:
            c.report(DOC05, f"the header of program `{name.name}` lacks its colon", start, name.end,
                     help=f"write `program {name.name}:`",
                     fix=insertion_fix(c.source, name.end, ":"))  # fmt: skip
        parts.header = parts.header or header

    def _device(self) -> None:
        c, parts = self._c, self._parts
        start = c.start()
        target: DeviceConfig | DeviceRef
        if c.texts[c.i + 1][:1] == '"':
            c.i += 1
            path = string_literal(c)
            target = DeviceRef(start, path.end, path)
        elif opens_device(c.texts[c.i + 2], c.texts[c.i + 3]):
            target = device_config(c)
        else:
            c.i += 1
            name = c.reference("a device's name, a file name in quotes, or a configuration")
            target = DeviceRef(start, name.end, name)
        if self._program_has_begun:
            end = target.end if isinstance(target, DeviceRef) else target.name.end
            c.report(DOC03, "`device` stands after the program has begun", start, end,
                     help="move it above the program header")  # fmt: skip
        elif parts.device is not None or (isinstance(target, DeviceRef) and parts.has_device):
            end = target.end if isinstance(target, DeviceRef) else target.name.end
            c.report(DOC03, "a program has one `device` directive", start, end,
                     help="keep one of them")  # fmt: skip
        if isinstance(target, DeviceConfig):
            parts.configs.append(target)
        else:
            parts.device = parts.device or target

    def _family(self) -> None:
        self._parts.configs.append(type_family(self._c))

    def _check_kind(self, document: Document) -> None:
        """What can only be said once it is known whether this is a program."""
        if not document.is_program:
            return
        c = self._c
        for family in document.families:
            name = family.name
            c.report(DOC04, f"type family `{name.name}` stands in a program", name.start, name.end,
                     help="put it in a file of its own and include that")  # fmt: skip
        begun = min(
            [s.start for s in document.body[:1]]
            + [part.start for part in (document.header, document.device) if part is not None]
        )
        for device in document.devices[1:]:
            if device.start < begun:
                name = device.name
                c.report(
                    DOC03,
                    f"a second device, `{name.name}`, in a program",
                    name.start,
                    name.end,
                    help="put the devices in a file of their own and include that",
                )


def _move_to_top_fix(span: Span, first: int) -> Fix:
    """Put a stretch of text on a line of its own before the first word of the file."""
    source = span.source
    newline = "\r\n" if "\r\n" in source.text else "\n"
    top = Edit(source.span(first, first), source.text[span.start : span.end] + newline)
    return Fix("move it to the top of the file", (top, *removal_fix(span).edits))

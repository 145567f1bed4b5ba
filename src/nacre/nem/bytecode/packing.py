"""Texts to files and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from nacre.base.binary.cursor import Broken
from nacre.base.diagnostics import InputError
from nacre.base.source import Source, whole_file
from nacre.nem.bytecode.container import Member, read_file, write_file
from nacre.nem.bytecode.document import Content, DocumentReader, write_document
from nacre.nem.bytecode.foreign import Foreign, comment_starts, places_of
from nacre.nem.bytecode.library import (
    BytecodeSource,
    RefusedSource,
    bytecode_source,
    remedy_of,
)
from nacre.nem.bytecode.tree_writer import tree_columns
from nacre.nem.bytecode.trivia import trivia_of
from nacre.nem.spec.rules.bytecode import BYT08
from nacre.nem.syntax.ast import StringLit
from nacre.nem.syntax.formatter import format_parsed
from nacre.nem.syntax.parser import ParseResult, parse
from nacre.nem.syntax.printer import string_text

NO_PATHS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOptions:
    """What is kept of a text beside the program."""

    comments: bool = True
    positions: bool = True  # of a text that is not canonical; else those of the canonical one


def content_of(
    source: Source, options: PackOptions = PackOptions(), paths: Mapping[str, str] = NO_PATHS
) -> Content:
    """What a file keeps of a source; InputError where it does not follow the grammar.

    `paths` has other paths for some of those that it includes.
    """
    parsed = parse(source)
    if not parsed.is_valid:
        raise InputError(parsed.diagnostics)
    if isinstance(source, BytecodeSource):
        return _repacked_content(source, options, paths)
    stored = parsed if options.comments else _without_comments(parsed)
    text = format_parsed(_with_paths(stored, paths))
    if text == source.text:
        canonical = parsed
    else:
        canonical = parse(Source(source.name, text))
    trivia = trivia_of(text, canonical.document, canonical.comments)
    content = Content(canonical.document, canonical.comments, trivia)
    if not canonical.is_valid or content.text != text:
        message = "its canonical text reads otherwise: a name is taken for a word of the language"
        raise InputError([BYT08.at(source.span(0, 0), message, help="give that name another one")])
    if text == source.text or not options.positions:
        return content
    return Content(content.document, content.comments, trivia, _foreign(parsed, content))


def _repacked_content(
    source: BytecodeSource, options: PackOptions, paths: Mapping[str, str]
) -> Content:
    """What is kept of a document that was packed already: its places stay those of its text."""
    found = source.content
    foreign = found.foreign if options.positions else None
    if options.comments and not paths:
        return replace(found, foreign=foreign)
    if foreign is not None and not options.comments:
        none = foreign.places.comments[:0]
        foreign = replace(foreign, places=replace(foreign.places, comments=none))
    again = content_of(Source(source.name, found.text), options, paths)
    return replace(again, foreign=foreign)


def _with_paths(parsed: ParseResult, paths: Mapping[str, str]) -> ParseResult:
    """The same text with other paths where these are included."""
    document, text = parsed.document, parsed.source.text
    literals = [include.path for include in document.includes]
    if document.device is not None and isinstance(document.device.target, StringLit):
        literals.append(document.device.target)
    for literal in reversed(literals):
        if literal.value in paths:
            path = string_text(paths[literal.value])
            text = f"{text[: literal.start]}{path}{text[literal.end :]}"
    return parsed if text == parsed.source.text else parse(Source(parsed.source.name, text))


def _without_comments(parsed: ParseResult) -> ParseResult:
    """The same text with blanks where comments stood."""
    text = list(parsed.source.text)
    for comment in parsed.comments:
        text[comment.start : comment.end] = " " * (comment.end - comment.start)
    return parse(Source(parsed.source.name, "".join(text)))


def _foreign(parsed: ParseResult, canonical: Content) -> Foreign:
    """Where everything stands in the text that a canonical one was made of."""
    source = parsed.source
    comments = comment_starts(canonical.trivia.texts, parsed.comments)
    name = source.path.name if source.path is not None else ""
    name = name.encode(errors="replace").decode()  # a file system may have names that are no text
    return Foreign(
        name,
        hashlib.sha256(source.text.encode()).digest(),
        len(source.text),
        np.array(source.line_starts, np.int64),
        places_of(tree_columns(parsed.document).nodes, comments),
    )


def pack_contents(contents: Sequence[tuple[str, bool, Content]]) -> bytes:
    """A file of documents: each with its name, and whether it is there for itself."""
    members = []
    for name, own, found in contents:
        made = tree_columns(found.document)
        members.append(Member(name, own, write_document(found, made), made.has_compressed))
    data = write_file(members)
    _require_readable(data)
    return data


def _require_readable(data: bytes) -> None:
    """Judge a file as whoever reads it will: few bytes that stand for too much are refused."""
    name = "<program>"
    try:
        for entry in read_file(data):
            name = entry.name or name
            DocumentReader(entry.sections, entry.has_compressed)
    except Broken as problem:
        finding = problem.rule.at(whole_file(name), problem.message, help=remedy_of(problem))
        raise InputError([finding]) from None


def pack(text: str) -> bytes:
    """A text as bytecode; raises InputError when it does not follow the grammar."""
    return pack_contents([("", True, content_of(Source("<text>", text)))])


def unpack(data: bytes) -> str:
    """The canonical text of bytecode with one program; raises InputError for what is none."""
    source = bytecode_source(data, "<bytes>")
    if isinstance(source, RefusedSource):
        raise InputError([source.finding])
    return source.canonical_text

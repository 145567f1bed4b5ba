"""The canonical form of a document. Comments and groups of lines stay; nothing changes meaning."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.syntax.ast import Comment, DeviceConfig, Document, NameRef, Node
from nacre.nem.syntax.layout import INDENT, Line, LineWriter
from nacre.nem.syntax.layout_config import lay_out_device, lay_out_family
from nacre.nem.syntax.lexer import tokenize
from nacre.nem.syntax.parser import ParsedSource, ParseResult, parse, parse_tokens
from nacre.nem.syntax.printer import string_text


def format_source(source: Source) -> str:
    """The canonical text; raises InputError when the source does not follow the grammar."""
    tokens = None if isinstance(source, ParsedSource) else tokenize(source)
    parsed = parse(source) if tokens is None else parse_tokens(source, tokens)
    if not parsed.is_valid:
        raise InputError(parsed.diagnostics)
    return format_parsed(parsed) if tokens is None else _format(parsed, tokens.starts)


def format_parsed(parsed: ParseResult) -> str:
    """The canonical text of a document without syntax errors."""
    if isinstance(parsed.source, ParsedSource):
        return parsed.source.canonical_text
    return _format(parsed, tokenize(parsed.source).starts)


def _format(parsed: ParseResult, tokens: Sequence[int]) -> str:
    text = parsed.source.lined_text
    writer = LineWriter(text, parsed.comments, tokens)
    _document(writer, parsed.document)
    placed = _assign_comments(writer.lines, parsed.comments, text, tokens)
    out: list[str] = []
    after_opening = True  # no blank line at the top of the file or of a block
    for indent, content, wants_blank, opens in _weave_comments(writer.lines, placed, text):
        if wants_blank and not after_opening:
            out.append("")
        out.append(" " * (indent * INDENT) + content)
        after_opening = opens
    return "\n".join(out) + "\n" if out else ""


def tree_lines(document: Document, broken: frozenset[int] = frozenset()) -> list[Line]:
    """The lines of a tree alone; statements whose `id` is given stand on several in any case."""
    writer = _TreeWriter(broken)
    _document(writer, document)
    return writer.lines


class _TreeWriter(LineWriter):
    """Lays out a tree that has no text; where lines came from is not known."""

    def __init__(self, broken: frozenset[int]) -> None:
        super().__init__("", (), ())
        self._kept = broken

    def token(self, offset: int, steps: int) -> int:
        """No token is known: everything stands at 0."""
        return 0

    def _has_comments(self, node: Node) -> bool:
        return id(node) in self._kept


def _document(writer: LineWriter, document: Document) -> None:
    for include in document.includes:
        writer.add(0, f"include {string_text(include.path.value)}", include.start, item=True)
    if document.device is not None:
        target = document.device.target
        name = target.name if isinstance(target, NameRef) else string_text(target.value)
        writer.add(0, f"device {name}", document.device.start, item=True)
    for config in document.configs:
        if isinstance(config, DeviceConfig):
            lay_out_device(writer, config)
        else:
            lay_out_family(writer, config)
    if document.header is not None:
        writer.add(0, f"program {document.header.name.name}:", document.header.start, item=True)
    writer.statements(document.body, 0)


@dataclass(slots=True)
class _LineComments:
    """The comments of a line: those above it and the one behind it."""

    above: list[Comment] = field(default_factory=list)
    behind: Comment | None = None

    def put_behind(self, comment: Comment) -> None:
        """Put a comment behind the line; one that is there already goes above."""
        if self.behind is not None:
            self.above.append(self.behind)
        self.behind = comment


def _assign_comments(
    lines: list[Line], comments: tuple[Comment, ...], text: str, tokens: Sequence[int]
) -> list[_LineComments]:
    """Which comments go to which line; the last entry has those at the end of the document.

    A comment that shared its line with code goes behind the line that now holds that code; of
    several, the last one. Another goes above the line that begins with the code that followed it;
    where no line begins there, above the one that it stood in.
    """
    order = sorted(range(len(lines)), key=lambda index: lines[index].start)
    starts = [lines[index].start for index in order]
    by_line = [_LineComments() for _ in range(len(lines) + 1)]
    for comment in comments:
        at = bisect_right(starts, comment.start)
        following = tokens[bisect_right(tokens, comment.start)]
        precedes_line = at < len(order) and starts[at] == following
        if at and shares_line(text, comment.start):
            by_line[order[at - 1]].put_behind(comment)
        elif at and following < len(text) and not precedes_line:
            by_line[order[at - 1]].above.append(comment)
        else:
            by_line[order[at] if at < len(order) else len(lines)].above.append(comment)
    return by_line


def _weave_comments(
    lines: list[Line], by_line: list[_LineComments], text: str
) -> Iterator[tuple[int, str, bool, bool]]:
    """Lines and comments in output order.

    With each its indent, its text, whether a blank line stood before it, whether it opens a block.
    """
    index = 0
    while index < len(lines):
        line, comments = lines[index], by_line[index]
        for comment in comments.above:
            indent = line.indent + line.closes
            yield indent, comment.text, follows_blank(text, comment.start), False
        content, count = _join_line(lines, by_line, index)
        behind = f"  {comments.behind.text}" if comments.behind is not None else ""
        wants_blank = line.is_item and follows_blank(text, line.start)
        yield line.indent, content + behind, wants_blank, line.opens and count == 1
        index += count
    for comment in by_line[-1].above:
        yield 0, comment.text, follows_blank(text, comment.start), False


def _join_line(lines: list[Line], by_line: list[_LineComments], index: int) -> tuple[str, int]:
    """The text of a line and how many lines that takes; comments keep statements broken."""
    line = lines[index]
    if line.joined is None:
        return line.text, 1
    comments = by_line[index : index + line.parts]
    if any(p.behind is not None for p in comments) or any(p.above for p in comments[1:]):
        return line.text, 1
    return line.joined, line.parts


def shares_line(text: str, offset: int) -> bool:
    """Whether code stands before the comment on its line."""
    return bool(text[text.rfind("\n", 0, offset) + 1 : offset].strip())


def follows_blank(text: str, offset: int) -> bool:
    """Whether an empty line stands right before `offset`."""
    newlines = 0
    while offset > 0 and newlines < 2 and (c := text[offset - 1]) in " \t\r\n":
        newlines += c == "\n"
        offset -= 1
    return newlines == 2

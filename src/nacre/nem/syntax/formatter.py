"""The canonical form of a document. Comments and groups of lines stay; nothing changes meaning."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.syntax.ast import Comment, DeviceConfig, Document, NameRef
from nacre.nem.syntax.layout import INDENT, Line, Sheet
from nacre.nem.syntax.layout_config import lay_out_device, lay_out_family
from nacre.nem.syntax.parser import Parsed, parse
from nacre.nem.syntax.printer import string_text


def format_source(source: Source) -> str:
    """The canonical text; raises InputError when the source does not follow the grammar."""
    parsed = parse(source)
    if not parsed.is_valid:
        raise InputError(parsed.diagnostics)
    return format_parsed(parsed)


def format_parsed(parsed: Parsed) -> str:
    """The canonical text of a document without syntax errors."""
    text = parsed.source.text
    sheet = Sheet(text, parsed.comments)
    _document(sheet, parsed.document)
    out: list[str] = []
    after_opening = True  # no blank line at the top of the file or of a block
    for indent, content, wants_blank, opens in _woven(sheet.lines, parsed.comments, text):
        if wants_blank and not after_opening:
            out.append("")
        out.append(" " * (indent * INDENT) + content)
        after_opening = opens
    return "\n".join(out) + "\n" if out else ""


def _document(sheet: Sheet, document: Document) -> None:
    for include in document.includes:
        text = f"include {string_text(include.path.value)}"
        sheet.add(0, text, include.start, include.end, item=True)
    if document.device is not None:
        target = document.device.target
        name = target.name if isinstance(target, NameRef) else string_text(target.value)
        sheet.add(0, f"device {name}", document.device.start, document.device.end, item=True)
    for config in document.configs:
        if isinstance(config, DeviceConfig):
            lay_out_device(sheet, config)
        else:
            lay_out_family(sheet, config)
    if document.header is not None:
        text = f"program {document.header.name.name}:"
        sheet.add(0, text, document.header.start, document.header.end, item=True)
    sheet.statements(document.body, 0)


def _woven(
    lines: list[Line], comments: tuple[Comment, ...], text: str
) -> Iterator[tuple[int, str, bool, bool]]:
    """Lines and comments in output order.

    With each its indent, its text, whether a blank line stood before it, whether it opens a block.
    """
    before, trailing = _assign(lines, comments, text)
    for index, line in enumerate(lines):
        for comment in before.get(index, ()):
            indent = line.indent + line.closes
            yield indent, comment.text, _follows_blank(text, comment.start), False
        wants_blank = line.is_item and _follows_blank(text, line.start)
        behind = trailing.get(index)
        content = f"{line.text}  {behind.text}" if behind else line.text
        yield line.indent, content, wants_blank, line.opens
    for comment in before.get(len(lines), ()):
        yield 0, comment.text, _follows_blank(text, comment.start), False


def _assign(
    lines: list[Line], comments: tuple[Comment, ...], text: str
) -> tuple[dict[int, list[Comment]], dict[int, Comment]]:
    """Which comments go above which line, and which one goes behind it.

    A comment that shared its line with code goes behind the line that now holds that code; of
    several, the last one. All others go above the code that followed them.
    """
    order = sorted(range(len(lines)), key=lambda index: lines[index].start)
    starts = [lines[index].start for index in order]
    before: dict[int, list[Comment]] = {}
    trailing: dict[int, Comment] = {}
    for comment in comments:
        at = bisect_right(starts, comment.start)
        covering = order[at - 1] if at else None
        if covering is not None and _shares_line(text, comment.start):
            if covering in trailing:
                before.setdefault(covering, []).append(trailing[covering])
            trailing[covering] = comment
            continue
        if covering is not None and comment.start < lines[covering].end:
            target = covering
        else:
            target = order[at] if at < len(order) else len(lines)
        before.setdefault(target, []).append(comment)
    return before, trailing


def _shares_line(text: str, offset: int) -> bool:
    """Whether code stands before the comment on its line."""
    return bool(text[text.rfind("\n", 0, offset) + 1 : offset].strip())


def _follows_blank(text: str, offset: int) -> bool:
    """Whether an empty line stands right before `offset`."""
    newlines = 0
    while offset > 0 and newlines < 2 and (c := text[offset - 1]) in " \t\r\n":
        newlines += c == "\n"
        offset -= 1
    return newlines == 2

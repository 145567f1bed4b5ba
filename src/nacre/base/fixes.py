"""Fixes: how one is made, and what a text is with some of them applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from nacre.base.diagnostics import Edit, Fix
from nacre.base.excerpt import backquote
from nacre.base.source import Source, Span
from nacre.base.suggest import intended_name

_BLANKS = " \t"


def replacement_fix(span: Span, text: str) -> Fix:
    """Write something else in a place."""
    return Fix(f"write {backquote(text)}", (Edit(span, text),))


def insertion_fix(source: Source, offset: int, text: str) -> Fix:
    """Add what is missing."""
    return Fix(f"add {backquote(text.strip())}", (Edit(source.span(offset, offset), text),))


def include_fix(source: Source, file: str) -> Fix:
    """Add an include before the first word of a file."""
    text, at = source.lined_text, 0
    while text[at : at + 1] == "#" or text[at : at + 1].isspace():
        at = text.find("\n", at) + 1 if text[at] == "#" else at + 1
        if at == 0:
            at = len(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    return insertion_fix(source, at, f'include "{file}"{newline}')


def respelling_fix(
    span: Span, name: str, known: Iterable[str], *, is_user_chosen: bool = False
) -> Fix | None:
    """Write the name that was meant, where it can be one only."""
    meant = intended_name(name, known, is_user_chosen=is_user_chosen)
    return None if meant is None else replacement_fix(span, meant)


def removal_fix(span: Span) -> Fix:
    """Take something out, with the blanks before it; with its line, where it stands alone."""
    text, start, end = span.source.lined_text, span.start, span.end
    removed = text[start:end]
    while start > 0 and text[start - 1] in _BLANKS:
        start -= 1
    begins = start == 0 or text[start - 1] == "\n"
    if begins:
        after = end
        while after < len(text) and text[after] in _BLANKS:
            after += 1
        line_end = _line_end(text, after)
        if line_end > after or after == len(text):
            end = line_end
        else:  # something follows on the line, whose indentation stays
            start, end = span.start, after
    return _removal_of(span.source, start, end, removed)


def item_removal_fix(span: Span) -> Fix:
    """Take an entry out of a list with commas, and one of its commas with it."""
    text, start, end = span.source.text, span.start, span.end
    before = len(text[:start].rstrip())
    if before and text[before - 1] == ",":
        return _removal_of(span.source, before - 1, end, text[start:end])
    after = end + len(text[end:]) - len(text[end:].lstrip())
    if text[after : after + 1] == ",":
        end = after + 1
        while end < len(text) and text[end] in _BLANKS:
            end += 1
    return _removal_of(span.source, start, end, text[start:end])


def reordering_fix(spans: Sequence[Span], order: Sequence[int]) -> Fix:
    """Put stretches of text into each other's places: the i-th place gets stretch `order[i]`."""
    texts = [span.source.text[span.start : span.end] for span in spans]
    edits = tuple(
        Edit(span, texts[chosen])
        for index, (span, chosen) in enumerate(zip(spans, order, strict=True))
        if index != chosen
    )
    return Fix("put them in order", edits)


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """The text after edits of it that do not overlap."""
    text, at, parts = source.text, 0, []
    for edit in in_text_order(edits):
        parts += [text[at : edit.span.start], edit.replacement]
        at = edit.span.end
    return replace(source, text="".join([*parts, text[at:]]))


def in_text_order(edits: Iterable[Edit]) -> list[Edit]:
    """The edits as they follow each other in the text."""
    return sorted(edits, key=lambda e: (e.span.start, e.span.end))


def overlaps(edits: Iterable[Edit]) -> bool:
    """Whether two of the edits are about one character, or one place of insertion."""
    ordered = in_text_order(edits)
    return any(
        after.span.start < before.span.end or before.span.start == after.span.start
        for before, after in pairwise(ordered)
    )


def moved_offset(edits: Iterable[Edit], offset: int) -> int:
    """Where the character at an offset is after the edits."""
    shift = 0
    for edit in in_text_order(edits):
        if edit.span.end <= offset and edit.span.start < max(offset, 1):
            shift += len(edit.replacement) - (edit.span.end - edit.span.start)
        elif edit.span.start <= offset < edit.span.end:
            return edit.span.start + shift
    return offset + shift


def _line_end(text: str, offset: int) -> int:
    """Behind the line ending at an offset; the offset itself where none is there."""
    for ending in ("\r\n", "\n"):
        if text.startswith(ending, offset):
            return offset + len(ending)
    return offset


def _removal_of(source: Source, start: int, end: int, removed: str) -> Fix:
    return Fix(f"take {backquote(removed)} out", (Edit(source.span(start, end), ""),))

"""A line of source as a terminal can show it: safe, tabs expanded, cut to a width, underlined."""

from __future__ import annotations

import unicodedata

_TAB = 4
_ELLIPSIS = "..."


def safe(text: str) -> str:
    """The text with control characters made visible, so that a file cannot drive the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_control_picture(c) for c in text)


def backquote(text: str, most: int = 40) -> str:
    """The text in backticks for a message, cut when long."""
    visible = safe(text)
    return f"`{visible}`" if len(visible) <= most else f"`{visible[:most]}{_ELLIPSIS}`"


def excerpt(line: str, start: int, end: int, width: int = 100) -> tuple[str, int, int]:
    """What to print of a line, and where in it the cells of [start, end) lie.

    Lines longer than `width` cells are cut to a window around `start`.
    """
    start = min(start, len(line))
    first, last = _window(line, start, width)
    cells = [_display_text(c) for c in line[first:last]]
    prefix = _ELLIPSIS if first else ""
    suffix = _ELLIPSIS if last < len(line) else ""
    from_cell = len(prefix) + sum(_width(c) for c in cells[: start - first])
    widths = [_width(c) for c in cells[start - first : max(start, min(end, last)) - first]]
    return prefix + "".join(cells) + suffix, from_cell, max(1, sum(widths))


def _window(line: str, start: int, width: int) -> tuple[int, int]:
    """Which characters around `start` to show, so that they fill at most `width` cells."""

    def width_of(c: str) -> int:
        return max(1, _width(_display_text(c)))  # a heap of combining marks is cut as well

    if len(line) <= width and sum(map(width_of, line)) <= width:
        return 0, len(line)
    first, free = start, width // 2
    while first > 0 and width_of(line[first - 1]) <= free:
        first -= 1
        free -= width_of(line[first])
    last, free = start, free + width - width // 2
    while last < len(line) and width_of(line[last]) <= free:
        free -= width_of(line[last])
        last += 1
    return first, last


def _display_text(c: str) -> str:
    return " " * _TAB if c == "\t" else _control_picture(c)


def _control_picture(c: str) -> str:
    if c == "\t" or c.isprintable():
        return c
    if ord(c) < 0x20:
        return chr(0x2400 + ord(c))  # the Unicode pictures of control characters
    return "\ufffd"


def _width(cell: str) -> int:
    if cell.isascii():
        return len(cell)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in cell
    )

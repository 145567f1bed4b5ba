"""Patterns back to text, for programs that mean the same whatever reads them."""

from __future__ import annotations

from nacre.nac.tisa.patterns.nodes import (
    AdjacentCharacter,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    quote,
)

_PRINTABLE = range(0x21, 0x7F)
_IN_CLASS = frozenset("\\[]^-&|~")


def pattern_text(node: Node) -> str:
    """A pattern that parses to this tree."""
    match node:
        case Chars():
            return chars_text(node)
        case AdjacentCharacter():
            return _near(node)
        case Sequence(parts):
            return "".join(_group(part, Choice) for part in parts)
        case Choice(parts):
            return "|".join(pattern_text(part) for part in parts)
        case Repeat(part, least, most, greedy):
            inner = _group(part, Choice, Sequence, Repeat)
            return inner + _bounds(least, most) + ("" if greedy else "?")


def _group(node: Node, *loose: type) -> str:
    text = pattern_text(node)
    return f"(?:{text})" if isinstance(node, loose) else text


def _bounds(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    return short or f"{{{least},{'' if most is None else most}}}"


def _near(node: AdjacentCharacter) -> str:
    if node.chars is None:
        return "\\z" if node.ahead else "\\A"
    return f"(?{'' if node.ahead else '<'}{'!' if node.negated else '='}{chars_text(node.chars)})"


def chars_text(chars: Chars) -> str:
    """A class, or the one character of it."""
    if len(chars.ranges) == 1 and not (chars.categories or chars.inner or chars.negated):
        first, last = chars.ranges[0]
        if first == last:
            return quote(chr(first)) if first in _PRINTABLE or first == 0x20 else _point(first)
    if len(chars.categories) == 1 and not (chars.ranges or chars.inner):
        return f"\\{'P' if chars.negated else 'p'}{{{chars.categories[0]}}}"
    return f"[{'^' if chars.negated else ''}{_members(chars)}]"


def _members(chars: Chars) -> str:
    listed = "".join(
        _point(first) if first == last else f"{_point(first)}-{_point(last)}"
        for first, last in chars.ranges
    )
    inner = "".join(_inner(part) for part in chars.inner)
    return listed + "".join(f"\\p{{{name}}}" for name in chars.categories) + inner


def _inner(chars: Chars) -> str:
    """A class inside of a class: its members, or all but them."""
    return chars_text(chars) if chars.negated else _members(chars)


def _point(point: int) -> str:
    if point in _PRINTABLE:
        return f"\\{chr(point)}" if chr(point) in _IN_CLASS else chr(point)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"

r"""Patterns of rules as trees: the part of regular expressions that is matched in linear time.

Literals, classes with classes in them and `&&`, `\p{..}` for general categories and some scripts,
`\s \S \d \D \w \W`, groups, alternation, greedy and lazy repetition, possessive repetition of one
character, `(?i:..)` for ASCII letters, `$`, `\A` and `\z`, and conditions on one neighbour:
`(?=X)`, `(?!X)`, `(?<=X)`, `(?<!X)` where X is one character or class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nacre.nac.tisa.instructions import CATEGORIES, MAJOR_CATEGORIES
from nacre.nac.tisa.patterns.nodes import (
    DIGIT,
    LARGEST,
    SPACE,
    WORD,
    WORD_OF_PATTERNS,
    Chars,
    Choice,
    Near,
    Node,
    PatternError,
    Repeat,
    Sequence,
    negate,
    single_character,
)
from nacre.nac.tisa.patterns.script_ranges import SCRIPT_RANGES

# Whose `\w` and `$` are meant: TISA's, or those of the engines that tokenizers are made for.
Dialect = Literal["tisa", "hub", "tiktoken"]
MOST_REPEATS = 256
Bounds = tuple[int, int | None]
_MOST_DEPTH = 50


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
# Letters outside of ASCII that fold to one of it.
_FOLDS = {"s": "\u017f", "k": "\u212a"}
# Two letters that one character folds to, such as a sharp s or a ligature.
_DOUBLE_FOLDS = ("ss", "st", "ff", "fi", "fl")


def parse_pattern(source: str, dialect: Dialect = "tisa") -> Node:
    """A pattern as a tree; PatternError where it is malformed or not taken."""
    reader = _Reader(source, dialect)
    made = reader.choice(False, 0)
    if reader.at < len(source):
        raise PatternError("a `)` that nothing opens", reader.at)
    return made


class _Reader:
    """Reads a pattern from the left."""

    def __init__(self, source: str, dialect: Dialect) -> None:
        self._source = source
        self._dialect = dialect
        self._word = WORD if dialect == "tisa" else WORD_OF_PATTERNS
        self.at = 0

    def _peek(self, text: str) -> bool:
        return self._source.startswith(text, self.at)

    def _accept(self, text: str) -> bool:
        if self._peek(text):
            self.at += len(text)
            return True
        return False

    def _next(self) -> str:
        if self.at >= len(self._source):
            raise PatternError("the pattern ends too early", self.at)
        self.at += 1
        return self._source[self.at - 1]

    def choice(self, folded: bool, depth: int) -> Node:
        """Alternatives up to a `)` or the end."""
        if depth > _MOST_DEPTH:
            raise PatternError(f"groups are nested more than {_MOST_DEPTH} deep", self.at)
        parts = [self._sequence(folded, depth)]
        while self._accept("|"):
            parts.append(self._sequence(folded, depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, folded: bool, depth: int) -> Node:
        start = self.at
        parts: list[Node] = []
        while self.at < len(self._source) and self._source[self.at] not in "|)":
            parts.append(self._repeats(self._atom(folded, depth)))
        if folded:
            text = self._source[start : self.at].lower()
            if any(double in text for double in _DOUBLE_FOLDS):
                raise PatternError("two letters that one character folds to", start)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeats(self, part: Node) -> Node:
        start = self.at
        bounds = self._bounds()
        if bounds is None:
            return part
        if isinstance(part, Near):
            raise PatternError("a condition is repeated", start)
        is_counted = self._source[self.at - 1] == "}"
        greedy = not self._accept("?")
        made: Node = Repeat(part, *bounds, greedy)
        if greedy and self._accept("+"):
            is_again = is_counted and self._dialect != "tiktoken"
            make = _repeat_again if is_again else _possessive
            made = make(part, bounds, start)
        if self._bounds() is not None:
            raise PatternError("a repetition of a repetition", start)
        return made

    def _bounds(self) -> Bounds | None:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._accept(mark):
                return bounds
        if not self._peek("{"):
            return None
        start = self.at
        end = self._source.find("}", start)
        low, comma, high = self._source[start + 1 : max(end, start)].partition(",")
        if not (low.isascii() and low.isdigit()) or (
            high and not (high.isascii() and high.isdigit())
        ):
            raise PatternError("a `{` without numbers", start)
        self.at = end + 1
        least = self._count(low, start)
        most = least if not comma else self._count(high, start) if high else None
        if most is not None and most < least:
            raise PatternError("a repetition whose bounds are the wrong way round", start)
        return least, most

    def _count(self, digits: str, start: int) -> int:
        value = int(digits) if len(digits) < 9 else MOST_REPEATS + 1
        if value > MOST_REPEATS:
            raise PatternError(f"more than {MOST_REPEATS} repetitions", start)
        return value

    def _atom(self, folded: bool, depth: int) -> Node:
        start = self.at
        character = self._next()
        if character == "(":
            return self._group(folded, depth)
        if character == "[":
            return self._class(folded)
        if character == ".":
            return negate(single_character("\n"))
        if character == "\\":
            return self._escape(folded)
        if character == "$" and self._dialect == "hub":
            return Near(True, True, negate(single_character("\n")))
        if character == "$" and self._dialect == "tiktoken":
            return Near(True, False)  # the end of the text, whatever its last line ends with
        if character in "^$":
            raise PatternError("a `^` or `$`, which is not the same everywhere", start)
        if character in "*+?{":
            raise PatternError("a repetition of nothing", start)
        return self._letter(character, folded)

    def _letter(self, character: str, folded: bool) -> Chars:
        if not folded or not character.isalpha():
            return single_character(character)
        if not character.isascii():
            raise PatternError("`(?i:` around a letter that is not ASCII", self.at - 1)
        small = character.lower()
        every = {small, small.upper(), _FOLDS.get(small, small)}
        return Chars(tuple((ord(c), ord(c)) for c in sorted(every)))

    def _group(self, folded: bool, depth: int) -> Node:
        start = self.at - 1
        for mark, ahead, refused in (
            ("?=", True, False), ("?!", True, True), ("?<=", False, False), ("?<!", False, True),
        ):  # fmt: skip
            if self._accept(mark):
                return self._near(ahead, refused, folded, depth, start)
        if self._accept("?i:"):
            folded = True
        elif not self._accept("?:") and self._peek("?"):
            raise PatternError("a group of a kind that is not taken", start)
        inner = self.choice(folded, depth + 1)
        self._close(start)
        return inner

    def _close(self, start: int) -> None:
        if not self._accept(")"):
            raise PatternError("a `(` that nothing closes", start)

    def _near(self, ahead: bool, refused: bool, folded: bool, depth: int, start: int) -> Node:
        body = self.choice(folded, depth + 1)
        self._close(start)
        if not isinstance(body, Chars):
            raise PatternError("a condition on more than one character", start)
        return Near(ahead, refused, body)

    def _escape(self, folded: bool) -> Node:
        start = self.at - 1
        if self._accept("A"):
            return Near(False, False)
        if self._accept("z"):
            return Near(True, False)
        character = self._character_escape()
        if isinstance(character, Chars):
            return character
        if folded and character.isalpha():
            raise PatternError("an escaped letter in `(?i:`", start)
        return single_character(character)

    def _character_escape(self) -> Chars | str:
        """What follows a backslash: a class, or a character."""
        start = self.at - 1
        mark = self._next()
        shorthands = {"s": SPACE, "d": DIGIT, "w": self._word}
        if mark.lower() in shorthands:
            chars = shorthands[mark.lower()]
            return chars if mark.islower() else negate(chars)
        if mark in "pP":
            return self._category(mark == "P", start)
        if mark in _ESCAPES:
            return _ESCAPES[mark]
        if mark in "xuU":
            return self._code_point({"x": 2, "u": 4, "U": 8}[mark], start)
        if mark.isalnum():
            raise PatternError(f"`\\{mark}`", start)
        return mark

    def _code_point(self, digits: int, start: int) -> str:
        shown = self._source[self.at : self.at + digits]
        self.at += digits
        if len(shown) < digits or not all(c in "0123456789abcdefABCDEF" for c in shown):
            raise PatternError("a character without its hexadecimal digits", start)
        point = int(shown, 16)
        if point > LARGEST:
            raise PatternError("a character outside of Unicode", start)
        return chr(point)

    def _category(self, refused: bool, start: int) -> Chars:
        end = self._source.find("}", self.at)
        if not self._peek("{") or end < 0:
            raise PatternError("a `\\p` without braces", start)
        name = self._source[self.at + 1 : end]
        self.at = end + 1
        if name in SCRIPT_RANGES and self._dialect == "hub":
            return Chars(SCRIPT_RANGES[name], negated=refused)
        if name not in CATEGORIES and name not in MAJOR_CATEGORIES:
            raise PatternError(f"the property `{name}`, which is no general category", start)
        return Chars(categories=(name,), negated=refused)

    def _class(self, folded: bool, depth: int = 0) -> Chars:
        start = self.at - 1
        if depth > _MOST_DEPTH:
            raise PatternError(f"classes are nested more than {_MOST_DEPTH} deep", start)
        refused = self._accept("^")
        sets = [_ClassMembers([], [])]
        while not self._accept("]"):
            if self._accept("&&"):
                sets.append(_ClassMembers([], []))
            elif self._accept("["):
                sets[-1].inner.append(self._class(folded, depth + 1))
            else:
                self._add_member(sets[-1], folded, start)
        if not all(each.listed or each.inner for each in sets):
            raise PatternError("an empty class", start)
        unions = [each.union() for each in sets]
        if len(unions) == 1:
            return negate(unions[0]) if refused else unions[0]
        # What is in all of them is not in the rest of any.
        return Chars(inner=tuple(map(negate, unions)), negated=not refused)

    def _add_member(self, members: _ClassMembers, folded: bool, start: int) -> None:
        part = self._member(start)
        if isinstance(part, Chars):
            members.inner.append(part)
            return
        last = self._range_end(part, start)
        if folded and (part != last or not part.isascii()):
            raise PatternError("`(?i:` around a range", start)
        every = self._letter(part, folded).ranges if part == last else ((ord(part), ord(last)),)
        members.listed.extend(every)

    def _range_end(self, first: str, start: int) -> str:
        """The last character of a range, or of itself where none follows."""
        if not self._peek("-") or self._source[self.at : self.at + 2] == "-]":
            return first
        self.at += 1
        last = self._member(start)
        if isinstance(last, Chars) or last < first:
            raise PatternError("a range whose ends are no characters in order", start)
        return last

    def _member(self, start: int) -> Chars | str:
        character = self._next()
        if self._source[self.at - 1 : self.at + 1] in ("--", "||", "~~"):
            raise PatternError("an operator inside of a class", start)
        return self._character_escape() if character == "\\" else character


@dataclass(frozen=True)
class _ClassMembers:
    """What stands in a class up to here."""

    listed: list[tuple[int, int]]
    inner: list[Chars]

    def union(self) -> Chars:
        """All of it."""
        plain = tuple(name for c in self.inner if _is_category(c) for name in c.categories)
        rest = tuple(chars for chars in self.inner if not _is_category(chars))
        if len(rest) == 1 and not plain and not self.listed:
            return rest[0]
        return Chars(tuple(self.listed), plain, rest)


def _repeat_again(part: Node, bounds: Bounds, start: int) -> Node:
    """`{1,3}+` is no possessive repetition, but any number of such repetitions."""
    if bounds[0] != 1:
        raise PatternError("a repetition of a repetition", start)
    return Repeat(part, 1, None)


def _possessive(part: Node, bounds: Bounds, start: int) -> Node:
    """As many as there are, all of them: behind those of a class stands none of it."""
    if not isinstance(part, Chars):
        raise PatternError("a possessive repetition of more than one character", start)
    is_over = Near(True, True, part)
    least, most = bounds
    if bounds == (0, 1):
        return Choice((part, is_over))
    if most is None:
        return Sequence((Repeat(part, least, None), is_over))
    if least == most:
        return Repeat(part, least, most)
    # As many as may be, or fewer where there are no more.
    fewer = Sequence((Repeat(part, least, most - 1), is_over))
    return Choice((Repeat(part, most, most), fewer))


def _is_category(chars: Chars) -> bool:
    return not chars.negated and not chars.ranges and not chars.inner

r"""Patterns of rules as trees: the part of regular expressions that is matched in linear time.

Literals, classes, `\p{..}` for general categories, `\s \S \d \D \w \W`, groups, alternation,
greedy and lazy repetition, `(?i:..)` for ASCII letters, `\A` and `\z`, and conditions on one
neighbour: `(?=X)`, `(?!X)`, `(?<=X)`, `(?<!X)` where X is one character or class.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nacre.nac.tisa.character_data import (
    JOINERS,
    WHITE_SPACE,
    WORDS_BESIDE,
    WORDS_OF_PATTERNS,
    Ranges,
)
from nacre.nac.tisa.instructions import CATEGORIES, MAJOR_CATEGORIES

# Whose words `\w` stands for: TISA's, or those of the patterns in a tokenizer.json.
Dialect = Literal["tisa", "hub"]
_LARGEST = 0x10FFFF
MOST_REPEATS = 256
_MOST_DEPTH = 50


class PatternError(Exception):
    """Why a pattern is not taken, and where in it."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class Chars(Struct, frozen=True):
    """One character out of a set, which is a union."""

    ranges: Ranges = ()
    categories: tuple[str, ...] = ()  # of one letter or two
    inner: tuple[Chars, ...] = ()
    negated: bool = False


class Near(Struct, frozen=True):
    """A condition on the character in front (`ahead` False) or behind; `chars` None: an edge."""

    ahead: bool
    negated: bool
    chars: Chars | None = None


class Sequence(Struct, frozen=True):
    """One after another."""

    parts: tuple[Node, ...]


class Choice(Struct, frozen=True):
    """The first that leads to a match."""

    parts: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """So many times; `most` None is without end."""

    part: Node
    least: int
    most: int | None
    greedy: bool = True


Node = Chars | Near | Sequence | Choice | Repeat

_WORD = ("L", "M", "Nd", "Nl", "Pc")
SPACE = Chars(WHITE_SPACE)
DIGIT = Chars(categories=("Nd",))
WORD = Chars(WORDS_BESIDE + JOINERS, _WORD)
WORD_OF_PATTERNS = Chars(WORDS_BESIDE + WORDS_OF_PATTERNS, _WORD)
ANY = Chars(((0, _LARGEST),))
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_SPECIAL = frozenset(r"\.[]{}()*+?^$|")
# Letters outside of ASCII that fold to one of it.
_FOLDS = {"s": "\u017f", "k": "\u212a"}
# Two letters that one character folds to, such as a sharp s or a ligature.
_DOUBLE_FOLDS = ("ss", "st", "ff", "fi", "fl")


def negate(chars: Chars) -> Chars:
    """Everything else."""
    return Chars(chars.ranges, chars.categories, chars.inner, not chars.negated)


def single_character(character: str) -> Chars:
    """That character alone."""
    return Chars(((ord(character), ord(character)),))


def only_character(node: Node) -> str:
    """The character that a tree matches alone; empty where it is another tree."""
    if not isinstance(node, Chars) or node.categories or node.inner or node.negated:
        return ""
    first, last = node.ranges[0]
    return chr(first) if len(node.ranges) == 1 and first == last else ""


def literal(text: str) -> Node:
    """That text alone."""
    return (
        Sequence(tuple(single_character(character) for character in text))
        if len(text) != 1
        else single_character(text)
    )


def quote(text: str) -> str:
    """A pattern that matches that text alone."""
    return "".join("\\" + c if c in _SPECIAL else c for c in text)


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
        greedy = not self._accept("?")
        if greedy and self._peek("+"):
            raise PatternError("a possessive repetition", self.at)
        if self._bounds() is not None:
            raise PatternError("a repetition of a repetition", start)
        return Repeat(part, *bounds, greedy)

    def _bounds(self) -> tuple[int, int | None] | None:
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
        if point > _LARGEST:
            raise PatternError("a character outside of Unicode", start)
        return chr(point)

    def _category(self, refused: bool, start: int) -> Chars:
        end = self._source.find("}", self.at)
        if not self._peek("{") or end < 0:
            raise PatternError("a `\\p` without braces", start)
        name = self._source[self.at + 1 : end]
        self.at = end + 1
        if name not in CATEGORIES and name not in MAJOR_CATEGORIES:
            raise PatternError(f"the property `{name}`, which is no general category", start)
        return Chars(categories=(name,), negated=refused)

    def _class(self, folded: bool) -> Chars:
        start = self.at - 1
        refused = self._accept("^")
        listed: list[tuple[int, int]] = []
        inner: list[Chars] = []
        while not self._accept("]"):
            part = self._member(start)
            if isinstance(part, Chars):
                inner.append(part)
                continue
            last = self._range_end(part, start)
            if folded and (part != last or not part.isascii()):
                raise PatternError("`(?i:` around a range", start)
            every = self._letter(part, folded).ranges if part == last else ((ord(part), ord(last)),)
            listed += every
        if not listed and not inner:
            raise PatternError("an empty class", start)
        plain = tuple(name for c in inner if _is_category(c) for name in c.categories)
        rest = tuple(chars for chars in inner if not _is_category(chars))
        return Chars(tuple(listed), plain, rest, refused)

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
        if character == "[" or self._source[self.at - 1 : self.at + 1] in ("&&", "--", "||", "~~"):
            raise PatternError("a class inside of a class", start)
        return self._character_escape() if character == "\\" else character


def _is_category(chars: Chars) -> bool:
    return not chars.negated and not chars.ranges and not chars.inner

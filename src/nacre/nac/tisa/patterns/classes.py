r"""One character of a pattern: escapes, classes with classes in them, properties by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from nacre.nac.tisa.instructions import CATEGORIES, MAJOR_CATEGORIES
from nacre.nac.tisa.patterns.named_classes import (
    HEXADECIMAL,
    WORD_IN_CLASS,
    WORD_OF_PATTERNS,
    posix_class,
    property_class,
)
from nacre.nac.tisa.patterns.nodes import (
    DIGIT,
    LARGEST,
    SPACE,
    WORD,
    Chars,
    PatternError,
    negate,
    single_character,
)

# Whose `\w` and `$` are meant: TISA's, or those of the engines that tokenizers are made for.
Dialect = Literal["tisa", "hub", "tiktoken"]
_MOST_DEPTH = 50
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
# Letters outside of ASCII that fold to one of it.
_FOLDS = {"s": "\u017f", "k": "\u212a"}
_POSIX = re.compile(r"\[:(\^?)([^:\]]*):\]")
_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
# Categories that hold both forms of a letter or no letter at all.
_CASELESS = ("N", "P", "S", "Z", "C")
_CASELESS_CLASSES = (SPACE, DIGIT, HEXADECIMAL)


class ClassReader:
    """Reads a pattern from the left, a character or a class at a time."""

    def __init__(self, source: str, dialect: Dialect) -> None:
        self._source = source
        self._dialect = dialect
        self._word = WORD_OF_PATTERNS if dialect == "hub" else WORD
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

    def _letter(self, character: str, folded: bool) -> Chars:
        if not folded or not character.isalpha():
            return single_character(character)
        if not character.isascii():
            raise PatternError("`(?i:` around a letter that is not ASCII", self.at - 1)
        return Chars(tuple((ord(c), ord(c)) for c in sorted(fold_letter(character))))

    def _character_escape(self) -> Chars | str:
        """What follows a backslash: a class, or a character."""
        start = self.at - 1
        mark = self._next()
        shorthands = {"s": SPACE, "d": DIGIT, "w": self._word}
        if self._dialect == "hub":
            shorthands["h"] = HEXADECIMAL
        if mark.lower() in shorthands:
            chars = shorthands[mark.lower()]
            return chars if mark.islower() else negate(chars)
        if mark in "pP":
            return self._property(mark == "P", start)
        if mark in _ESCAPES:
            if mark == "0" and self._source[self.at : self.at + 1].isdigit():
                raise PatternError("a character by its octal digits", start)
            return _ESCAPES[mark]
        if mark in "xuU":
            return self._code_point(mark, start)
        if mark.isalnum():
            raise PatternError(f"`\\{mark}`", start)
        return mark

    def _code_point(self, mark: str, start: int) -> str:
        if mark == "U" and self._dialect == "hub":
            raise PatternError("`\\U`", start)
        is_braced = mark == "x" and self._accept("{")
        most = 8 if is_braced else _DIGITS[mark]
        end = self._source.find("}", self.at) if is_braced else self.at + most
        shown = self._source[self.at : max(end, self.at)]
        self.at = end + is_braced
        is_whole = 0 < len(shown) <= most and (is_braced or len(shown) == most)
        if not is_whole or not _HEXADECIMAL.issuperset(shown):
            raise PatternError("a character without its hexadecimal digits", start)
        point = int(shown, 16)
        if point > LARGEST or 0xD800 <= point <= 0xDFFF:
            raise PatternError("a character outside of Unicode", start)
        if self._dialect == "hub" and mark == "x" and not is_braced and point > 0x7F:
            raise PatternError("a byte that is no character", start)
        return chr(point)

    def _property(self, refused: bool, start: int) -> Chars:
        end = self._source.find("}", self.at)
        if not self._peek("{") or end < 0:
            raise PatternError("a `\\p` without braces", start)
        name = self._source[self.at + 1 : end]
        self.at = end + 1
        if self._dialect == "hub":
            chars = property_class(name.removeprefix("^"))
            if chars is not None:
                return negate(chars) if refused is not name.startswith("^") else chars
        elif name in CATEGORIES or name in MAJOR_CATEGORIES:
            return Chars(categories=(name,), negated=refused)
        raise PatternError(f"the property `{name}`, which is no general category", start)

    def _class(self, folded: bool, depth: int = 0, within_negated: bool = False) -> Chars:
        start = self.at - 1
        if depth > _MOST_DEPTH:
            raise PatternError(f"classes are nested more than {_MOST_DEPTH} deep", start)
        refused = self._accept("^")
        if self._dialect == "hub" and refused and (within_negated or (folded and depth)):
            # The library's engine loses characters that are taken out twice, and folds before it
            # takes any out.
            raise PatternError("a class that is turned around inside of another", start)
        sets = [_ClassMembers([], [])]
        while not self._accept("]"):
            if self._accept("&&"):
                if folded:
                    raise PatternError("`(?i:` around an intersection", start)
                sets.append(_ClassMembers([], []))
            elif self._peek("[:"):
                self._add_class(sets[-1], self._posix(), folded, start)
            elif self._accept("["):
                inner = self._class(folded, depth + 1, refused or within_negated)
                sets[-1].inner.append(inner)
            else:
                self._add_member(sets[-1], folded, start)
        if not all(each.listed or each.inner for each in sets):
            raise PatternError("an empty class", start)
        unions = [each.union() for each in sets]
        if len(unions) == 1:
            return negate(unions[0]) if refused else unions[0]
        # What is in all of them is not in the rest of any.
        return Chars(inner=tuple(map(negate, unions)), negated=not refused)

    def _posix(self) -> Chars:
        """`[:alpha:]` inside of a class."""
        start = self.at
        match = _POSIX.match(self._source, start)
        chars = posix_class(match[2]) if match and self._dialect == "hub" else None
        if match is None or chars is None:
            raise PatternError("a class by a name that is not known", start)
        self.at = match.end()
        if self._peek("-") and not self._peek("-]"):
            raise PatternError("a range whose ends are no characters in order", start)
        return negate(chars) if match[1] else chars

    def _add_class(self, members: _ClassMembers, chars: Chars, folded: bool, start: int) -> None:
        if folded and not _is_caseless(chars):
            raise PatternError("`(?i:` around a class of letters", start)
        members.inner.append(chars)

    def _add_member(self, members: _ClassMembers, folded: bool, start: int) -> None:
        part = self._member(start)
        if isinstance(part, Chars):
            if part in (WORD_OF_PATTERNS, negate(WORD_OF_PATTERNS)):
                part = negate(WORD_IN_CLASS) if part.negated else WORD_IN_CLASS
            if self._peek("-") and not self._peek("-]") and self._dialect == "hub":
                raise PatternError("a range whose ends are no characters in order", start)
            self._add_class(members, part, folded, start)
            return
        last = self._range_end(part, start)
        members.listed.append((ord(part), ord(last)))
        if not folded:
            return
        if not last.isascii():
            raise PatternError("`(?i:` around a letter that is not ASCII", start)
        for letter in filter(str.isalpha, map(chr, range(ord(part), ord(last) + 1))):
            members.listed.extend((ord(c), ord(c)) for c in sorted(fold_letter(letter) - {letter}))

    def _range_end(self, first: str, start: int) -> str:
        """The last character of a range, or of itself where none follows."""
        if not self._peek("-") or self._source[self.at : self.at + 2] == "-]":
            return first
        self.at += 1
        if self._peek("[") or self._peek("&&"):
            raise PatternError("a range whose ends are no characters in order", start)
        last = self._member(start)
        if isinstance(last, Chars) or last < first:
            raise PatternError("a range whose ends are no characters in order", start)
        return last

    def _member(self, start: int) -> Chars | str:
        character = self._next()
        if self._source[self.at - 1 : self.at + 1] in ("--", "||", "~~"):
            raise PatternError("an operator inside of a class", start)
        return self._character_escape() if character == "\\" else character


def fold_letter(letter: str) -> set[str]:
    """A letter of ASCII, its other form, and what folds to it."""
    small = letter.lower()
    return {small, small.upper(), _FOLDS.get(small, small)}


def _is_caseless(chars: Chars) -> bool:
    """Whether a class has no letter of two forms, and none that folds to two letters."""
    if chars in _CASELESS_CLASSES:
        return True
    has_categories = bool(chars.categories) and all(c[0] in _CASELESS for c in chars.categories)
    return has_categories and not (chars.ranges or chars.inner or chars.negated)


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


def _is_category(chars: Chars) -> bool:
    return not chars.negated and not chars.ranges and not chars.inner

r"""Patterns of rules as trees: the part of regular expressions that is matched in linear time.

Literals, classes with classes in them and `&&`, `\p{..}` for general categories and some scripts,
`\s \S \d \D \w \W`, groups, alternation, greedy and lazy repetition, possessive repetition of one
character, `(?i:..)` for ASCII letters, `$`, `\A` and `\z`, and conditions on one neighbour:
`(?=X)`, `(?!X)`, `(?<=X)`, `(?<!X)` where X is one character or class. Patterns of the `tokenizers`
library have more: classes and properties by their names, `(?i)`, `^`, `\b`, `\h`, `\R`, `{,n}`.
"""

from __future__ import annotations

from nacre.base.digits import is_digits
from nacre.nac.tisa.patterns.classes import ClassReader, Dialect, fold_letter
from nacre.nac.tisa.patterns.named_classes import WORD_OF_PATTERNS
from nacre.nac.tisa.patterns.nodes import (
    ANY,
    AdjacentCharacter,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    negate,
    single_character,
)

MOST_REPEATS = 256
Bounds = tuple[int, int | None]
_MOST_DEPTH = 50
# Two letters that one character folds to, such as a sharp s or a ligature.
_DOUBLE_FOLDS = ("ss", "st", "ff", "fi", "fl")
_NEWLINE = single_character("\n")
_RETURN = single_character("\r")
# What ends a line: both characters are one, and are never taken apart.
_LINE_END = Choice(
    (
        Sequence((_RETURN, _NEWLINE)),
        Sequence((_RETURN, AdjacentCharacter(True, True, _NEWLINE))),
        Chars(((0xA, 0xC), (0x85, 0x85), (0x2028, 0x2029))),
    )
)


def parse_pattern(source: str, dialect: Dialect = "tisa") -> Node:
    """A pattern as a tree; PatternError where it is malformed or not taken."""
    reader = _Reader(source, dialect)
    made = reader.choice(reader.folds_all(), 0)
    if reader.at < len(source):
        raise PatternError("a `)` that nothing opens", reader.at)
    return made


class _Reader(ClassReader):
    """Reads a pattern from the left."""

    def folds_all(self) -> bool:
        """Whether the pattern begins with `(?i)`."""
        return self._dialect == "hub" and self._accept("(?i)")

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
        if folded and any(double in _letters_of(parts) for double in _DOUBLE_FOLDS):
            raise PatternError("two letters that one character folds to", start)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeats(self, part: Node) -> Node:
        start = self.at
        bounds = self._bounds()
        if bounds is None:
            return part
        if _is_condition(part):
            raise PatternError("a condition is repeated", start)
        is_counted = self._source[self.at - 1] == "}"
        if is_counted and bounds[0] == bounds[1] and self._peek("?") and self._dialect == "hub":
            raise PatternError("a repetition of a repetition", start)
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
        if not low and high and self._dialect == "hub":
            low = "0"
        if not is_digits(low) or (high and not is_digits(high)):
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
            return AdjacentCharacter(True, True, negate(_NEWLINE))
        if character == "^" and self._dialect == "hub":
            # Where a line begins that has a character.
            return Sequence(
                (
                    AdjacentCharacter(False, True, negate(_NEWLINE)),
                    AdjacentCharacter(True, False, ANY),
                )
            )
        if character == "$" and self._dialect == "tiktoken":
            return AdjacentCharacter(
                True, False
            )  # the end of the text, whatever its last line ends with
        if character in "^$":
            raise PatternError("a `^` or `$`, which is not the same everywhere", start)
        if character in "*+?{":
            raise PatternError("a repetition of nothing", start)
        return self._letter(character, folded)

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
        return AdjacentCharacter(ahead, refused, body)

    def _escape(self, folded: bool) -> Node:
        start = self.at - 1
        if self._accept("A"):
            return AdjacentCharacter(False, False)
        if self._accept("z"):
            return AdjacentCharacter(True, False)
        if self._dialect == "hub":
            for mark, node in _HUB_ESCAPES.items():
                if self._accept(mark):
                    return node
        character = self._character_escape()
        if isinstance(character, Chars):
            return character
        if folded and character.isalpha():
            raise PatternError("an escaped letter in `(?i:`", start)
        return single_character(character)


def _repeat_again(part: Node, bounds: Bounds, start: int) -> Node:
    """`{1,3}+` is no possessive repetition, but any number of such repetitions."""
    if bounds[0] != 1:
        raise PatternError("a repetition of a repetition", start)
    return Repeat(part, 1, None)


def _possessive(part: Node, bounds: Bounds, start: int) -> Node:
    """As many as there are, all of them: behind those of a class stands none of it."""
    if not isinstance(part, Chars):
        raise PatternError("a possessive repetition of more than one character", start)
    is_over = AdjacentCharacter(True, True, part)
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


def _is_condition(part: Node) -> bool:
    """Whether a tree takes no character at all."""
    match part:
        case Sequence(parts) | Choice(parts):
            return bool(parts) and all(map(_is_condition, parts))
        case _:
            return isinstance(part, AdjacentCharacter)


def _letters_of(parts: list[Node]) -> str:
    """Small letters that stand side by side, with a space for all else."""
    return "".join(_letter_of(part) for part in parts)


def _letter_of(part: Node) -> str:
    match part:
        case Chars():
            return _FOLDED.get(part, " ")
        case Repeat(inner):
            return _letter_of(inner)
        case Sequence(parts):
            return "".join(map(_letter_of, parts))
        case _:
            return " "


_FOLDED = {
    Chars(tuple((ord(c), ord(c)) for c in sorted(fold_letter(letter)))): letter
    for letter in "abcdefghijklmnopqrstuvwxyz"
}


def _word_edge(is_edge: bool) -> Node:
    """Between a character of a word and none of it, or not."""
    return Choice(
        tuple(
            Sequence(
                (
                    AdjacentCharacter(False, before, WORD_OF_PATTERNS),
                    AdjacentCharacter(True, after, WORD_OF_PATTERNS),
                )
            )
            for before in (False, True)
            for after in (False, True)
            if (before is not after) is is_edge
        )
    )


_HUB_ESCAPES: dict[str, Node] = {
    "b": _word_edge(True),
    "B": _word_edge(False),
    "N": negate(_NEWLINE),
    "O": ANY,
    "R": _LINE_END,
}

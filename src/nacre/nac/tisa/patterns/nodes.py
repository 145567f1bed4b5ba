"""Patterns as trees."""

from __future__ import annotations

from msgspec import Struct

from nacre.nac.tisa.character_data import (
    JOINERS,
    WHITE_SPACE,
    WORDS_BESIDE,
    Ranges,
)

LARGEST = 0x10FFFF


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


class AdjacentCharacter(Struct, frozen=True):
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


Node = Chars | AdjacentCharacter | Sequence | Choice | Repeat

WORD_CATEGORIES = ("L", "M", "Nd", "Nl", "Pc")
SPACE = Chars(WHITE_SPACE)
DIGIT = Chars(categories=("Nd",))
WORD = Chars(WORDS_BESIDE + JOINERS, WORD_CATEGORIES)
ANY = Chars(((0, LARGEST),))
_SPECIAL = frozenset(r"\.[]{}()*+?^$|")


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

r"""Patterns drawn at random, of what the library's engine has: much of it is refused here."""

from __future__ import annotations

from random import Random

POSIX = (
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
)  # fmt: skip
PROPERTIES = (
    "L", "Lu", "ll", "M", "Nd", "N", "P", "Sm", "Z", "C", "Cn", "Han", "greek", "Latin", "Any",
    "Uppercase Letter", "lower_case-letter", "Alphabetic", "White_Space", "Assigned", "Punct",
    "^L", "^Alpha", "Word", "LC", "Emoji", "alnum", "Script=Han",
)  # fmt: skip
_LETTERS = "abksSTKfiABl'19 -_.\n\r\u00e9\u00df\u017f\u212a\u00b2\u4e2d"
_ESCAPES = (
    r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"\h", r"\H", r"\n", r"\t", r"\.", r"\-", r"\x41",
    r"\x{e9}", r"\u4e2d", r"\0",
)  # fmt: skip
_OUTSIDE = (
    r"\R", r"\N", r"\O", r"\X", r"\b", r"\B", r"\A", r"\z", r"\Z", "^", "$", ".", r"\K", r"\G",
    r"\012", r"\xe9", r"\U00000041", r"\e", r"\1", r"\pL",
)  # fmt: skip
_COUNTS = ("*", "+", "?", "*?", "+?", "??", "++", "*+", "?+", "{2}", "{1,2}", "{,2}", "{2,}",
           "{1,2}?", "{2}?", "{1,2}+", "{0}", "{1}", "**", "{x}")  # fmt: skip


def drawn_pattern(draw: Random, depth: int = 0) -> str:
    """A pattern; now and then one without sense."""
    start = "(?i)" if depth == 0 and draw.random() < 0.2 else ""
    choices = draw.choice((1, 1, 1, 2, 3))
    return start + "|".join(_sequence(draw, depth) for _ in range(choices))


def _sequence(draw: Random, depth: int) -> str:
    return "".join(_repeated(draw, depth) for _ in range(draw.choice((1, 1, 2, 3))))


def _repeated(draw: Random, depth: int) -> str:
    return _atom(draw, depth) + (draw.choice(_COUNTS) if draw.random() < 0.4 else "")


def _atom(draw: Random, depth: int) -> str:
    kind = draw.random()
    if kind < 0.35:
        letter = draw.choice(_LETTERS)
        return "\\" + letter if letter in ".-" else letter
    if kind < 0.5:
        return draw.choice(_ESCAPES)
    if kind < 0.55:
        return draw.choice(_OUTSIDE)
    if kind < 0.63:
        return _property(draw)
    if kind < 0.83 or depth > 2:
        return drawn_class(draw)
    opened = draw.choice(("(", "(?:", "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?m:"))
    return f"{opened}{drawn_pattern(draw, depth + 1)})"


def _property(draw: Random) -> str:
    return rf"\{draw.choice('pP')}{{{draw.choice(PROPERTIES)}}}"


def drawn_class(draw: Random, depth: int = 0) -> str:
    """A class with members of every kind."""
    parts = "".join(_member(draw, depth) for _ in range(draw.choice((1, 2, 3))))
    if draw.random() < 0.2:
        parts += "&&" + "".join(_member(draw, depth) for _ in range(draw.choice((1, 2))))
    return f"[{'^' if draw.random() < 0.3 else ''}{parts}]"


def _member(draw: Random, depth: int) -> str:
    match draw.randrange(7):
        case 0:
            return f"[:{draw.choice(('', '', '^'))}{draw.choice(POSIX)}:]"
        case 1:
            return draw.choice(_ESCAPES)
        case 2:
            return _property(draw)
        case 3:
            return draw.choice(
                ("a-z", "A-Z", "0-9", "a-f", "\u0400-\u04ff", "!-~", "b-a", "-", "&")
            )
        case 4 if depth < 2:
            return drawn_class(draw, depth + 1)
        case _:
            letter = draw.choice(_LETTERS)
            return "\\" + letter if letter == "-" else letter

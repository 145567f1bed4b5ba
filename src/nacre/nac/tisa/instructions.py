"""The instructions of TISA: opcode, name, operands and meaning in one table; their values.

The format has those below 0x80. Those from there on are ours, for what the format's cannot say; a
program has one of them only where it needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

MAGIC = b"TISA"
VERSION = 1

# How operands are written. `texts`: a count, then so many texts; `rest`: nothing at all, or a text
# (v1.6 writes none, v1.8 one); `rules`, `items` and `tokens` are records of their own; `bytes` is
# all that is left.
Field = Literal[
    "text8",
    "text16",
    "texts8",
    "rest8",
    "rules",
    "items",
    "tokens",
    "bytes",
    "flags",
    "count",
    "id",
]
OURS = 0x80  # the first opcode that is not the format's


class Kind(IntEnum):
    """What an instruction works on; programs go through them in this order."""

    TEXT = 0  # the text of every fragment that is not protected
    CUT = 1  # a fragment becomes several
    ENCODE = 2  # fragments become ids
    COMPOSE = 3  # ids are put into a template


class Operation(Struct, frozen=True):
    """An instruction of the set."""

    opcode: int
    name: str
    kind: Kind
    operands: tuple[tuple[str, Field], ...]
    meaning: str


_TABLE = (
    Operation(0x01, "LOWERCASE", Kind.TEXT, (), "every character becomes its small letters"),
    Operation(
        0x02, "UNICODE_NORM", Kind.TEXT, (("form", "text8"),),
        "the text takes the normal form NFC, NFD, NFKC or NFKD",
    ),
    Operation(
        0x03, "REPLACE", Kind.TEXT, (("pattern", "text16"), ("value", "text16")),
        "every occurrence of a text becomes another one, from the left",
    ),
    Operation(
        0x04, "FILTER_CATEGORY", Kind.TEXT, (("categories", "texts8"),),
        "characters of these Unicode categories go away",
    ),
    Operation(
        0x07, "PREPEND", Kind.TEXT, (("value", "text16"),),
        "a text that does not begin with the value gets it in front",
    ),
    Operation(
        0x10, "PARTITION_RULES", Kind.CUT, (("rules", "rules"),),
        "what the rules match becomes fragments of its own or goes away; so do the gaps between",
    ),
    Operation(0x15, "BYTE_ENCODE", Kind.TEXT, (), "UTF-8 bytes become letters, one for each byte"),
    Operation(
        0x20, "BPE_ENCODE", Kind.ENCODE, (("suffix", "rest8"),),
        "neighbours merge in the order of `merges.b`; a suffix marks the end of a fragment",
    ),
    Operation(
        0x21, "WORDPIECE_ENCODE", Kind.ENCODE, (("marker", "text8"),),
        "the longest token from the left, with the marker in front of all but the first",
    ),
    Operation(
        0x22, "UNIGRAM_ENCODE", Kind.ENCODE, (), "the tokens whose scores have the highest sum"
    ),
    Operation(
        0x30, "COMPOSE", Kind.COMPOSE, (("items", "items"),), "ids stand in a template"
    ),
    Operation(
        0x81, "INSERT", Kind.TEXT, (("value", "text16"),),
        "every text gets the value in front, whatever it begins with",
    ),
    Operation(
        0x82, "INSERT_FIRST", Kind.TEXT, (("value", "text16"),),
        "PREPEND, for the fragment alone that begins where the whole text begins",
    ),
    Operation(
        0x83, "REPLACE_PATTERN", Kind.TEXT, (("pattern", "text16"), ("value", "text16")),
        "every match of a pattern becomes a text",
    ),
    Operation(
        0x84, "MAP_TEXTS", Kind.TEXT, (("table", "bytes"),),
        "graphemes and characters become texts of a table of SentencePiece",
    ),
    Operation(
        0x85, "SPACE_IDEOGRAPHS", Kind.TEXT, (), "every ideograph gets a space on both sides"
    ),
    Operation(
        0x86, "SENTENCE_TEXT", Kind.TEXT,
        (("options", "flags"), ("symbols", "tokens"), ("table", "bytes")),
        "a text becomes what SentencePiece makes of it: by a table, with white space as marks, one"
        " in front or behind, none at the ends and never two; symbols stay as they are",
    ),
    Operation(
        0x90, "FIND_TOKENS", Kind.CUT, (("tokens", "tokens"),),
        "the longest of some texts from the left becomes a token, if its conditions are met",
    ),
    Operation(
        0x91, "SPLIT", Kind.CUT, (("pattern", "text16"), ("behaviour", "flags")),
        "a fragment is cut at the matches of a pattern, which stand alone, go away or join others",
    ),
    Operation(
        0x92, "SPLIT_SCRIPTS", Kind.CUT, (), "a fragment is cut where another script begins"
    ),
    Operation(
        0x93, "SPLIT_LENGTH", Kind.CUT, (("length", "count"),),
        "a fragment is cut into so many characters each",
    ),
    Operation(
        0xA0, "BPE_MODEL", Kind.ENCODE,
        (("unknown", "id"), ("options", "flags"), ("prefix", "text8"), ("suffix", "text8")),
        "BPE_ENCODE with a prefix inside of words, bytes for unknown characters, one unknown for"
        " several, words that are tokens before any merge, and neighbours that merge where their"
        " texts are a token, by its score",
    ),
    Operation(
        0xA1, "WORDPIECE_MODEL", Kind.ENCODE,
        (("unknown", "id"), ("longest", "count"), ("marker", "text8")),
        "WORDPIECE_ENCODE with the id of unknown words and the length of the longest one",
    ),
    Operation(
        0xA2, "UNIGRAM_MODEL", Kind.ENCODE, (("unknown", "id"), ("options", "flags")),
        "UNIGRAM_ENCODE with the id of what is unknown, and bytes in its place",
    ),
    Operation(
        0xA3, "WORDLEVEL_MODEL", Kind.ENCODE, (("unknown", "id"),), "every fragment is a token"
    ),
    Operation(
        0xA4, "SENTENCE_UNIGRAM", Kind.ENCODE,
        (("unknown", "id"), ("options", "flags"), ("symbols", "tokens")),
        "UNIGRAM_MODEL with sums of 32 bits and symbols that win over what they are made of",
    ),
    Operation(
        0xA5, "SENTENCE_WORDS", Kind.ENCODE, (("unknown", "id"), ("options", "flags")),
        "every word with the mark in front of it is a token; unknown neighbours are one, or bytes",
    ),
)  # fmt: skip
OPERATIONS: Mapping[int, Operation] = MappingProxyType({op.opcode: op for op in _TABLE})
BY_NAME: Mapping[str, Operation] = MappingProxyType({op.name: op for op in _TABLE})

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# General categories by their first letter.
_MINOR = {
    "L": "ultmo",
    "M": "nce",
    "N": "dlo",
    "P": "cdseifo",
    "S": "mcko",
    "Z": "slp",
    "C": "cfson",
}
CATEGORIES = frozenset(major + minor for major, tail in _MINOR.items() for minor in tail)
MAJOR_CATEGORIES = frozenset(_MINOR)

# Flags and behaviours of a rule.
PROTECTED, HAS_BEHAVIOUR, HAS_TRIM = 1, 2, 4
REMOVE, ISOLATE = 1, 2
BEHAVIOURS: Mapping[int, str] = MappingProxyType({REMOVE: "REMOVE", ISOLATE: "ISOLATE"})


class CutRule(Struct, frozen=True):
    """A rule of PARTITION_RULES. Without a behaviour, a match is kept as with ISOLATE."""

    pattern: str
    protected: bool = False  # a token as a whole: nothing changes or cuts it any more
    behaviour: int | None = None
    trim: str | None = None  # what the gap in front of a match loses at its end


# Flags of a token that is looked for.
WHOLE_WORD, TAKES_LEFT, TAKES_RIGHT = 1, 2, 4
# What becomes of matches of SPLIT, and the flag that turns matches and gaps around.
SPLITS: Mapping[str, int] = MappingProxyType(
    {"Removed": 0, "Isolated": 1, "MergedWithPrevious": 2, "MergedWithNext": 3, "Contiguous": 4}
)
INVERTED = 8
# Options of models.
FUSES_UNKNOWN, HAS_BYTES, TAKES_WORDS, JOINS_TEXTS = 1, 2, 4, 8
# Options of a text of SentencePiece.
SINGLE_SPACES, MARKS_START, WRITES_MARKS, MARKS_END = 1, 2, 4, 8
NO_ID = -1  # of what is unknown, where there is no token for it
FLAGS: Mapping[str, int] = MappingProxyType(
    {
        "BPE_MODEL": 15,
        "UNIGRAM_MODEL": HAS_BYTES,
        "SPLIT": 15,
        "SENTENCE_TEXT": 15,
        "SENTENCE_UNIGRAM": HAS_BYTES,
        "SENTENCE_WORDS": HAS_BYTES,
    }
)


class SoughtToken(Struct, frozen=True):
    """A token of FIND_TOKENS: the text that is looked for, its id, and what it asks for."""

    text: str
    id: int
    flags: int = 0


class Item(Struct, frozen=True):
    """An item of COMPOSE: an id, a token by its text, or (None) the ids of the text."""

    value: int | str | None = None


Operand = (
    str | int | bytes | None | tuple[str, ...] | tuple[CutRule, ...] | tuple[Item, ...]
    | tuple[SoughtToken, ...]
)  # fmt: skip


class Instruction(Struct, frozen=True):
    """An instruction with its operands, in the order of the table."""

    opcode: int
    operands: tuple[Operand, ...] = ()

    @property
    def operation(self) -> Operation:
        """Its row of the table."""
        return OPERATIONS[self.opcode]


def step(name: str, *operands: Operand) -> Instruction:
    """An instruction by the name of its operation."""
    return Instruction(BY_NAME[name].opcode, operands)

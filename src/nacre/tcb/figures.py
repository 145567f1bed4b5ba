"""The figures of a microarchitecture, declared once: what a `.uarch` file may say.

Every default is that of ideal hardware, which costs nothing: an image carries the figures that
differ from it, and the timed machine looks at no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES

FigureValue = int | str  # several words with a blank between them
FigureKind = Literal["count", "word", "words"]

_MOST = (1 << 40) - 1


class FigureSpec(Struct, frozen=True):
    """One figure: what it can be, and what it means."""

    key: str  # `group.name`
    kind: FigureKind
    default: FigureValue
    measure: str
    meaning: str
    least: int = 0
    most: int = _MOST
    words: tuple[str, ...] = ()  # that it can be, or consist of
    other_name: str = ""  # by which a file may give it as well

    @property
    def group(self) -> str:
        """The block of a `.uarch` file that it stands in."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name in that block."""
        return self.key.partition(".")[2]


def _count(key: str, measure: str, meaning: str, default: int = 0, least: int = 0) -> FigureSpec:
    return FigureSpec(key, "count", default, measure, meaning, least)


# Who may stream into whom: a unit, or a part of a CSTL.
CHAIN_LINKS = ("NMU_CSTLA", "NMU_CSTLB", "CSTLA_CSTLB")
STORE_FORMATS = ("raw", "saturated", *(name for name in ELEMENT_TYPES))
WDM_MODES = ("palette", "sparse")
WDM_WAYS = ("DDR_L2", "L2_L1", "DDR_L1")
ARBITRATION_RULES = ("oldest", "round_robin")

_ROWS = (
    _count("l1.banks", "banks", "of an engine's L1; 0: accesses never meet"),
    _count("l1.bank_width", "bytes/cycle", "that a port of a bank moves", 1, 1),
    _count("l1.interleave", "bytes", "that lie in a bank before the next one begins", 1, 1),
    _count("l1.ports", "ports", "of a bank, each for one access in a cycle", 1, 1),
    _count("l2.slices", "slices", "of L2; 0: accesses never meet"),
    _count("l2.slice_width", "bytes/cycle", "that a port of a slice moves", 1, 1),
    _count("l2.interleave", "bytes", "that lie in a slice before the next one begins", 1, 1),
    _count("l2.ports", "ports", "of a slice", 1, 1),
    _count("dma.burst", "bytes", "of the longest request; 0: of any length"),
    _count("dma.burst_cycles", "cycles", "that a request takes beside its bytes"),
    _count("dma.align", "bytes", "that requests begin at multiples of", 1, 1),
    _count("dma.dims", "dimensions", "of a descriptor; 0: of any number"),
    _count("dma.outstanding", "requests", "in flight; 0: any number"),
    _count("tags.engine", "tags", "of an engine; 0: any number"),
    _count("tags.device", "tags", "of the device; 0: any number"),
    FigureSpec("queue.depth", "count", 0, "blocks",
               "that a unit's queue holds for a stream; 0: any number", other_name="queue_depth"),
    FigureSpec("chain.links", "words", "", "", "who may stream into whom", words=CHAIN_LINKS),
    _count("chain.depth", "blocks", "that stream into each other at most", 2, 2),
    FigureSpec("cstl.parts", "count", 1, "parts",
               "2, the most: post-processing and store-back work apart", least=1, most=2,
               other_name="cstl.sub"),
    FigureSpec("store.formats", "words", "raw", "", "what the store path can write",
               words=STORE_FORMATS),
    FigureSpec("wdm.modes", "words", "", "", "how weights may be compressed", words=WDM_MODES),
    FigureSpec("wdm.ways", "words", "DDR_L2 L2_L1", "", "on which weights may be decompressed",
               words=WDM_WAYS),
    _count("wdm.palette_entries", "elements", "of a table at most", 32),
    _count("wdm.palette_tables", "tables", "of a transfer at most", 2),
    _count("wdm.rate", "bytes/cycle", "that come out decompressed", 64, 1),
    _count("arbitration.classes", "classes", "of priority", 1, 1),
    FigureSpec("arbitration.rule", "word", "oldest", "", "who goes first within a class",
               words=ARBITRATION_RULES),
)  # fmt: skip

FIGURES: Mapping[str, FigureSpec] = MappingProxyType({row.key: row for row in _ROWS})
# By every name that a file may give them.
NAMED_FIGURES: Mapping[str, FigureSpec] = MappingProxyType(
    {**FIGURES, **{row.other_name: row for row in _ROWS if row.other_name}}
)


class Figures:
    """The figures that hold: those that are given, and defaults."""

    def __init__(self, given: Mapping[str, FigureValue]) -> None:
        self._given = given

    def count(self, key: str) -> int:
        """A number."""
        value = self._given.get(key, FIGURES[key].default)
        if not isinstance(value, int):
            raise TypeError(f"`{key}` is no number")
        return value

    def word(self, key: str) -> str:
        """A word."""
        value = self._given.get(key, FIGURES[key].default)
        if not isinstance(value, str):
            raise TypeError(f"`{key}` is no word")
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """Words."""
        return tuple(self.word(key).split())

    @property
    def differing(self) -> tuple[tuple[str, FigureValue], ...]:
        """Those that are not the default, in the order of the table."""
        return tuple(
            (key, self._given[key])
            for key, spec in FIGURES.items()
            if key in self._given and self._given[key] != spec.default
        )


def figure_problem(spec: FigureSpec, value: object) -> str | None:
    """Why a figure cannot be that; None where it can."""
    if spec.kind == "count":
        if not isinstance(value, int):
            return f"expected an integer from {spec.least} to {spec.most}"
        if value < spec.least:
            return f"it must be at least {spec.least}"
        return None if value <= spec.most else f"it must be at most {spec.most}"
    if not isinstance(value, str):
        return f"expected {'a word' if spec.kind == 'word' else 'a list of words'}"
    words = value.split()
    if any(word not in spec.words for word in words):
        return f"expected {'one' if spec.kind == 'word' else 'some'} of {', '.join(spec.words)}"
    if spec.kind == "word" and len(words) != 1:
        return "expected one word"
    return None if len(set(words)) == len(words) else "a word is there twice"

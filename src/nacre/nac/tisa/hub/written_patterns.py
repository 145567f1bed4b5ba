"""Patterns of `tokenizer.json` in the words of TISA."""

from __future__ import annotations

from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.patterns.nodes import Node, PatternError
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.patterns.writing import pattern_text


def parse_checked(part: Part, source: str) -> Node:
    """A pattern as a tree; UnsupportedPart where it cannot be matched in linear time."""
    try:
        tree = parse_pattern(source, "hub")
        Scanner([tree])
    except PatternError as error:
        raise part.unsupported(
            f"the pattern `{source}` has {error.reason} (character {error.at + 1}), which is not"
            " matched in linear time or not the same everywhere"
        ) from None
    return tree


def pattern_source(part: Part, tree: Node, source: str | None) -> str:
    """The pattern as it stands where that means the same, else written out."""
    try:
        if source is not None and parse_pattern(source) == tree:
            return source
    except PatternError:
        pass
    try:
        return pattern_text(tree)
    except ValueError as error:
        raise part.unsupported(f"the pattern `{source}` has {error}") from None


def written_pattern(part: Part, source: str) -> str:
    """A pattern that TISA matches in the same way."""
    return pattern_source(part, parse_checked(part, source), source)

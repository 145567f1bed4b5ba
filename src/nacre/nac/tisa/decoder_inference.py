"""Ids back to text: where nothing is said about it, the instructions for the way there tell how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from nacre.nac.tisa.decoders import (
    SPACE_MARK,
    BPEDecoder,
    ByteLevel,
    Metaspace,
    Step,
    TokenDecoder,
    WordPiece,
)
from nacre.nac.tisa.instructions import CutRule, Instruction
from nacre.nac.tisa.patterns.nodes import Chars
from nacre.nac.tisa.patterns.nodes import Sequence as InOrder
from nacre.nac.tisa.patterns.reading import parse_pattern

_LOOKS_SPECIAL = re.compile(r"<.*>|\[.*\]", re.DOTALL)


def infer_decoder(
    instructions: Sequence[Instruction], ids: Mapping[str, int], template: Iterable[int]
) -> TokenDecoder:
    """What instructions tell: tokens are joined as text was taken apart.

    Of the tokens that rules protect, those are special that a template has or that look so.
    """
    protected = _protected_tokens(instructions) & ids.keys()
    of_template = set(template)
    special = {
        ids[token]
        for token in protected
        if ids[token] in of_template or _LOOKS_SPECIAL.fullmatch(token)
    }
    return TokenDecoder(_decoder_steps(instructions), tuple(sorted(special)))


def _protected_tokens(instructions: Sequence[Instruction]) -> set[str]:
    """Tokens that rules protect, where their pattern is one text with white space around it."""
    tokens: set[str] = set()
    for instruction in instructions:
        if instruction.operation.name == "PARTITION_RULES":
            for rule in cast(tuple[CutRule, ...], instruction.operands[0]):
                if rule.protected:
                    tokens.add(_literal_text(rule.pattern))
    return tokens


def _literal_text(pattern: str) -> str:
    tree = parse_pattern(pattern)
    parts = tree.parts if isinstance(tree, InOrder) else (tree,)
    return "".join(chr(p.ranges[0][0]) for p in parts if isinstance(p, Chars) and p.ranges)


def _decoder_steps(instructions: Sequence[Instruction]) -> tuple[Step, ...] | None:
    names = {instruction.operation.name: instruction for instruction in instructions}
    if "BYTE_ENCODE" in names:
        return (ByteLevel(),)
    if "WORDPIECE_ENCODE" in names:
        return (WordPiece(cast(str, names["WORDPIECE_ENCODE"].operands[0])),)
    suffix = names["BPE_ENCODE"].operands[0] if "BPE_ENCODE" in names else None
    if suffix:
        return (BPEDecoder(cast(str, suffix)),)
    marks = [i for i in instructions if i.operation.name == "REPLACE"]
    if any(i.operands == (" ", SPACE_MARK) for i in marks):
        return (Metaspace(),)
    return None

"""Ids back to text: TISA has no instructions for it, so that those for the way there say how."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from nacre.nac.tisa.characters import letter_bytes
from nacre.nac.tisa.instructions import CutRule, Instruction
from nacre.nac.tisa.patterns import Chars, parsed
from nacre.nac.tisa.patterns import Sequence as InOrder

_LOOKS_SPECIAL = re.compile(r"<.*>|\[.*\]", re.DOTALL)
_SPACE_MARK = "\u2581"
# What WordPiece writes apart and people do not, in the order of the replacements.
_CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
    (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


class Decoder:
    """Joins tokens as the instructions of a program took text apart."""

    def __init__(self, instructions: Sequence[Instruction], special: Iterable[str]) -> None:
        protected = {*special, *_protected(instructions)}
        self._special = {t for t in protected if _LOOKS_SPECIAL.fullmatch(t)} | set(special)
        self._join = _joiner(instructions, frozenset(protected))

    def __call__(self, tokens: Iterable[str], skip_special_tokens: bool) -> str:
        """The text of tokens."""
        kept = [t for t in tokens if not (skip_special_tokens and t in self._special)]
        return self._join(kept)


def _protected(instructions: Sequence[Instruction]) -> set[str]:
    """Tokens that rules protect, where their pattern is one text with white space around it."""
    made: set[str] = set()
    for instruction in instructions:
        if instruction.operation.name == "PARTITION_RULES":
            for rule in cast(tuple[CutRule, ...], instruction.operands[0]):
                if rule.protected:
                    made.add(_core(rule.pattern))
    return made


def _core(pattern: str) -> str:
    tree = parsed(pattern)
    parts = tree.parts if isinstance(tree, InOrder) else (tree,)
    return "".join(chr(p.ranges[0][0]) for p in parts if isinstance(p, Chars) and p.ranges)


def _joiner(
    instructions: Sequence[Instruction], whole: frozenset[str]
) -> Callable[[list[str]], str]:
    names = {instruction.operation.name: instruction for instruction in instructions}
    if "BYTE_ENCODE" in names:
        return lambda tokens: _from_bytes(tokens, whole)
    if "WORDPIECE_ENCODE" in names:
        marker = cast(str, names["WORDPIECE_ENCODE"].operands[0])
        return lambda tokens: _from_words(tokens, marker)
    suffix = names["BPE_ENCODE"].operands[0] if "BPE_ENCODE" in names else None
    if suffix:
        return lambda tokens: _from_ends(tokens, cast(str, suffix))
    if any(
        i.operation.name == "REPLACE" and i.operands == (" ", _SPACE_MARK) for i in instructions
    ):
        return _from_marks
    return " ".join


def _from_bytes(tokens: list[str], whole: frozenset[str]) -> str:
    bytes_of = letter_bytes()
    raw = bytearray()
    for token in tokens:
        if token in whole or any(letter not in bytes_of for letter in token):
            raw += token.encode("utf-8")
        else:
            raw += bytes(bytes_of[letter] for letter in token)
    return raw.decode("utf-8", errors="replace")


def _from_words(tokens: list[str], marker: str) -> str:
    made: list[str] = []
    for index, token in enumerate(tokens):
        if index and marker and token.startswith(marker):
            made.append(_cleaned(token.replace(marker, "", 1)))
        else:
            made.append(_cleaned(f" {token}" if index else token))
    return "".join(made)


def _cleaned(text: str) -> str:
    for written, meant in _CLEANED:
        text = text.replace(written, meant)
    return text


def _from_ends(tokens: list[str], suffix: str) -> str:
    made = [token.replace(suffix, " " if index < len(tokens) - 1 else "")
            for index, token in enumerate(tokens)]  # fmt: skip
    return "".join(made)


def _from_marks(tokens: list[str]) -> str:
    text = "".join(tokens).replace(_SPACE_MARK, " ")
    return text[1:] if tokens and tokens[0].startswith(_SPACE_MARK) else text

"""Normalisers as instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.character_data import (
    ACCENTS,
    BERT_ACCENTS,
    BERT_FORMATS,
    NMT_REMOVED,
    NMT_SPACES,
    WHITE_SPACE,
    Ranges,
)
from nacre.nac.tisa.characters import code_points
from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.instructions import FORMS, REMOVE, CutRule, Instruction, step
from nacre.nac.tisa.patterns import PatternError, Sequence, only_character, parse_pattern

Steps = list[Instruction]


def normalizer_steps(part: Part) -> Steps:
    """What a normaliser does; nothing for none."""
    if not part:
        return []
    kind = part["type"].text()
    if kind in FORMS:
        return [step("UNICODE_NORM", kind)]
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(_REASONS.get(kind, f"TISA has no instruction for `{kind}`"))
    return make(part)


def sets_ideographs_apart(part: Part) -> bool:
    """Whether the last thing that a normaliser does is to put spaces around ideographs.

    TISA cannot insert spaces. The ideographs are cut off instead, which is the same where spaces
    go away before anything else happens; so it must be the last normaliser that wants them.
    """
    normalizers = [p for p in _flatten(part) if _wants_ideographs(p)]
    if not normalizers:
        return False
    if [p.path for p in normalizers] != [_flatten(part)[-1].path]:
        raise normalizers[0].unsupported(
            "`handle_chinese_chars` inserts spaces, and another normaliser comes behind it"
        )
    return True


def _flatten(part: Part) -> list[Part]:
    if part and part["type"].value == "Sequence":
        return [inner for each in part["normalizers"].list() for inner in _flatten(each)]
    return [part] if part else []


def _wants_ideographs(part: Part) -> bool:
    return part["type"].value == "BertNormalizer" and part.get("handle_chinese_chars", True).flag()


def replace_characters(listed: Ranges, value: str) -> Steps:
    """Every one of some characters becomes the same.

    FILTER_CATEGORY would take what the Unicode of whoever runs the program calls a mark; the
    library's tables are older. Written out, the program means the same everywhere.
    """
    return [step("REPLACE", chr(point), value) for point in code_points(listed)]


def _sequence(part: Part) -> Steps:
    made: Steps = []
    for inner in part["normalizers"].list():
        if inner["type"].value == "Prepend":
            made += _prepend(inner, made)
        else:
            made += normalizer_steps(inner)
    return made


def _prepend(part: Part, before: Steps) -> Steps:
    value = part["prepend"].text()
    is_gone = bool(before) and before[-1].operation.name == "REPLACE" and len(value) == 1
    if not is_gone or before[-1].operands[0] != value or value in str(before[-1].operands[1]):
        raise part.unsupported(
            f"PREPEND leaves a text alone that begins with {value!r} already; this normaliser"
            " does not"
        )
    return [step("PREPEND", value)]


def _bert(part: Part) -> Steps:
    lowers = part.get("lowercase", True).flag()
    accents = part.get("strip_accents")
    steps: Steps = []
    if part.get("clean_text", True).flag():
        steps += [step("REPLACE", mark, " ") for mark in "\t\n\r"]
        steps += replace_characters(BERT_FORMATS, "")
        steps.append(step("FILTER_CATEGORY", ("Cc", "Co")))  # these two never change
        spaces = [
            p for p in code_points(WHITE_SPACE) if p > 0x9F
        ]  # below are Cc, gone, and the space
        steps += [step("REPLACE", chr(point), " ") for point in spaces]
    if accents.flag() if accents else lowers:
        steps += [step("UNICODE_NORM", "NFD"), *replace_characters(BERT_ACCENTS, "")]
    if lowers:
        steps.append(step("LOWERCASE"))
    return steps


def _replace(part: Part) -> Steps:
    pattern, value = part["pattern"], part["content"].text()
    if pattern.has("Regex"):
        source = pattern["Regex"].text()
        wanted = _only_text(source)
        if wanted is None:
            raise part.unsupported(f"REPLACE knows literal texts, not the pattern `{source}`")
    else:
        wanted = pattern["String"].text()
    if not wanted:
        raise part.unsupported("REPLACE cannot replace the empty text")
    return [step("REPLACE", wanted, value)]


def _only_text(source: str) -> str | None:
    """The one text that a pattern matches."""
    try:
        tree = parse_pattern(source, "hub")
    except PatternError:
        return None
    parts = tree.parts if isinstance(tree, Sequence) else (tree,)
    letters = [only_character(part) for part in parts]
    return "".join(letters) if all(letters) else None


def _strip(part: Part) -> Steps:
    rules: list[CutRule] = []
    if part.get("strip_left", True).flag():
        rules.append(CutRule(r"\A\s+", behaviour=REMOVE))
    if part.get("strip_right", True).flag():
        rules.append(CutRule(r"\s+\z", behaviour=REMOVE))
    return [step("PARTITION_RULES", tuple(rules))] if rules else []


_MAKERS: Mapping[str, Callable[[Part], Steps]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "Lowercase": lambda _: [step("LOWERCASE")],
        "StripAccents": lambda _: replace_characters(ACCENTS, ""),
        "BertNormalizer": _bert,
        "Replace": _replace,
        "Prepend": lambda part: _prepend(part, []),
        "Strip": _strip,
        "Nmt": lambda _: [
            *replace_characters(NMT_REMOVED, ""),
            *replace_characters(NMT_SPACES, " "),
        ],
        "ByteLevel": lambda _: [step("BYTE_ENCODE")],
    }
)
_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "Precompiled": "its table replaces the longest of many texts at each place, grapheme by"
        " grapheme; TISA has one literal REPLACE after another, which is not the same"
    }
)

"""Normalisers as instructions."""

from __future__ import annotations

import base64
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
from nacre.nac.tisa.hub.written_patterns import written_pattern
from nacre.nac.tisa.instructions import FORMS, REMOVE, CutRule, Instruction, step
from nacre.nac.tisa.patterns.nodes import PatternError, Sequence, only_character
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.text.charsmap import Charsmap, CharsmapError

Steps = list[Instruction]


def normalizer_steps(part: Part, spaces_ideographs: bool = False) -> Steps:
    """What a normaliser does; nothing for none.

    Spaces around ideographs are put in where that is asked for; else see `sets_ideographs_apart`.
    """
    made: Steps = []
    for each in _flatten(part):
        kind = each["type"].text()
        if kind in FORMS:
            made.append(step("UNICODE_NORM", kind))
        elif kind == "Prepend":
            made.append(_prepend(each, made))
        elif kind == "BertNormalizer":
            made += _bert(each, spaces_ideographs and _wants_ideographs(each))
        elif kind in _MAKERS:
            made += _MAKERS[kind](each)
        else:
            raise each.unsupported(f"there is no normaliser `{kind}`")
    return made


def sets_ideographs_apart(part: Part) -> bool:
    """Whether the last thing that a normaliser does is to put spaces around ideographs.

    The format's instructions cannot insert spaces. The ideographs are cut off instead, which is the
    same where spaces go away before anything else happens; so it must be the last normaliser that
    wants them.
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


def _prepend(part: Part, before: Steps) -> Instruction:
    """PREPEND leaves a text alone that begins so already; here it means the same if none can."""
    value = part["prepend"].text()
    is_gone = bool(before) and before[-1].operation.name == "REPLACE" and len(value) == 1
    if is_gone and before[-1].operands[0] == value and value not in str(before[-1].operands[1]):
        return step("PREPEND", value)
    if not value:
        raise part.unsupported("the empty text is put in front")
    return step("INSERT", value)


def _bert(part: Part, spaces_ideographs: bool) -> Steps:
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
    if spaces_ideographs:
        steps.append(step("SPACE_IDEOGRAPHS"))
    if accents.flag() if accents else lowers:
        steps += [step("UNICODE_NORM", "NFD"), *replace_characters(BERT_ACCENTS, "")]
    if lowers:
        steps.append(step("LOWERCASE"))
    return steps


def _replace(part: Part) -> Steps:
    pattern, value = part["pattern"], part["content"].text()
    wanted: str | None
    if pattern.has("Regex"):
        source = pattern["Regex"].text()
        wanted = _only_text(source)
        if wanted is None:
            return [step("REPLACE_PATTERN", written_pattern(part, source), value)]
    else:
        wanted = pattern["String"].text()
    if not wanted:
        raise part.unsupported("the empty text is replaced")
    return [step("REPLACE", wanted, value)]


def _precompiled(part: Part) -> Steps:
    try:
        raw = base64.b64decode(part["precompiled_charsmap"].text(), validate=True)
        Charsmap(raw)
    except (ValueError, CharsmapError) as error:
        raise part.wrong(f"`precompiled_charsmap` is malformed: {error}") from None
    return [step("MAP_TEXTS", raw)]


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
        "Lowercase": lambda _: [step("LOWERCASE")],
        "StripAccents": lambda _: replace_characters(ACCENTS, ""),
        "Replace": _replace,
        "Precompiled": _precompiled,
        "Strip": _strip,
        "Nmt": lambda _: [
            *replace_characters(NMT_REMOVED, ""),
            *replace_characters(NMT_SPACES, " "),
        ],
        "ByteLevel": lambda _: [step("BYTE_ENCODE")],
    }
)

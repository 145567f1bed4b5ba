"""Models as an instruction, tokens with ids and scores, and merges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nacre.nac.rules.tokenizer import NAC69
from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.characters import byte_alphabet
from nacre.nac.tisa.hub.parts import Part, UnsupportedPart
from nacre.nac.tisa.instructions import (
    FUSES_UNKNOWN,
    HAS_BYTES,
    NO_ID,
    TAKES_WORDS,
    Instruction,
    Kind,
    step,
)
from nacre.nac.tisa.models.bpe import Bpe, BpeOptions
from nacre.nac.tisa.models.pieces import LONGEST_WORD
from nacre.nac.tisa.resources import MOST_ID
from nacre.nac.tisa.scores import round_score

# Where TISA looks for the token of what is unknown, and the id where it finds none.
_UNKNOWN: Mapping[str, tuple[tuple[str, ...], int]] = MappingProxyType(
    {
        "BPE": (("<unk>", "[UNK]"), 0),
        "WordPiece": (("<unk>", "[UNK]"), 0),
        "Unigram": (("<unk>",), 2),
    }
)
_BPE_OPTIONS: Mapping[str, int] = MappingProxyType(
    {"fuse_unk": FUSES_UNKNOWN, "byte_fallback": HAS_BYTES, "ignore_merges": TAKES_WORDS}
)


@dataclass(frozen=True)
class Model:
    """What encodes fragments."""

    step: Instruction
    ids: Mapping[str, int]
    scores: Mapping[str, float]
    merges: tuple[tuple[str, str], ...] | None = None


def compile_model(part: Part, before: Sequence[Instruction], added: Mapping[str, int]) -> Model:
    """The model behind some steps, with tokens that are added to its own."""
    kind = part.get("type").text_or_none() or _guess_kind(part)
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(f"there is no model `{kind}`")
    return make(part, before, added)


def _guess_kind(part: Part) -> str:
    """Files of old versions do not say what their model is."""
    if part.has("merges"):
        return "BPE"
    if isinstance(part["vocab"].value, list):
        return "Unigram"
    return "WordPiece" if part.has("continuing_subword_prefix") else "WordLevel"


def _ids(part: Part) -> dict[str, int]:
    ids = {}
    for token, value in part.members():
        Part(token, value.path).text()
        ids[token] = value.integer()
    if len(set(ids.values())) < len(ids):
        raise part.wrong("two tokens have the same id")
    if ids and not 0 <= min(ids.values()) <= max(ids.values()) <= MOST_ID:
        raise part.wrong(f"ids go from 0 to {MOST_ID:,}")
    return ids


def _check_unknown(part: Part, kind: str, wanted: int, ids: Mapping[str, int]) -> None:
    """TISA finds the token of what is unknown by its name."""
    names, otherwise = _UNKNOWN[kind]
    token_id = next((ids[name] for name in names if name in ids), otherwise)
    if token_id != wanted:
        shown = " or ".join(f"`{name}`" for name in names)
        raise part.unsupported(
            f"what is unknown becomes id {wanted}; TISA takes {shown}, else {otherwise}, which"
            f" gives {token_id} here"
        )


def _unknown_id(part: Part, ids: Mapping[str, int]) -> int:
    token = part["unk_token"].text()
    if token not in ids:
        raise part.wrong(f"the token `{token}` for what is unknown is not in the vocabulary")
    return ids[token]


def _bpe(part: Part, before: Sequence[Instruction], added: Mapping[str, int]) -> Model:
    if part.get("dropout").value:
        raise part.unsupported(
            "`dropout` leaves merges out at random, so that a text has other ids every time; it is"
            " for training",
            help="set `dropout` to null: that is what it means outside of training",
        )
    ids = _ids(part["vocab"])
    prefix = part.get("continuing_subword_prefix").text_or_none() or ""
    merges = tuple(_merge_pair(each) for each in part["merges"].list())
    for first, second in merges:
        if not {first, second, first + second[len(prefix) :]} <= ids.keys():
            raise part["merges"].wrong(f"{first!r} and {second!r} do not merge to a token")
    try:
        made = _format_bpe(part, before, added, ids, merges)
    except UnsupportedPart as unfit:
        if unfit.rule is not NAC69:
            raise
        made = _bpe_with_options(part, ids, prefix)
    return Model(made, ids, {}, merges)


def _format_bpe(
    part: Part,
    before: Sequence[Instruction],
    added: Mapping[str, int],
    ids: dict[str, int],
    merges: tuple[tuple[str, str], ...],
) -> Instruction:
    """The instruction of the format; UnsupportedPart where it means something else."""
    if part.get("continuing_subword_prefix").text_or_none():
        raise part.unsupported("`continuing_subword_prefix`")
    suffix = part.get("end_of_word_suffix").text_or_none()
    if not _has_every_byte(ids, before, suffix or ""):
        _check_bpe_unknown(part, {**added, **ids})
    if part.get("ignore_merges", False).flag():
        _check_reachable(part, ids, merges, suffix)
    return step("BPE_ENCODE", suffix)


def _bpe_with_options(part: Part, ids: Mapping[str, int], prefix: str) -> Instruction:
    flags = (
        ("fuse_unk", FUSES_UNKNOWN),
        ("byte_fallback", HAS_BYTES),
        ("ignore_merges", TAKES_WORDS),
    )
    options = sum(flag for name, flag in flags if part.get(name, False).flag())
    unknown = _unknown_id(part, ids) if part.get("unk_token") else NO_ID
    return step(
        "BPE_MODEL", unknown, options, prefix, part.get("end_of_word_suffix").text_or_none() or ""
    )


def _merge_pair(part: Part) -> tuple[str, str]:
    if isinstance(part.value, str):
        first, space, second = part.text().partition(" ")
        if not space or " " in second:
            raise part.wrong("a merge is two tokens with a space between them")
        return first, second
    pair = [each.text() for each in part.list()]
    if len(pair) != 2:
        raise part.wrong(f"a merge has two tokens, not {len(pair)}")
    return pair[0], pair[1]


def _has_every_byte(ids: Mapping[str, int], before: Sequence[Instruction], suffix: str) -> bool:
    """Whether fragments are letters for bytes, and there is a token for every one of them."""
    last = [s.operation.name for s in before if s.operation.kind == Kind.TEXT][-1:]
    letters = byte_alphabet()
    is_complete = all(letter in ids and letter + suffix in ids for letter in letters)
    return last == ["BYTE_ENCODE"] and is_complete


def _check_bpe_unknown(part: Part, ids: Mapping[str, int]) -> None:
    if part.get("byte_fallback", False).flag():
        raise part.unsupported("BPE_ENCODE has no bytes in the place of unknown characters")
    if not part.get("unk_token"):
        raise part.unsupported(
            "unknown characters vanish, as there is no `unk_token`; BPE_ENCODE gives an id for each"
        )
    if part.get("fuse_unk", False).flag():
        raise part.unsupported("unknown neighbours become one id; BPE_ENCODE gives an id for each")
    _check_unknown(part, "BPE", _unknown_id(part, ids), ids)


def _check_reachable(
    part: Part, ids: dict[str, int], merges: Sequence[tuple[str, str]], suffix: str | None
) -> None:
    """`ignore_merges` takes words that are tokens as they are; merging must come to the same."""
    if suffix:
        raise part.unsupported("`ignore_merges` together with a suffix")
    merge = Bpe(ids, merges, BpeOptions())
    for token, index in ids.items():
        if token and merge(token, Budget(len(token))) != [index]:
            raise part.unsupported(
                f"`ignore_merges` takes the word {token!r} as a token, to which no merges lead;"
                " BPE_ENCODE always merges"
            )


def _word_piece(part: Part, before: Sequence[Instruction], added: Mapping[str, int]) -> Model:
    ids = _ids(part["vocab"])
    longest = part.get("max_input_chars_per_word", LONGEST_WORD).integer()
    unknown = _unknown_id(part, ids)
    marker = part.get("continuing_subword_prefix", "##").text()
    if longest == LONGEST_WORD and _is_found(part, "WordPiece", unknown, {**added, **ids}):
        return Model(step("WORDPIECE_ENCODE", marker), ids, {})
    return Model(step("WORDPIECE_MODEL", unknown, longest, marker), ids, {})


def _word_level(part: Part, before: Sequence[Instruction], added: Mapping[str, int]) -> Model:
    ids = _ids(part["vocab"])
    unknown = ids.get(part.get("unk_token", "<unk>").text(), NO_ID)
    return Model(step("WORDLEVEL_MODEL", unknown), ids, {})


def _unigram(part: Part, before: Sequence[Instruction], added: Mapping[str, int]) -> Model:
    ids: dict[str, int] = {}
    scores: dict[str, float] = {}
    for index, each in enumerate(part["vocab"].list()):
        token, score = _scored_token(each)
        if token in ids:
            raise part.unsupported(f"the token {token!r} is there twice, with two ids")
        ids[token], scores[token] = index, score
    unknown = part["unk_id"].integer() if part.get("unk_id") else NO_ID
    if not NO_ID <= unknown < len(ids):
        raise part.wrong(f"`unk_id` is {unknown}, and there are {len(ids)} tokens")
    has_bytes = part.get("byte_fallback", False).flag()
    is_plain = not has_bytes and min(scores.values(), default=0.0) <= 0
    if is_plain and _is_found(part, "Unigram", unknown, {**added, **ids}):
        return Model(step("UNIGRAM_ENCODE"), ids, scores)
    options = HAS_BYTES if has_bytes else 0
    return Model(step("UNIGRAM_MODEL", unknown, options), ids, scores)


def _is_found(part: Part, kind: str, wanted: int, ids: Mapping[str, int]) -> bool:
    """Whether the format's instruction takes that id for what is unknown."""
    try:
        _check_unknown(part, kind, wanted, ids)
    except UnsupportedPart:
        return False
    return True


def _scored_token(part: Part) -> tuple[str, float]:
    pair = list(part.list())
    if len(pair) != 2:
        raise part.wrong("a token of Unigram has a text and a score")
    token, score = pair[0].text(), pair[1].number()
    if not math.isfinite(round_score(score)):
        raise part.unsupported(f"the score {score!r} of {token!r} is too large for `vocab.b`")
    return token, score


_MAKERS: Mapping[str, Callable[[Part, Sequence[Instruction], Mapping[str, int]], Model]] = (
    MappingProxyType(
        {"BPE": _bpe, "WordPiece": _word_piece, "Unigram": _unigram, "WordLevel": _word_level}
    )
)

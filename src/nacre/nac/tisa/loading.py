"""Parts of a program out of its instructions: the model, the ids around those of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position
from nacre.nac.rules.tokenizer import NAC62, NAC63, NAC64, NAC65, NAC66
from nacre.nac.tisa.fragments import Step, fragment_steps
from nacre.nac.tisa.instructions import (
    FUSES_UNKNOWN,
    HAS_BYTES,
    JOINS_TEXTS,
    NO_ID,
    TAKES_WORDS,
    Instruction,
    Item,
    Kind,
    SoughtToken,
)
from nacre.nac.tisa.models.bpe import Bpe, BpeOptions
from nacre.nac.tisa.models.extents import Model
from nacre.nac.tisa.models.pieces import Unigram, WordLevel, WordPiece
from nacre.nac.tisa.models.sentences import SentenceUnigram, SentenceWords
from nacre.nac.tisa.models.text_bpe import TextBpe
from nacre.nac.tisa.patterns.nodes import PatternError
from nacre.nac.tisa.resources import MERGES, Vocabulary
from nacre.nac.tisa.text.charsmap import CharsmapError

_UNKNOWN_TOKENS = ("<unk>", "[UNK]")
_UNKNOWN_UNIGRAM = 2  # the id where a Unigram vocabulary has no `<unk>`


class ModelSource:
    """What a model is made of."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.ids = {entry.token: entry.id for entry in vocabulary.entries}
        self.pieces = {e.token: e.id for e in vocabulary.entries if e.is_piece}
        self.vocabulary = vocabulary
        self.unknown = next((self.ids[t] for t in _UNKNOWN_TOKENS if t in self.ids), 0)

    @property
    def scores(self) -> dict[str, tuple[int, float]]:
        """Ids and scores of what the model may find."""
        pairs = zip(self.vocabulary.entries, self.vocabulary.scores, strict=True)
        return {e.token: (e.id, score) for e, score in pairs if e.is_piece}

    @property
    def single_scores(self) -> dict[str, float]:
        """Scores of 32 bits of what the model may find."""
        return {e.token: e.score for e in self.vocabulary.entries if e.is_piece}

    def bpe(self, options: BpeOptions) -> Bpe:
        """BPE; `Broken` where its merges do not fit the vocabulary."""
        merges = self.vocabulary.merges
        if merges is None:
            message = f"BPE has no merges: there is no resource `{MERGES}`"
            raise Broken(NAC66, Position(0, "RSRC"), message)
        cut = len(options.prefix)
        for first, second in merges:
            for token in (first, second, first + second[cut:]):
                if token not in self.pieces:
                    message = f"{first!r} and {second!r} merge, but {token!r} is no token"
                    raise Broken(NAC65, Position(0, "RSRC"), message)
        return Bpe(self.pieces, merges, options)


def make_model(source: ModelSource, instruction: Instruction) -> Model:
    """What encodes fragments."""
    return _MODELS[instruction.operation.name](source, *instruction.operands)


def _bpe_model(source: ModelSource, unknown: int, options: int, prefix: str, suffix: str) -> Model:
    said = BpeOptions(
        unknown, prefix, suffix,
        fuses_unknown=bool(options & FUSES_UNKNOWN),
        has_bytes=bool(options & HAS_BYTES),
        takes_words=bool(options & TAKES_WORDS),
    )  # fmt: skip
    if not options & JOINS_TEXTS:
        return source.bpe(said)
    if prefix or suffix:
        message = "BPE_MODEL merges by texts, which have no prefix and no suffix"
        raise Broken(NAC62, Position(0, "PROC"), message)
    return TextBpe(source.pieces, source.single_scores, said, source.ids)


def _sentence_unigram(
    source: ModelSource, unknown: int, options: int, symbols: tuple[SoughtToken, ...]
) -> Model:
    scored = {token: (source.pieces[token], s) for token, s in source.single_scores.items()}
    names = frozenset(symbol.text for symbol in symbols)
    missing = next((name for name in names if name not in scored), None)
    if missing is not None:
        message = f"SENTENCE_UNIGRAM has the symbol {missing!r}, which is no piece"
        raise Broken(NAC66, Position(0, "PROC"), message)
    return SentenceUnigram(scored, unknown, names, source.ids if options & HAS_BYTES else None)


_MODELS: Mapping[str, Callable[..., Model]] = MappingProxyType(
    {
        "BPE_ENCODE": lambda source, suffix: source.bpe(
            BpeOptions(source.unknown, suffix=suffix or "")
        ),
        "WORDPIECE_ENCODE": lambda source, marker: WordPiece(source.pieces, marker, source.unknown),
        "UNIGRAM_ENCODE": lambda source: Unigram(
            source.scores, source.ids.get("<unk>", _UNKNOWN_UNIGRAM)
        ),
        "BPE_MODEL": _bpe_model,
        "WORDPIECE_MODEL": lambda source, unknown, longest, marker: WordPiece(
            source.pieces, marker, unknown, longest
        ),
        "UNIGRAM_MODEL": lambda source, unknown, options: Unigram(
            source.scores, unknown, bool(options & HAS_BYTES)
        ),
        "SENTENCE_UNIGRAM": _sentence_unigram,
        "SENTENCE_WORDS": lambda source, unknown, options: SentenceWords(
            source.pieces,
            unknown,
            source.ids if options & HAS_BYTES else None,
        ),
        "WORDLEVEL_MODEL": lambda source, unknown: WordLevel(source.pieces, unknown),
    }
)


def surrounding_ids(
    compositions: Sequence[Instruction], ids: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and behind those of a text."""
    items = cast(tuple[Item, ...], compositions[0].operands[0]) if compositions else (Item(),)
    slots = [index for index, item in enumerate(items) if item.value is None]
    if len(slots) != 1:
        message = f"COMPOSE has the ids of the text {len(slots)} times, not once"
        raise Broken(NAC64, Position(0, "PROC"), message)
    return _fixed_ids(items[: slots[0]], ids), _fixed_ids(items[slots[0] + 1 :], ids)


def _fixed_ids(items: Sequence[Item], ids: Mapping[str, int]) -> tuple[int, ...]:
    made: list[int] = []
    for item in items:
        index = ids.get(item.value) if isinstance(item.value, str) else item.value
        if index is None:
            message = f"COMPOSE names {item.value!r}, which is no token"
            raise Broken(NAC66, Position(0, "PROC"), message)
        made.append(index)
    return tuple(made)


def steps_of(instructions: tuple[Instruction, ...]) -> list[Step]:
    """What changes and cuts a text."""
    try:
        return fragment_steps(i for i in instructions if i.operation.kind <= Kind.CUT)
    except PatternError as error:
        message = f"{error.reason} (character {error.at + 1})"
        raise Broken(NAC63, Position(0, "PROC"), message) from None
    except CharsmapError as error:
        raise Broken(NAC62, Position(0, "PROC"), f"MAP_TEXTS: {error}") from None


def check_order(instructions: tuple[Instruction, ...]) -> None:
    """Text steps and cuts in any order, one that encodes, and COMPOSE behind it."""
    kinds = [max(instruction.operation.kind, Kind.CUT) for instruction in instructions]
    encoding = kinds.count(Kind.ENCODE)
    if encoding != 1:
        message = f"the program has {encoding} instructions that encode; it needs one"
        raise Broken(NAC64, Position(0, "PROC"), message)
    if kinds != sorted(kinds) or kinds.count(Kind.COMPOSE) > 1:
        at = next((i for i, k in enumerate(kinds) if i and k < kinds[i - 1]), len(kinds) - 1)
        name = instructions[at].operation.name
        message = f"{name} as step {at} stands where it has no meaning"
        raise Broken(NAC64, Position(0, "PROC"), message)


def check_unknown(instruction: Instruction, ids: Mapping[str, int]) -> None:
    """An id for what is unknown is one that there is."""
    for (_, field), value in zip(instruction.operation.operands, instruction.operands, strict=True):
        if field == "id" and value != NO_ID and value not in ids.values():
            message = f"{instruction.operation.name} has {value!r} for what is unknown, no id"
            raise Broken(NAC66, Position(0, "PROC"), message)

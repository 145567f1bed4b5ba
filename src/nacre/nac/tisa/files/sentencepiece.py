"""A file of SentencePiece as a program."""

from __future__ import annotations

import math

from nacre.nac.tisa.decoders import SentencePiece, TokenDecoder
from nacre.nac.tisa.files.problems import FileProblem, unsupported
from nacre.nac.tisa.files.sentence_model import (
    ModelType,
    Piece,
    PieceType,
    SentenceModel,
    check_pieces,
    read_model,
)
from nacre.nac.tisa.files.written import WrittenTokenizer
from nacre.nac.tisa.instructions import (
    FUSES_UNKNOWN,
    HAS_BYTES,
    JOINS_TEXTS,
    MARKS_END,
    MARKS_START,
    SINGLE_SPACES,
    WRITES_MARKS,
    Instruction,
    SoughtToken,
    step,
)
from nacre.nac.tisa.resources import Entry, Vocabulary
from nacre.nac.tisa.text.charsmap import Charsmap, CharsmapError

_FOUND = (PieceType.NORMAL, PieceType.USER_DEFINED)  # what a model may find in a text


def sentencepiece_program(raw: bytes) -> WrittenTokenizer:
    """The program of a file; FileProblem where there is none."""
    return sentence_program(read_model(raw))


def sentence_program(model: SentenceModel) -> WrittenTokenizer:
    """The same of a model that is at hand; FileProblem where it contradicts itself."""
    check_pieces(model)
    _check_unused(model)
    symbols = tuple(
        SoughtToken(text, index) for text, index in model.of_type(PieceType.USER_DEFINED).items()
    )
    steps = [_text_step(model, symbols), *_model_steps(model, symbols)]
    return WrittenTokenizer(tuple(steps), _vocabulary(model), _decoder(model))


def _check_unused(model: SentenceModel) -> None:
    """Merges that lead to an unused piece are undone, which no instruction does."""
    unused = model.of_type(PieceType.UNUSED)
    if unused and model.model != ModelType.UNIGRAM:
        raise unsupported(f"the piece {next(iter(unused))!r} is there and may not be used")
    found = {text for kind in _FOUND for text in model.of_type(kind)}
    odd = [p.text for p in model.pieces if len(p.text) == 1 and p.text not in found]
    if odd and model.model in (ModelType.BPE, ModelType.CHAR):
        raise unsupported(f"the character {odd[0]!r} is a piece that no text has")


def _text_step(model: SentenceModel, symbols: tuple[SoughtToken, ...]) -> Instruction:
    if model.table:
        try:
            Charsmap(model.table)
        except CharsmapError as error:
            raise FileProblem(f"the table of the normaliser is malformed: {error}") from None
    mark = MARKS_END if model.is_mark_last else MARKS_START
    flags = (
        SINGLE_SPACES * model.single_spaces
        | mark * model.adds_mark
        | WRITES_MARKS * model.writes_marks
    )
    return step("SENTENCE_TEXT", flags, symbols, model.table)


def _model_steps(model: SentenceModel, symbols: tuple[SoughtToken, ...]) -> list[Instruction]:
    (unknown,) = model.of_type(PieceType.UNKNOWN).values()
    options = HAS_BYTES * model.has_bytes
    if model.model == ModelType.UNIGRAM:
        return [step("SENTENCE_UNIGRAM", unknown, options, symbols)]
    if model.model == ModelType.WORD:
        return [step("SENTENCE_WORDS", unknown, options)]
    # Symbols of users join nothing: they are cut out first.
    apart = [step("FIND_TOKENS", symbols)] if symbols else []
    options |= FUSES_UNKNOWN | JOINS_TEXTS
    return [*apart, step("BPE_MODEL", unknown, options, "", "")]


def _vocabulary(model: SentenceModel) -> Vocabulary:
    entries = [
        Entry(p.text, index, p.score if _may_find(model, p) else math.nan)
        for index, p in enumerate(model.pieces)
    ]
    return Vocabulary(tuple(sorted(entries, key=lambda entry: entry.token)))


def _may_find(model: SentenceModel, piece: Piece) -> bool:
    """Whether a model finds a piece in a text; one of characters joins none of them."""
    is_joined = model.model == ModelType.CHAR and len(piece.text) > 1
    return piece.type in _FOUND and not is_joined


def _decoder(model: SentenceModel) -> TokenDecoder:
    control = model.of_type(PieceType.CONTROL)
    (unknown,) = model.of_type(PieceType.UNKNOWN)
    step = SentencePiece(
        control=tuple(control),
        unknown=unknown,
        surface=model.unknown_surface,
        has_bytes=bool(model.of_type(PieceType.BYTE)),
        drops_mark=model.adds_mark or model.single_spaces,
        drops_marks=model.single_spaces,
    )
    return TokenDecoder((step,), tuple(sorted(control.values())))

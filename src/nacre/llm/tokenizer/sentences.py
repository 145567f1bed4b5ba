"""BPE as SentencePiece has it (`llama`), with bytes for what no piece has, as a program."""

from __future__ import annotations

import math

from nacre.base.excerpt import backquote
from nacre.llm.model.problems import refusal
from nacre.llm.rules.tokenizer import LLM11
from nacre.llm.tokenizer.vocabulary import Vocabulary
from nacre.nac.tisa import TisaProgram, join, load
from nacre.nac.tisa.files.problems import FileProblem
from nacre.nac.tisa.files.sentence_model import ModelType, Piece, PieceType, SentenceModel
from nacre.nac.tisa.files.sentencepiece import sentence_program


def sentences_program(vocabulary: Vocabulary) -> TisaProgram:
    """The program; InputError where a model of SentencePiece cannot be so."""
    _require_pieces(vocabulary)
    rows = zip(vocabulary.tokens, vocabulary.scores, vocabulary.types, strict=True)
    pieces = tuple(Piece(text, score, PieceType(type_)) for text, score, type_ in rows)
    model = SentenceModel(
        pieces=pieces,
        model=ModelType.BPE,
        has_bytes=any(piece.type == PieceType.BYTE for piece in pieces),
        is_mark_last=False,
        unknown_surface=" \u2047 ",
        table=b"",
        adds_mark=vocabulary.adds_space,
        single_spaces=False,
        writes_marks=True,
    )
    try:
        made = sentence_program(model).bundle(vocabulary.file)
    except FileProblem as problem:
        raise problem.refusal(vocabulary.file) from None
    return load(join(made.manifest, made.resources))


def _require_pieces(vocabulary: Vocabulary) -> None:
    for text, score in zip(vocabulary.tokens, vocabulary.scores, strict=True):
        if not text or not math.isfinite(score):
            message = f"a token is {backquote(text)} with a score of {score}"
            raise refusal(LLM11, vocabulary.file, message)

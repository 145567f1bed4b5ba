"""`spiece.model` and `tokenizer.model`: what a file of SentencePiece says."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from nacre.nac.tisa.files.problems import FileProblem
from nacre.nac.tisa.files.protobuf import Value, read_fields
from nacre.nac.tisa.resources import MOST_ID

_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5
# Fields of a piece, of what the trainer was told, and of the normaliser.
_TEXT, _SCORE, _TYPE = 1, 2, 3
_MODEL, _SUFFIX, _BYTES, _SURFACE = 3, 24, 35, 44
_TABLE, _PREFIX, _SINGLE_SPACES, _MARKS = 2, 3, 4, 5


Member = TypeVar("Member", bound=IntEnum)


class PieceType(IntEnum):
    """What a piece is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelType(IntEnum):
    """What makes pieces of a text."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class Piece:
    """A piece; its id is its place in the file."""

    text: str
    score: float
    type: PieceType


@dataclass(frozen=True)
class SentenceModel:
    """A whole file."""

    pieces: tuple[Piece, ...]
    model: ModelType
    has_bytes: bool
    is_mark_last: bool
    unknown_surface: str
    table: bytes
    adds_mark: bool
    single_spaces: bool
    writes_marks: bool

    def of_type(self, kind: PieceType) -> dict[str, int]:
        """The ids of some pieces."""
        return {p.text: at for at, p in enumerate(self.pieces) if p.type == kind}


def read_model(raw: bytes) -> SentenceModel:
    """A file; FileProblem where it is malformed."""
    pieces: list[Piece] = []
    trainer: dict[int, Value] = {}
    normalizer: dict[int, Value] = {}
    for number, value in read_fields(memoryview(raw)):
        if number == _PIECES:
            pieces.append(_piece(_message(value), len(pieces)))
        elif number == _TRAINER:
            trainer.update(read_fields(_message(value)))
        elif number == _NORMALIZER:
            normalizer.update(read_fields(_message(value)))
        elif number == _DENORMALIZER and dict(read_fields(_message(value))).get(_TABLE):
            raise FileProblem("the file has a table for decoded texts, which is not taken")
    made = SentenceModel(
        pieces=tuple(pieces),
        model=_member(ModelType, _number(trainer, _MODEL, ModelType.UNIGRAM), "the model"),
        has_bytes=bool(_number(trainer, _BYTES, 0)),
        is_mark_last=bool(_number(trainer, _SUFFIX, 0)),
        unknown_surface=_text(trainer.get(_SURFACE, memoryview(" \u2047 ".encode()))),
        table=bytes(_message(normalizer.get(_TABLE, memoryview(b"")))),
        adds_mark=bool(_number(normalizer, _PREFIX, 1)),
        single_spaces=bool(_number(normalizer, _SINGLE_SPACES, 1)),
        writes_marks=bool(_number(normalizer, _MARKS, 1)),
    )
    return made


def _piece(message: memoryview, index: int) -> Piece:
    if index > MOST_ID:
        raise FileProblem(f"the file has more than {MOST_ID + 1:,} pieces")
    fields = dict(read_fields(message))
    score = fields.get(_SCORE, memoryview(bytes(4)))
    if isinstance(score, int) or len(score) != 4:
        raise FileProblem(f"the score of piece {index} is no number of 32 bits")
    (value,) = struct.unpack("<f", score)
    kind = _member(PieceType, _number(fields, _TYPE, PieceType.NORMAL), f"piece {index}")
    text = _text(fields.get(_TEXT, memoryview(b"")))
    if not text or not math.isfinite(value):
        raise FileProblem(f"piece {index} has the text {text!r} and the score {value}")
    return Piece(text, value, kind)


def check_pieces(made: SentenceModel) -> None:
    """FileProblem where pieces contradict each other, or what is said of them."""
    if len({piece.text for piece in made.pieces}) < len(made.pieces):
        raise FileProblem("two pieces have the same text")
    unknown = made.of_type(PieceType.UNKNOWN)
    if len(unknown) != 1:
        raise FileProblem(f"{len(unknown)} pieces stand for what is unknown, not one")
    names = {f"<0x{byte:02X}>" for byte in range(0x100)}
    if made.has_bytes and made.of_type(PieceType.BYTE).keys() != names:
        raise FileProblem("bytes stand for unknown characters, and there are not all 256 of them")


def _member(kinds: type[Member], value: int, what: str) -> Member:
    try:
        return kinds(value)
    except ValueError:
        raise FileProblem(f"{what} is of kind {value}, which there is not") from None


def _message(value: Value) -> memoryview:
    if isinstance(value, int):
        raise FileProblem("a number stands where bytes are expected")
    return value


def _text(value: Value) -> str:
    try:
        return bytes(_message(value)).decode("utf-8")
    except UnicodeDecodeError:
        raise FileProblem("a text is no UTF-8") from None


def _number(fields: Mapping[int, Value], number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise FileProblem(f"bytes stand where a number is expected (field {number})")
    return value

"""Files of SentencePiece and tiktoken, written here."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable

from nacre.nac.tisa.files.sentence_model import ModelType, PieceType

Row = tuple[str, float, PieceType]
UNKNOWN: Row = ("<unk>", 0.0, PieceType.UNKNOWN)
CONTROLS: tuple[Row, ...] = (("<s>", 0.0, PieceType.CONTROL), ("</s>", 0.0, PieceType.CONTROL))
BYTES: tuple[Row, ...] = tuple((f"<0x{b:02X}>", 0.0, PieceType.BYTE) for b in range(0x100))


def varint(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + varint(value >> 7)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def data(field: int, raw: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def piece(row: Row) -> bytes:
    text, score, kind = row
    body = data(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score)
    return data(1, body + number(3, kind))


def normal(*texts: str) -> list[Row]:
    """Pieces, the first with the highest score."""
    return [(text, -float(at), PieceType.NORMAL) for at, text in enumerate(texts, 1)]


def sentence_file(
    rows: Iterable[Row],
    model: ModelType = ModelType.UNIGRAM,
    *,
    has_bytes: bool = False,
    normalizer: bytes = b"",
) -> bytes:
    trainer = number(3, model) + number(35, int(has_bytes))
    return b"".join(map(piece, rows)) + data(2, trainer) + data(3, normalizer)


def ranked_file(tokens: Iterable[bytes]) -> bytes:
    """All bytes, then these tokens."""
    listed = [*(bytes([byte]) for byte in range(0x100)), *tokens]
    lines = (base64.b64encode(t) + b" %d" % rank for rank, t in enumerate(listed))
    return b"\n".join(lines) + b"\n"

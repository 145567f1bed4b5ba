"""Instructions as bytes, and bytes as instructions: exact inverses by the table."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.positions import Position
from nacre.nac.mep.table import LAYOUTS, RESERVED, ROWS_OF_OPCODE, Operand, Row
from nacre.nac.rules.container import NAC04
from nacre.nac.rules.plans import NAC82, NAC83, NAC84

Field = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction with its operands as the bytes have them; jumps are relative."""

    row: Row
    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return 1 + sum(_size(o, f) for o, f in zip(self.row.operands, self.fields, strict=True))

    def operands_with_fields(self) -> Iterator[tuple[Operand, Field]]:
        """Its operands with their values."""
        return zip(self.row.operands, self.fields, strict=True)


def _size(operand: Operand, field: Field) -> int:
    if isinstance(field, tuple):
        return 1 + len(field)
    return struct.calcsize(f"<{LAYOUTS[operand.kind]}")


def encode_step(step: Step) -> bytes:
    """The bytes of an instruction; `struct.error` where a value does not fit."""
    parts = [bytes([step.row.opcode])]
    for operand, field in step.operands_with_fields():
        if isinstance(field, tuple):
            parts.append(struct.pack(f"<B{len(field)}B", len(field), *field))
        else:
            parts.append(struct.pack(f"<{LAYOUTS[operand.kind]}", field))
    return b"".join(parts)


def decode_steps(bytecode: bytes, base: int = 0) -> tuple[tuple[Step, ...], tuple[int, ...]]:
    """The instructions, and where each begins; `base` is the place of the first byte.

    `Broken` says what cannot be read: the length of an instruction follows from its bytes, so that
    nothing behind it can be trusted.
    """
    cursor = Cursor(memoryview(bytecode), "ORCH")
    steps: list[Step] = []
    starts: list[int] = []
    while cursor.remaining:
        start = cursor.at
        try:
            steps.append(_step(cursor))
        except Broken as problem:
            rule = NAC84 if problem.rule is NAC04 else problem.rule
            place = Position(base + start, "ORCH", len(steps))
            raise Broken(rule, place, problem.message, problem.help) from None
        starts.append(start)
    return tuple(steps), tuple(starts)


def _step(cursor: Cursor) -> Step:
    row = _row(cursor)
    return Step(row, tuple([_field(cursor, row, operand) for operand in row.operands]))


def _row(cursor: Cursor) -> Row:
    opcode = cursor.u8("an instruction")
    rows = ROWS_OF_OPCODE.get(opcode, ())
    if not rows:
        known = "is reserved" if opcode in RESERVED else "is no instruction"
        raise Broken(NAC82, cursor.position(), f"0x{opcode:02X} {known}")
    if len(rows) == 1:
        return rows[0]
    first = cursor.u8(f"an operand of `{rows[0].mnemonic}`")
    cursor.at -= 1
    for row in rows:
        if first in row.operands[0].words:
            return row
    raise unknown_choice(rows, first)


def unknown_choice(rows: Sequence[Row], choice: int) -> Broken:
    """The refusal of a choice that none of the rows has."""
    words = {n: word for row in rows for n, word in row.operands[0].words.items()}
    return _unknown_choice(rows[0], rows[0].operands[0].name, words, choice)


def _unknown_choice(row: Row, name: str, words: dict[int, str], choice: int) -> Broken:
    known = ", ".join(f"{n} ({word})" for n, word in sorted(words.items()))
    message = f"`{name}` of `{row.mnemonic}` is {choice}, expected {known}"
    return Broken(NAC83, Position(0, "ORCH"), message)


def _field(cursor: Cursor, row: Row, operand: Operand) -> Field:
    what = f"`{operand.name}` of `{row.mnemonic}`"
    if operand.kind in ("slots", "outs"):
        return tuple(cursor.take(cursor.u8(what), what))
    layout = f"<{LAYOUTS[operand.kind]}"
    (number,) = struct.unpack(layout, cursor.take(struct.calcsize(layout), what))
    if operand.kind == "choice" and number not in operand.words:
        raise _unknown_choice(row, operand.name, dict(operand.words), number)
    return int(number)

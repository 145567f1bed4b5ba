"""OPS: the instructions. How long one is follows from its operation and its signature."""

from __future__ import annotations

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import name_place_of_refusal, numbers, pack
from nacre.nac.format.positions import Position
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Instruction
from nacre.nac.rules.container import NAC04
from nacre.nac.rules.program import NAC21, NAC22, NAC23, NAC31
from nacre.nac.spec.instructions import (
    CONSTANT_CODES,
    FIRST_REGULAR,
    SYSTEM,
    SYSTEM_NAMES,
    Variant,
)

_CONSTANTS = frozenset(CONSTANT_CODES)


def read(cursor: Cursor, reading: ReadContext) -> tuple[Instruction, ...]:
    """The instructions, up to the first whose length cannot be told."""
    offsets: list[int] = []

    def instruction() -> Instruction:
        start = cursor.at
        offsets.append(start)
        try:
            return _instruction(cursor, reading, Position(start, "OPS ", len(offsets) - 1))
        except Broken as problem:
            if problem.rule is NAC04 and problem.position.instruction is None:
                place = Position(problem.position.offset, "OPS ", len(offsets) - 1)
                raise Broken(problem.rule, place, problem.message) from None
            raise

    instructions = cursor.records(2, "instructions", instruction)
    reading.record_offsets["OPS "] = tuple(offsets)
    return instructions


def _instruction(cursor: Cursor, reading: ReadContext, place: Position) -> Instruction:
    op, variant = cursor.u8("the field A"), cursor.u8("the field B")
    if op < FIRST_REGULAR:
        c, d = _system(cursor, reading, _variant(op, variant, place), place)
    elif variant == 0:
        c, d = (), ()
    else:
        c, d = _regular(cursor, reading, variant, place)
    return Instruction(op, variant, c, d)


def _variant(op: int, variant: int, place: Position) -> Variant:
    variants = SYSTEM.get(op)
    if variants is None:
        known = ", ".join(f"{id_} {name}" for id_, name in SYSTEM_NAMES.items())
        raise Broken(NAC21, place, f"no system operation has id {op}, expected {known}")
    row = variants.get(variant)
    if row is None:
        message = f"{SYSTEM_NAMES[op]} has no variant {variant}, expected 0 to {max(variants)}"
        raise Broken(NAC21, place, message)
    return row


Fields = tuple[tuple[int, ...], tuple[int, ...]]


def _system(cursor: Cursor, reading: ReadContext, variant: Variant, place: Position) -> Fields:
    shape = variant.shape
    if shape == "none":
        return (), ()
    if shape == "outputs":
        count = reading.header.outputs
        c = cursor.i16s(count + 1, "the field C")
        _expect_prefix(reading, c, (count, count + 1), place)
        return c, cursor.i16s(count, "the field D")
    if shape == "prefix":
        c = _read_counted(cursor, place)
        return c, cursor.i16s(c[0], "the field D")
    c = cursor.i16s(3 if shape == "three" else 2, "the field C")
    _expect_prefix(reading, c, variant.prefixes, place)
    if shape == "id":
        return c, ()
    if shape == "three":
        return c, cursor.i16s(1, "the field D")
    head = cursor.i16s(2, "the field D")
    if head[1] < 0:
        raise Broken(NAC31, place, f"{head[1]} branches, expected 0 or more")
    return c, head + cursor.i16s(head[1], "the offsets of branches")


def _expect_prefix(
    reading: ReadContext, c: tuple[int, ...], expected: tuple[int, ...], place: Position
) -> None:
    if c[0] not in expected:
        shown = " or ".join(map(str, expected))
        reading.report(NAC23, place, f"field C begins with {c[0]}, expected {shown}")


def _regular(cursor: Cursor, reading: ReadContext, variant: int, place: Position) -> Fields:
    signature = (reading.signatures or {}).get(variant)
    if signature is None:
        raise Broken(NAC22, place, f"signature {variant} is not in PERM")
    has_constants = not _CONSTANTS.isdisjoint(signature)
    c = _read_counted(cursor, place) if has_constants else ()
    return c, cursor.i16s(len(signature), "the field D")


def _read_counted(cursor: Cursor, place: Position) -> tuple[int, ...]:
    """A count and so many numbers."""
    count = cursor.i16s(1, "the length of field C")
    if count[0] < 0:
        raise Broken(NAC23, place, f"field C has the length {count[0]}, expected 0 or more")
    return count + cursor.i16s(count[0], "the field C")


def write(instructions: tuple[Instruction, ...]) -> bytes:
    """The bytes behind the tag."""
    parts = [pack("I", "length", len(instructions))]
    at = 0
    with name_place_of_refusal(lambda: f"instruction {at}"):
        for at, instruction in enumerate(instructions):  # noqa: B007 - a refusal says which
            parts.append(pack("B", "operation", instruction.op))
            parts.append(pack("B", "signature", instruction.variant))
            parts.append(numbers("h", "constant id", instruction.c))
            parts.append(numbers("h", "operand offset", instruction.d))
    return b"".join(parts)


CODECS.register("OPS ")(SectionCodec(read, write))

"""CNST, and the pool of ORCH: constants with a type and a length."""

from __future__ import annotations

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import limit_error, pack
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Constant
from nacre.nac.rules.container import NAC13
from nacre.nac.rules.program import NAC17, NAC18
from nacre.nac.spec.constants import BOOL, MOST_LENGTH, STRING, TAGS

LEAST_BYTES = 5  # of a record


def read(cursor: Cursor, reading: ReadContext) -> tuple[Constant, ...]:
    """The constants."""
    offsets: list[int] = []

    def record() -> Constant:
        offsets.append(cursor.at)
        return read_constant(cursor, reading)

    constants = cursor.records(LEAST_BYTES, "constants", record)
    reading.record_offsets["CNST"] = tuple(offsets)
    reading.report_repeated((c.id for c in constants), tuple(offsets), "CNST", "constant")
    return constants


def read_constant(cursor: Cursor, reading: ReadContext) -> Constant:
    """One record."""
    start = cursor.at
    id_, code = cursor.u16("the id of a constant"), cursor.u8("the type of a constant")
    length = cursor.u16("the length of a constant")
    tag = TAGS.get(code)
    if tag is None:
        message = f"constant {id_} has type {code}, expected 0 to {max(TAGS)}"
        raise Broken(NAC17, cursor.position(start), message)
    if tag.counts == "nothing":
        return Constant(id_, code, b"", length)
    payload = bytes(cursor.take(length * tag.width, f"constant {id_} ({tag.name})"))
    if tag.length is not None and length != tag.length:
        message = f"constant {id_} is {tag.name} of length {length}, expected {tag.length}"
        raise Broken(NAC18, cursor.position(start), message)
    if code == BOOL and payload not in (b"\0", b"\1"):
        message = f"constant {id_} is the truth value {payload[0]}, expected 0 or 1"
        reading.report(NAC18, cursor.position(start), message)
    if code == STRING and not _is_utf8(payload):
        reading.report(NAC13, cursor.position(start), f"the string of constant {id_} is no UTF-8")
        payload = b""
    return Constant(id_, code, payload)


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def write(constants: tuple[Constant, ...]) -> bytes:
    """The bytes behind the tag."""
    return pack("I", "length", len(constants)) + b"".join(map(write_constant, constants))


def write_constant(constant: Constant) -> bytes:
    """One record."""
    tag = TAGS[constant.tag]
    length = constant.ignored if not tag.width else len(constant.payload) // tag.width
    if length > MOST_LENGTH:
        raise limit_error(
            "list", f"constant {constant.id} has {length:,} elements, at most {MOST_LENGTH:,}"
        )
    head = pack("H", "constant id", constant.id) + pack("BH", "list", constant.tag, length)
    return head + constant.payload


CODECS.register("CNST")(SectionCodec(read, write))

"""ORCH: the bytecode of an execution plan and its pool of constants."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import pack
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.sections.cnst import LEAST_BYTES, read_constant, write_constant
from nacre.nac.format.values import Constant, Plan


def read(cursor: Cursor, reading: ReadContext) -> Plan:
    """The plan."""
    length, start = cursor.u32("the length of the bytecode"), cursor.at
    count = cursor.u32("the number of constants")
    bytecode = bytes(cursor.take(length, "the bytecode"))
    offsets: list[int] = []

    def record() -> Constant:
        offsets.append(cursor.at)
        return read_constant(cursor, reading)

    pool = cursor.take_records(count, LEAST_BYTES, "constants of the plan", record, start)
    reading.report_repeated((c.id for c in pool), tuple(offsets), "ORCH", "constant")
    return Plan(bytecode, pool)


def write(plan: Plan) -> bytes:
    """The bytes behind the tag."""
    head = pack("II", "length", len(plan.bytecode), len(plan.constants))
    return head + plan.bytecode + b"".join(map(write_constant, plan.constants))


CODECS.register("ORCH")(SectionCodec(read, write))

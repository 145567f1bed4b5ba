"""MMAP: which memory commands happen at which instruction."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import pack
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Command, Tick


def read(cursor: Cursor, reading: ReadContext) -> tuple[Tick, ...]:
    """The ticks."""
    offsets: list[int] = []

    def command() -> Command:
        return Command(cursor.u8("an action"), cursor.u16("a target"))

    def tick() -> Tick:
        start = cursor.at
        offsets.append(start)
        at, count = cursor.u16("a tick"), cursor.u8("a number of commands")
        return Tick(at, cursor.take_records(count, 3, "memory commands", command, start))

    ticks = cursor.records(3, "ticks", tick)
    reading.record_offsets["MMAP"] = tuple(offsets)
    return ticks


def write(ticks: tuple[Tick, ...]) -> bytes:
    """The bytes behind the tag."""
    parts = [pack("I", "length", len(ticks))]
    for tick in ticks:
        parts.append(pack("H", "instruction", tick.tick))
        parts.append(pack("B", "memory command", len(tick.commands)))
        for command in tick.commands:
            parts.append(pack("B", "memory command", command.action))
            parts.append(pack("H", "instruction", command.target))
    return b"".join(parts)


CODECS.register("MMAP")(SectionCodec(read, write))

"""MMAP: which memory commands happen at which instruction."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import packed
from nacre.nac.format.reading import Reading
from nacre.nac.format.values import Command, Tick


def read(cursor: Cursor, reading: Reading) -> tuple[Tick, ...]:
    """The ticks."""
    offsets: list[int] = []

    def command() -> Command:
        return Command(cursor.u8("an action"), cursor.u16("a target"))

    def tick() -> Tick:
        start = cursor.at
        offsets.append(start)
        at, count = cursor.u16("a tick"), cursor.u8("a number of commands")
        return Tick(at, cursor.counted(count, 3, "memory commands", command, start))

    made = cursor.records(3, "ticks", tick)
    reading.places["MMAP"] = tuple(offsets)
    return made


def write(ticks: tuple[Tick, ...]) -> bytes:
    """The bytes behind the tag."""
    parts = [packed("I", "length", len(ticks))]
    for tick in ticks:
        parts.append(packed("H", "instruction", tick.tick))
        parts.append(packed("B", "memory command", len(tick.commands)))
        for command in tick.commands:
            parts.append(packed("B", "memory command", command.action))
            parts.append(packed("H", "instruction", command.target))
    return b"".join(parts)

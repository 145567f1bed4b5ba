"""A machine that knows single bytes only: values, whether they were written, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nem.plan.sketches import BUFFERS, SIZE, Place, Task
from tests.nem.run.programs import naive_writes, place_bytes

POISON = 0xFF


@dataclass(frozen=True)
class Gap:
    """Bytes that an operand needs and nobody wrote, when it was first met."""

    token: str
    env: tuple[tuple[str, int], ...]
    buffer: str
    low: int
    high: int


def _of_each(value: object) -> dict[str, list[object]]:
    return {name: [value] * SIZE for name in BUFFERS}


@dataclass
class Naive:
    """The buffers of a sketch."""

    memory: dict[str, bytearray] = field(
        default_factory=lambda: {name: bytearray([POISON] * SIZE) for name in BUFFERS}
    )
    written: dict[str, list[object]] = field(default_factory=lambda: _of_each(False))
    writer: dict[str, list[object]] = field(default_factory=lambda: _of_each(None))
    gaps: dict[tuple[str, int], Gap] = field(default_factory=dict)  # by token and operand

    def host(self, buffer: str, offset: int, data: bytes) -> None:
        """The host writes."""
        end = offset + len(data)
        self.memory[buffer][offset:end] = data
        self.written[buffer][offset:end] = [True] * len(data)
        self.writer[buffer][offset:end] = ["host"] * len(data)

    def run(self, task: Task, env: dict[str, int], name: str) -> None:
        """An instance runs: copies carry poison along, computing reports it and ends it."""
        new = naive_writes(task, env, self.memory)
        came: list[object] = [True] * len(new)
        if task.is_compute:
            for number, read in enumerate(task.reads):
                self._look(task, number, read, env)
        else:
            came = [self.written[b][at] for b, at in place_bytes(task.reads[0], env)]
        for ((buffer, byte), value), is_known in zip(new.items(), came, strict=True):
            self.memory[buffer][byte] = value
            self.written[buffer][byte] = is_known
            self.writer[buffer][byte] = name if is_known else None

    def _look(self, task: Task, number: int, read: Place, env: dict[str, int]) -> None:
        key = (task.token, number)
        missing = [at for b, at in place_bytes(read, env) if not self.written[b][at]]
        if key in self.gaps or not missing:
            return
        high = missing[0]
        while high in missing:
            high += 1
        self.gaps[key] = Gap(task.token, tuple(env.items()), read.buffer, missing[0], high)

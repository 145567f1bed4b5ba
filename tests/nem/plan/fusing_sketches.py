"""Random programs of products, elementwise tasks and copies that share a few slots of L1.

Dependences are worked out byte by byte, so that nothing races; beyond them there are further ones,
waits and `.sync` forms. What reads what is worked out by moving single bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

SLOT = 32  # bytes: f16 [4, 4]
SLOTS = 5
Bytes = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Operand:
    """A tensor in a buffer."""

    buffer: str
    offset: int

    @property
    def bytes(self) -> Bytes:
        return frozenset((self.buffer, self.offset + i) for i in range(SLOT))

    @property
    def text(self) -> str:
        type_ = "elem=f16, shape=[4, 4], layout=MN"
        return f"region({self.buffer}, {self.offset}, {SLOT}) {type_}"


@dataclass(frozen=True)
class Sketch:
    """A task with everything that it waits for by name."""

    token: str
    op: str
    reads: tuple[Operand, ...]
    write: Operand
    deps: tuple[str, ...]
    is_sync: bool
    wait_before: str | None

    def lines(self) -> Iterator[str]:
        if self.wait_before is not None:
            yield f"wait({self.wait_before})"
        form = f"{self.op}.{'sync' if self.is_sync else 'async'}"
        deps = f"deps=[{', '.join(self.deps)}]" if self.deps else ""
        if self.op in ("transfer", "store"):
            comma = ", " if deps else ""
            (source,) = self.reads
            yield f"{self.token} = {form}(dst={self.write.text}, src={source.text}{comma}{deps})"
            return
        inputs = ", ".join(operand.text for operand in self.reads)
        accum = " accum_type=f32" if self.op == "gemm" else ""
        yield f"{self.token} = {form} in {inputs} out {self.write.text} {deps}{accum}"


@dataclass(frozen=True)
class Body:
    """A flat program, or the same a few times over in a loop."""

    tasks: tuple[Sketch, ...]
    times: int  # 0: no loop

    @property
    def text(self) -> str:
        lines = [line for task in self.tasks for line in task.lines()]
        if self.times:
            lines = [f"loop i in [0..{self.times - 1}]:", *lines, "endloop"]
        return _HEAD + "\n".join(lines) + "\n"

    def value_pairs(self) -> dict[tuple[str, str], bool]:
        """Writers and readers of values, and whether they are alone with them every time."""
        owner: dict[tuple[str, int], tuple[str, int]] = {}
        uses: dict[tuple[str, int], set[tuple[str, int, int]]] = {}
        pairs: dict[tuple[str, str], bool] = {}
        for time in range(max(1, self.times)):
            for task in self.tasks:
                for number, operand in enumerate(task.reads):
                    seen = {owner.get(byte) for byte in operand.bytes}
                    for value in seen - {None}:
                        assert value is not None
                        is_alone = len(seen) == 1 and value[1] == time
                        uses.setdefault(value, set()).add((task.token, time, number))
                        key = (value[0], task.token)
                        pairs[key] = pairs.get(key, True) and is_alone
                owner |= dict.fromkeys(task.write.bytes, (task.token, time))
        for (writer, reader), is_alone in list(pairs.items()):
            for time in range(max(1, self.times)):
                mine = uses.get((writer, time), set())
                is_alone = is_alone and len(mine) == 1 and next(iter(mine))[:2] == (reader, time)
            pairs[writer, reader] = is_alone
        computing = {task.token for task in self.tasks if task.op not in ("transfer", "store")}
        return {pair: alone for pair, alone in pairs.items() if pair[0] in computing}


_HEAD = f"""\
include "npm_lite.nem"
device npm_lite
program sketch:
buffer S : L1 (size={SLOT * SLOTS})
buffer W : L1 (size={SLOT})
buffer O : L2 (size={SLOT * SLOTS})
"""
INPUTS = {"S": SLOT * SLOTS, "W": SLOT, "O": SLOT * SLOTS}


def draw_body(rng: random.Random, most: int = 9, *, loops: bool = True) -> Body:
    """A program without races."""
    tasks: list[Sketch] = []
    for number in range(rng.randint(2, most)):
        op = _draw_op(rng, tasks)
        reads, write = _operands(rng, op, tasks)
        tasks.append(_task(rng, f"t{number}", op, reads, write, tasks))
    return Body(tuple(tasks), rng.choice([0, 0, 1, 3]) if loops else 0)


def _draw_op(rng: random.Random, before: list[Sketch]) -> str:
    """An opcode, often one that goes on with the task before."""
    following = {"gemm": ["relu", "add", "store"], "relu": ["store"], "add": ["store"]}
    if before and before[-1].op in following and rng.random() < 0.6:
        return rng.choice(following[before[-1].op])
    return rng.choice(["gemm"] * 3 + ["relu", "relu", "add", "store", "store", "transfer"])


def _slot(rng: random.Random, buffer: str) -> Operand:
    half = rng.random() < 0.1  # across two slots
    return Operand(buffer, rng.randrange(SLOTS - 1) * SLOT + (SLOT // 2 if half else 0))


def _operands(
    rng: random.Random, op: str, before: list[Sketch]
) -> tuple[tuple[Operand, ...], Operand]:
    if op == "transfer":
        return (_slot(rng, "O"),), _slot(rng, "S")
    source = _slot(rng, "S")
    latest = [task.write for task in before[-3:] if task.write.buffer == "S"]
    if latest and rng.random() < 0.85:  # or values would seldom be read
        source = rng.choice([latest[-1], latest[-1], *latest])
    if op == "store":
        return (source,), _slot(rng, "O")
    other = _slot(rng, "S")
    reads = {"gemm": (source, Operand("W", 0)), "add": (source, other)}.get(op, (source,))
    while True:
        write = rng.choice([_slot(rng, "S"), *(reads[:1] if op != "gemm" else ())])
        is_apart = all(not write.bytes & read.bytes for read in reads)
        if is_apart or (op != "gemm" and all(_is_same_or_apart(write, read) for read in reads)):
            return reads, write


def _is_same_or_apart(write: Operand, read: Operand) -> bool:
    return write == read or not write.bytes & read.bytes


def _task(
    rng: random.Random,
    token: str,
    op: str,
    reads: tuple[Operand, ...],
    write: Operand,
    before: list[Sketch],
) -> Sketch:
    read = frozenset().union(*(operand.bytes for operand in reads))
    needed = [
        task.token
        for task in before
        if task.write.bytes & (read | write.bytes)
        or any(operand.bytes & write.bytes for operand in task.reads)
    ]
    further = [task.token for task in before if rng.random() < 0.1]
    deps = tuple(dict.fromkeys([*needed, *further]))
    wait = rng.choice(before).token if before and rng.random() < 0.08 else None
    return Sketch(token, op, reads, write, deps, rng.random() < 0.05, wait)

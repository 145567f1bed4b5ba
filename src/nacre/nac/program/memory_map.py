"""What following a schedule of memory means: a proof that it is right, and what it costs.

Every result has memory of its own. A weight takes it from the tick at which it is preloaded, other
results from their own; inputs count too. The least that any schedule of the same program can do
holds each result from its instruction to its last use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from nacre.core.module import TensorType
from nacre.nac.checks.examination import operand_offsets
from nacre.nac.checks.lifetimes import End, Lifetimes, lifetimes
from nacre.nac.format.values import NacFile
from nacre.nac.program.lift import Types, result_types
from nacre.nac.run.loaded_program import LoadedProgram
from nacre.nac.spec.instructions import (
    FORWARD,
    INPUT,
    OUTPUT,
    PARAMETER,
    PRELOAD,
    SAVE_RESULT,
)


@dataclass(frozen=True)
class MemoryMap:
    """What is found when a schedule is lifetimes."""

    violations: tuple[str, ...]  # uses of freed memory, and what is freed twice
    never_freed: tuple[int, ...]  # results that are not returned and stay
    not_kept: tuple[int, ...]  # results that are used, and neither saved nor forwarded
    not_preloaded: tuple[int, ...]  # weights that are loaded when they are needed
    peak_bytes: int
    least_bytes: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is used after it was freed or freed twice."""
        return not self.violations

    @property
    def is_complete(self) -> bool:
        """Whether everything is kept, loaded ahead, and freed."""
        return not (self.never_freed or self.not_kept or self.not_preloaded)

    def __str__(self) -> str:
        ratio = self.peak_bytes / self.least_bytes if self.least_bytes else 1.0
        peak = f"peak {self.peak_bytes:,} bytes, least {self.least_bytes:,} ({ratio:.2f} times)"
        words = {
            "never freed": self.never_freed,
            "not kept": self.not_kept,
            "not preloaded": self.not_preloaded,
        }
        parts = [f"{word}: {', '.join(map(str, some))}" for word, some in words.items() if some]
        return "\n".join([*self.violations, *parts, peak])


def memory_map(model: LoadedProgram, types: Types | None = None) -> MemoryMap:
    """Follow the schedule of a model; `types` gives those of inputs that the file does not say.

    InputError where sizes are only known in a run.
    """
    file = model.file
    results = result_types(model, types)
    sizes = {index: sum(map(_bytes, found)) for index, found in results.items()}
    operands = operands_of(file)
    run = lifetimes(operands, file.schedule)
    returned = set(operands[-1]) if operands else set()
    last = _last_uses(operands)
    return MemoryMap(
        tuple(violation.message for violation in run.violations),
        tuple(_never_freed(file, run, returned)),
        tuple(_not_kept(file, last)),
        tuple(_not_preloaded(file)),
        _peak(file, sizes, run.ends),
        _least_peak(len(operands), sizes, last, returned),
    )


def operands_of(file: NacFile) -> list[list[int]]:
    """The instructions that each instruction uses."""
    return [
        [index + offset for offset in operand_offsets(i.op, i.c, i.d) if offset]
        for index, i in enumerate(file.instructions)
    ]


def _bytes(type_: TensorType) -> int:
    return -(-prod(type_.shape) * type_.element.bits // 8)


def _last_uses(operands: list[list[int]]) -> dict[int, int]:
    return {result: index for index, used in enumerate(operands) for result in used}


def _never_freed(file: NacFile, run: Lifetimes, returned: set[int]) -> list[int]:
    return [
        index
        for index, instruction in enumerate(file.instructions)
        if instruction.op != OUTPUT and index not in run.ends and index not in returned
    ]


def _not_kept(file: NacFile, last: Mapping[int, int]) -> list[int]:
    kept = {t.tick for t in file.schedule for c in t.commands if c.action in (SAVE_RESULT, FORWARD)}
    return [
        index
        for index, instruction in enumerate(file.instructions)
        if instruction.op not in (INPUT, OUTPUT) and index in last and index not in kept
    ]


def _not_preloaded(file: NacFile) -> list[int]:
    loaded = _preloads(file)
    return [
        index
        for index, i in enumerate(file.instructions)
        if (i.op, i.variant) == (INPUT, PARAMETER) and index not in loaded
    ]


def _preloads(file: NacFile) -> dict[int, int]:
    """The tick at which each weight is preloaded."""
    return {
        c.target: tick.tick for tick in file.schedule for c in tick.commands if c.action == PRELOAD
    }


def _peak(file: NacFile, sizes: Mapping[int, int], ends: Mapping[int, End]) -> int:
    """The most bytes at one time; of the commands of a tick those that free come first."""
    early = _preloads(file)
    births = {index: early.get(index, index) for index in sizes}
    changes: dict[tuple[int, int], int] = {}
    for index, size in sizes.items():
        moment = 2 if births[index] < index else 0  # after the instruction, or with it
        changes[births[index], moment] = changes.get((births[index], moment), 0) + size
        if index in ends:
            tick = ends[index].tick
            changes[tick, 1] = changes.get((tick, 1), 0) - size
    return _running_maximum(changes)


def _least_peak(
    count: int, sizes: Mapping[int, int], last: Mapping[int, int], returned: set[int]
) -> int:
    changes: dict[tuple[int, int], int] = {}
    for index, size in sizes.items():
        changes[index, 0] = changes.get((index, 0), 0) + size
        end = count if index in returned else last.get(index, index)
        changes[end, 1] = changes.get((end, 1), 0) - size
    return _running_maximum(changes)


def _running_maximum(changes: Mapping[tuple[int, int], int]) -> int:
    live = most = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most

"""Constants: what blocks read of them is what the program has, compressed or not.

Bytes that nobody reads may be anything: compressed constants leave room where the plain ones lay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.weight_compression import BrokenCompressionError, decompress
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Program
from nacre.tcb.image import Image, Operand, Placement
from nacre.tcbcheck.accesses import BlockAccess, block_accesses
from nacre.tcbcheck.copies import chosen_compression
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.meaning import task_operand
from nacre.tcbcheck.rules import TCB88

_Bytes = npt.NDArray[np.uint8]
_Runs = npt.NDArray[np.int64]


def compare_constants(
    program: Program,
    image: Image,
    constants: Mapping[str, bytes],
    blocks: Sequence[TaskBlock],
) -> Iterator[Diagnostic]:
    """Reads of constants that find something else; the operands of blocks are known to be right."""
    placements = {placement.buffer: placement for placement in image.placements}
    accesses: dict[str, list[tuple[TaskBlock, BlockAccess, TaskOperand]]] = {}
    for block in blocks:
        for access in block_accesses(block.found):
            operand = task_operand(block.task, access)
            region = operand.region if operand is not None else None
            if operand is not None and region is not None and region.buffer is not None:
                found = accesses.setdefault(region.buffer.name, [])
                found.append((block, access, operand))
    for name, data in constants.items():
        stored = _StoredConstant(image, placements[name], data)
        written = [_runs(a) for _, a, _ in accesses.get(name, ()) if a.is_write]
        for block, access, operand in accesses.get(name, ()):
            problem = None if access.is_write else stored.problem(access, operand, written)
            if problem is not None:
                message = f"the block of `{block.task.name}` {problem}"
                yield TCB88.at(program.span(operand.node), message)


class _StoredConstant:
    """The bytes of a constant as the program and as the image has them."""

    def __init__(self, image: Image, placement: Placement, data: bytes) -> None:
        self._placement = placement
        self._expected = np.frombuffer(data, np.uint8)
        self._found: _Bytes = np.zeros(placement.size, np.uint8)
        self._is_there = np.zeros(placement.size, np.bool_)
        self._is_of_host = any(
            port.memory == placement.memory
            and port.address < placement.address + placement.size
            and placement.address < port.address + port.size
            for port in image.ports
        )
        for constant in image.constants:
            if constant.memory == placement.memory:
                self._write(constant.address - placement.address, constant.data)
        size = self._expected.size
        wrong = (self._found[:size] != self._expected) | ~self._is_there[:size]
        self._wrong_before = np.concatenate([[0], np.cumsum(wrong)])

    def _write(self, offset: int, data: bytes) -> None:
        low, high = max(0, offset), min(self._placement.size, offset + len(data))
        if low < high:
            part = np.frombuffer(data, np.uint8)[low - offset : high - offset]
            self._found[low:high] = part
            self._is_there[low:high] = True

    def problem(
        self, access: BlockAccess, operand: TaskOperand, written: Sequence[_Runs]
    ) -> str | None:
        """Why a read does not find what the program has; None where it does."""
        if chosen_compression(access.operand, operand):
            return self._compressed_problem(access.operand, access, written)
        runs = np.clip(_runs(access) - self._placement.address, 0, self._expected.size)
        wrong = self._wrong_before[runs[:, 1]] - self._wrong_before[runs[:, 0]]
        if not wrong.any():
            return None
        at = int(runs[int(np.flatnonzero(wrong)[0]), 0])
        while self._wrong_before[at + 1] == self._wrong_before[at]:
            at += 1
        name = self._placement.buffer
        return f"reads byte {at:#x} of `{name}`, where the image has another than the program"

    def _compressed_problem(
        self, source: Operand, access: BlockAccess, written: Sequence[_Runs]
    ) -> str | None:
        name = self._placement.buffer
        if self._is_of_host:
            return f"reads `{name}` compressed, which the host fills or reads"
        form, bits = source.compression, ELEMENT_TYPES[source.elem].bits
        count = prod(source.dims)
        size = count * bits // 8
        for start in np.unique(access.address).tolist():
            low = start - self._placement.address
            if any(_meets(runs, start, start + size) for runs in written):
                return f"reads bytes of `{name}` compressed that a task writes"
            given = self._found[low : low + (source.compressed_bytes or 0)]
            try:
                plain, used = decompress(given, count, bits, form)  # type: ignore[arg-type]
            except BrokenCompressionError as error:
                return f"cannot decompress byte {low:#x} of `{name}`: {error}"
            is_right = np.array_equal(plain, self._expected[low : low + size])
            if not is_right or not self._is_there[low : low + used].all():
                return f"decompresses other bytes at {low:#x} of `{name}` than the program has"
        return None


def _runs(access: BlockAccess) -> _Runs:
    """The bytes of an access in all instances, each place once."""
    starts = np.unique(access.address)
    return (starts[:, None, None] + access.pattern.runs[None]).reshape(-1, 2)


def _meets(runs: _Runs, low: int, high: int) -> bool:
    return bool(((runs[:, 0] < high) & (low < runs[:, 1])).any())

"""Transfers that decompress their source, elements as they were before they were compressed."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.weight_compression import BrokenCompressionError, Bytes, decompress
from nacre.kernels.interface.layouts import Layout, layout
from nacre.nem.model.program import Task
from nacre.nem.plan.footprints import copies_elements
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.actions import Action, ByteRange, copy_operands
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.machine.places import Place, Places, elements
from nacre.nem.run.machine.signatures import Signatures, signatures
from nacre.nem.run.memory.bound_operands import OperandOffsets, OperandSizes
from nacre.nem.run.memory.memory import POISON, Memory
from nacre.nem.run.memory.written import mark_written
from nacre.nem.spec.rules.running import RUN13


class DecompressingTransfer(Action):
    """A transfer whose source is compressed."""

    def __init__(self, task: Task, grid: Grid, memory: Memory, findings: Findings) -> None:
        self.task, self.grid, self._findings = task, grid, findings
        source, target = copy_operands(task)
        region = source.region
        compression = region.compression if region is not None else None
        if region is None or compression is None or compression.form is None or not region.elem:
            raise ValueError("a compressed region of a program with errors")
        self._element, self._form = ELEMENT_TYPES[region.elem], compression.form
        self._source = OperandOffsets(source, grid, memory)
        self._target = OperandOffsets(target, grid, memory)
        self._size = OperandSizes(source, grid)
        self._source_index = task.operands.index(source)
        self._is_scattered = copies_elements(task)
        self._signatures: Signatures = signatures(task, grid)

    def _layouts(self, row: int) -> tuple[Layout, Layout]:
        """The elements as they come out of the unit, and as the destination has them."""
        found = self._signatures.at(row).layouts
        source, target = found[self._source_index], found[1 - self._source_index]
        if source is None:
            raise ValueError("a compressed region without type")
        dense = layout(self._element, source.shape)
        return dense, target if self._is_scattered and target is not None else dense

    def run(self, row: int) -> bool:
        """Decompress; bytes that nobody wrote make the whole destination so."""
        dense, target = self._layouts(row)
        storage, start, size = self._source.storage, self._source.offset(row), self._size.size(row)
        count = int(np.prod(dense.shape, dtype=np.int64))
        gap = storage.first_gap(start, start + size)
        plain: Bytes | None = None
        try:
            given = storage.data[start : start + size]
            plain, used = decompress(given, count, self._element.bits, self._form)
            if gap is not None and gap[0] < start + used:
                plain = None
        except BrokenCompressionError as error:
            if gap is None:
                message = f"cannot decompress its source: {error}"
                self._findings.report(RUN13, self.task, self.grid, row, message)
                return False
        is_known = plain is not None
        if plain is None:
            plain = np.full(bytes_needed(count, self._element), POISON, np.uint8)
        low, into = self._target.offset(row), self._target.storage
        target.put(into.data, low, dense.array(plain, 0))
        if into.missing or storage.missing:
            mark_written(target, into, low, is_known)
        return True

    def writes(self, row: int) -> list[ByteRange]:
        """The elements of the destination."""
        low = self._target.offset(row)
        return [(self._target.storage, low, low + self._layouts(row)[1].span)]

    def places(self, row: int) -> Places:
        """The compressed bytes, and the elements of the destination."""
        start, low = self._source.offset(row), self._target.offset(row)
        source = Place(self._source.storage, start, start + self._size.size(row))
        target = elements(self._target.storage, self._layouts(row)[1], low)
        return Places([source], [target])

    def reads(self, row: int) -> list[ByteRange]:
        """The compressed bytes."""
        low = self._source.offset(row)
        return [(self._source.storage, low, low + self._size.size(row))]

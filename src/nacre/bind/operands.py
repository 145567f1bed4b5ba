"""Operands of tasks as elements at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import Lookup, resolve_symbols, tensor_type
from nacre.nem.plan.footprints import copies_elements
from nacre.tcb.image import STREAM, Operand, Quant

_RAW = "u8"  # the element type of bytes that a copy moves as they are


class OperandBinder:
    """Makes operands for tasks; `addresses` are those of buffers, by their index."""

    def __init__(self, addresses: Mapping[int, int], streamed: Collection[int] = ()) -> None:
        self._addresses = addresses
        self._streamed = streamed  # operands of tasks whose values are never written, by id
        self._quants: dict[tuple[object, ...], Quant] = {}

    def operands(
        self, task: Task, access: str, counters: Counters, lookup: Lookup
    ) -> tuple[Operand, ...]:
        """The operands that a task reads, or writes."""
        is_copy = task.op in ("transfer", "store")
        is_raw = is_copy and not copies_elements(task)
        found = []
        for operand in task.operands:
            if operand.access == access:
                region = _region(operand)
                if is_raw and region.compression is None:
                    bound = self._raw(task, region, counters, lookup)
                else:
                    bound = self._typed(region, counters, lookup)
                if id(operand) in self._streamed:
                    bound = replace(bound, memory=STREAM, address=0)
                found.append(bound)
        return tuple(found)

    def _address(self, region: Region, counters: Counters) -> tuple[str, Term]:
        buffer = region.buffer
        if buffer is None:
            raise ValueError("a region of a program with errors")
        return buffer.memory, add(counters.term(region.offset), self._addresses[buffer.index])

    def _raw(self, task: Task, region: Region, counters: Counters, lookup: Lookup) -> Operand:
        """The bytes of a copy: as many as its source has."""
        source = next(_region(o) for o in task.operands if o.access == "read")
        if source.compression is not None:
            return self._decompressed(region, source, counters, lookup)
        size = resolve_symbols(source.extent, lookup)
        return Operand(*self._address(region, counters), _RAW, (size,))

    def _decompressed(
        self, region: Region, source: Region, counters: Counters, lookup: Lookup
    ) -> Operand:
        """Where the elements of a compressed source go, side by side."""
        shape = resolve_symbols(source.shape, lookup)
        return Operand(*self._address(region, counters), source.elem or _RAW, shape)

    def _typed(self, region: Region, counters: Counters, lookup: Lookup) -> Operand:
        type_ = tensor_type(region, lookup)
        strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
        compression = region.compression
        is_compressed = compression is not None
        return Operand(
            *self._address(region, counters),
            type_.elem.name,
            type_.shape,
            strides,
            self._quant(region, lookup),
            compression.form if compression is not None else None,
            resolve_symbols(region.extent, lookup) if is_compressed else None,
        )

    def _quant(self, region: Region, lookup: Lookup) -> Quant | None:
        """The quantisation of a region; equal ones are one value."""
        quant = region.quant
        if quant is None:
            return None
        made = tensor_type(region, lookup).quant
        if made is None:
            raise ValueError("a quantisation of a program with errors")
        scales, zeros = tuple(made.scale.tolist()), tuple(made.zero_point.tolist())
        key = (scales, zeros, made.axis, made.group_size)
        return self._quants.setdefault(key, Quant(scales, zeros, made.axis, made.group_size))


def _region(operand: TaskOperand) -> Region:
    if operand.region is None:
        raise ValueError("a region of a program with errors")
    return operand.region

"""Tasks bound to memory: what an instance does when its turn comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.layouts import Layout
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.quantization import quantizer
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.calls import lookup_at, tensor_type, varying_parts
from nacre.nem.plan.footprints import Footprint, copies_elements, quantises
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.places import Place, Places, elements
from nacre.nem.run.machine.signatures import Signatures, signatures
from nacre.nem.run.memory.bound_operands import OperandOffsets, OperandSizes
from nacre.nem.run.memory.memory import Memory, Storage
from nacre.nem.run.memory.written import mark_written

ByteRange = tuple[Storage, int, int]  # bytes low..high of a buffer that an instance may touch


class Action(ABC):
    """What the instances of one task do."""

    task: Task
    grid: Grid

    @abstractmethod
    def run(self, row: int) -> bool:
        """Do it; False where the run cannot go on."""

    @abstractmethod
    def writes(self, row: int) -> list[ByteRange]:
        """The bytes that an instance may change."""

    @abstractmethod
    def reads(self, row: int) -> list[ByteRange]:
        """The bytes that an instance may look at."""

    def source_of(self, row: int, byte: int) -> tuple[Storage, int, int] | None:
        """Of a copy: where a byte of the destination came from, and how many follow it there."""
        return None

    def places(self, row: int) -> Places | None:
        """What it reads and writes exactly; None where it does more than these say."""
        return None

    def can_hold(self, row: int) -> bool:
        """Whether `prepare` takes inputs that are held."""
        return False

    def widens(self, row: int) -> bool:
        """Whether inputs of f16 that are held may as well be f32 of the same values."""
        return False

    def prepare(self, row: int, held: Mapping[int, Array]) -> Callable[[], bool]:
        """The same as `run`, with some inputs held beside memory."""
        return partial(self.run, row)


class ByteCopy(Action):
    """A transfer or store of raw bytes."""

    def __init__(self, task: Task, grid: Grid, memory: Memory) -> None:
        self.task, self.grid = task, grid
        source, target = copy_operands(task)
        self._source, self._target = (
            OperandOffsets(source, grid, memory),
            OperandOffsets(target, grid, memory),
        )
        self._size = OperandSizes(source, grid)

    def run(self, row: int) -> bool:
        """Copy the source's extent; bytes that nobody wrote stay so."""
        source, target = self._source, self._target
        size, low, start = self._size.size(row), target.offset(row), source.offset(row)
        target.storage.data[low : low + size] = source.storage.data[start : start + size]
        if target.storage.missing or source.storage.missing:
            target.storage.mark_copied(low, source.storage, start, size)
        return True

    def writes(self, row: int) -> list[ByteRange]:
        """The part of the destination that the source fills."""
        low = self._target.offset(row)
        return [(self._target.storage, low, low + self._size.size(row))]

    def reads(self, row: int) -> list[ByteRange]:
        """The source."""
        low = self._source.offset(row)
        return [(self._source.storage, low, low + self._size.size(row))]

    def places(self, row: int) -> Places:
        """As many bytes here as there."""
        size, low, start = self._size.size(row), self._target.offset(row), self._source.offset(row)
        source = Place(self._source.storage, start, start + size)
        return Places([source], [Place(self._target.storage, low, low + size)])

    def prepare(self, row: int, held: Mapping[int, Array]) -> Callable[[], bool]:
        """A copy between bytes that stay where they are."""
        (source,), (target,) = self.places(row)
        if target.storage.missing or source.storage.missing:
            return partial(self.run, row)
        return _copy(source.bytes, target.bytes)

    def source_of(self, row: int, byte: int) -> tuple[Storage, int, int] | None:
        """The same distance from the start of the source."""
        at = byte - self._target.offset(row)
        left = self._size.size(row) - at
        if at < 0 or left <= 0:
            return None
        return self._source.storage, self._source.offset(row) + at, left


class ElementCopy(Action):
    """A transfer or store between different strides: element by element, gaps left alone."""

    def __init__(self, task: Task, grid: Grid, memory: Memory) -> None:
        self.task, self.grid = task, grid
        source, target = copy_operands(task)
        self._source, self._target = (
            OperandOffsets(source, grid, memory),
            OperandOffsets(target, grid, memory),
        )
        self._source_index = task.operands.index(source)
        self._signatures: Signatures = signatures(task, grid)

    def _layouts(self, row: int) -> tuple[Layout, Layout]:
        layouts = self._signatures.at(row).layouts
        source, target = layouts[self._source_index], layouts[1 - self._source_index]
        if source is None or target is None:
            raise ValueError("an element copy between regions without type")
        return source, target

    def run(self, row: int) -> bool:
        """Copy the elements."""
        source, target = self._layouts(row)
        start, low = self._source.offset(row), self._target.offset(row)
        values = self._convert(row, source.array(self._source.storage.data, start))
        if self._source.storage is self._target.storage:
            values = values.copy()
        target.put(self._target.storage.data, low, values)
        if self._target.storage.missing or self._source.storage.missing:
            came = source.flags(self._source.storage.written, start)
            mark_written(target, self._target.storage, low, came)
        return True

    def _convert(self, row: int, values: Array) -> Array:
        """The elements as the destination stores them: as they are."""
        return values

    def writes(self, row: int) -> list[ByteRange]:
        """From the first to the last element of the destination."""
        low = self._target.offset(row)
        return [(self._target.storage, low, low + self._layouts(row)[1].span)]

    def reads(self, row: int) -> list[ByteRange]:
        """From the first to the last element of the source."""
        low = self._source.offset(row)
        return [(self._source.storage, low, low + self._layouts(row)[0].span)]

    def places(self, row: int) -> Places:
        """The elements of both."""
        source, target = self._layouts(row)
        start, low = self._source.offset(row), self._target.offset(row)
        read = elements(self._source.storage, source, start)
        return Places([read], [elements(self._target.storage, target, low)])

    def prepare(self, row: int, held: Mapping[int, Array]) -> Callable[[], bool]:
        """A copy between elements that stay where they are, if they are no parts of bytes."""
        (source,), (target,) = self.places(row)
        is_same = source.storage is target.storage
        is_view = all(p.layout is not None and p.layout.is_view for p in (source, target))
        if is_same or not is_view or target.storage.missing or source.storage.missing:
            return partial(self.run, row)
        return _copy(source.array(), target.array())

    def source_of(self, row: int, byte: int) -> tuple[Storage, int, int] | None:
        """The same element of the source."""
        source, target = self._layouts(row)
        at = byte - self._target.offset(row)
        if not 0 <= at < target.span:
            return None
        first = target.first_bytes()
        elements = np.flatnonzero((first <= at) & (at < first + target.element_bytes))
        if not elements.size:  # a gap between elements
            return None
        begin = self._source.offset(row) + int(source.first_bytes()[elements[0]])
        return self._source.storage, begin, source.element_bytes


class QuantisingStore(ElementCopy):
    """A store whose floats become integers by the `quant` of its destination."""

    def __init__(self, task: Task, grid: Grid, memory: Memory) -> None:
        super().__init__(task, grid, memory)
        self._converters: dict[int, Callable[[Array], Array]] = {}

    def prepare(self, row: int, held: Mapping[int, Array]) -> Callable[[], bool]:
        """The same as `run`: what is stored are other elements."""
        return partial(self.run, row)

    def _convert(self, row: int, values: Array) -> Array:
        """The bits of `quantize`, made once for a type of the destination."""
        index = self._signatures.index
        number = 0 if index is None else index[row]
        if number not in self._converters:
            _, target = copy_operands(self.task)
            if target.region is None:
                raise ValueError("a store without a destination")
            parts = varying_parts(self.task)
            type_ = tensor_type(target.region, lookup_at(parts, self.grid, row))
            self._converters[number] = quantizer(type_)
        return self._converters[number](widen_to_f32(values))


class StreamedAction(Action):
    """A task whose output passes on to the next: what lay in its place is gone all the same."""

    def __init__(self, action: Action, footprint: Footprint, storage: Storage) -> None:
        self.task, self.grid = action.task, action.grid
        self._action = action
        self._footprint, self._storage = footprint, storage

    def run(self, row: int) -> bool:
        """Do it; whoever reads the output from memory finds that nothing wrote it."""
        if not self._action.run(row):
            return False
        low = self._footprint.low_at(row)
        for start, end in self._footprint.pattern(row).runs.tolist():
            self._storage.forget(low + start, low + end)
        return True

    def writes(self, row: int) -> list[ByteRange]:
        """Its stream, and the bytes that it leaves without a value."""
        low = self._footprint.low_at(row)
        emptied = (self._storage, low, low + self._footprint.pattern(row).span)
        return [*self._action.writes(row), emptied]

    def reads(self, row: int) -> list[ByteRange]:
        """The bytes that an instance may look at."""
        return self._action.reads(row)


class BoundsCheckedAction(Action):
    """An action of a program with errors that were allowed through: it must stay in its buffers."""

    def __init__(self, action: Action) -> None:
        self.task, self.grid = action.task, action.grid
        self._action = action

    def run(self, row: int) -> bool:
        """Do it; ValueError, before anything is touched, for bytes outside a buffer."""
        for storage, low, high in (*self.reads(row), *self.writes(row)):
            if not 0 <= low <= high <= storage.data.size:
                name, size = storage.buffer.name, storage.data.size
                raise ValueError(f"bytes {low}..{high - 1} lie outside `{name}` of {size} bytes")
        return self._action.run(row)

    def writes(self, row: int) -> list[ByteRange]:
        """The bytes that an instance may change."""
        return self._action.writes(row)

    def reads(self, row: int) -> list[ByteRange]:
        """The bytes that an instance may look at."""
        return self._action.reads(row)

    def source_of(self, row: int, byte: int) -> tuple[Storage, int, int] | None:
        """Of a copy: where a byte of the destination came from."""
        return self._action.source_of(row, byte)


def _copy(source: Array, target: Array) -> Callable[[], bool]:
    def copy() -> bool:
        target[...] = source
        return True

    return copy


def copy_operands(task: Task) -> tuple[Operand, Operand]:
    """Source and destination of a transfer or store."""
    source = next(o for o in task.operands if o.access == "read")
    target = next(o for o in task.operands if o.access == "write")
    return source, target


def copy_action(task: Task, grid: Grid, memory: Memory) -> Action:
    """What a transfer or store does."""
    if quantises(task):
        return QuantisingStore(task, grid, memory)
    if copies_elements(task):
        return ElementCopy(task, grid, memory)
    return ByteCopy(task, grid, memory)

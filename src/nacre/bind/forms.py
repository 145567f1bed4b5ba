"""Forms: all of a task but where its operands lie and what it waits for.

A form is worked out once for all tasks of a kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES
from nacre.bind.task_kinds import COPIES
from nacre.bind.units import UnitBinder
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import (
    Lookup,
    call_of,
    lookup_at,
    resolve_symbols,
    symbolic_terms,
    tensor_type,
    varying_parts,
)
from nacre.nem.plan.core_operations import primitive_of, resolve_call
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.machine import must_be_deterministic, operation_name
from nacre.tcb.image import Attribute, Operand, Quant, UnitUse

_RAW = "u8"  # the element type of bytes that a copy moves as they are
_ANYWHERE = ""  # the memory of an operand without place
_TRUTH = GRAPH_TYPES["bool"]  # lies in memory as a byte


class TaskForm(Struct, frozen=True, eq=False):
    """What tasks of a kind have in common; operands have no place yet."""

    op: str
    attributes: tuple[tuple[str, Attribute], ...]
    is_ordered: bool
    operands: tuple[Operand, ...]  # in the order of the task's
    units: tuple[UnitUse, ...]  # of any instance
    shared: int
    format: str


class FormBinder:
    """Makes forms, each once."""

    def __init__(self, units: UnitBinder) -> None:
        self._units = units
        self._kinds = units.kinds.numbers
        self._forms: dict[int, TaskForm] = {}  # by kind, those that do not vary
        self._quants: dict[Hashable, Quant] = {}

    def find(self, position: int) -> TaskForm | None:
        """The form of the task at a position, where it is known and alike in every iteration."""
        return self._forms.get(self._kinds[position])

    def make(self, task: Task, row: Grid) -> TaskForm:
        """The form of a task in an iteration."""
        terms = tuple(symbolic_terms((*varying_parts(task), *_extents(task))))
        if terms:
            return self._make(task, lookup_at(terms, row, 0), row)
        made = self._forms[self._units.kinds.of(task)] = self._make(task, {}, row)
        return made

    def _make(self, task: Task, lookup: Lookup, row: Grid) -> TaskForm:
        inputs = tuple(self._operands(task, "read", lookup))
        outputs = tuple(self._operands(task, "write", lookup))
        op = task.op
        attributes: tuple[tuple[str, Attribute], ...] = ()
        if task.op not in COPIES:
            name = operation_name(task)
            primitive = primitive_of(name)
            call = resolve_call(name, call_of(task, lookup, ordered=False))
            op = primitive.name if primitive is not None else name
            attributes = tuple(sorted(call.attributes.items()))
            inputs = _with_truths(inputs, [t is not None and t.elem is _TRUTH for t in call.inputs])
            outputs = _with_truths(outputs, [t.elem is _TRUTH for t in call.outputs])
        return TaskForm(
            op,
            attributes,
            must_be_deterministic(task),
            _in_order(task, inputs, outputs),
            self._units.uses(task, row),
            self._units.shared(task, row),
            outputs[0].elem if quantises(task) else "raw",
        )

    def _operands(self, task: Task, access: str, lookup: Lookup) -> Iterator[Operand]:
        is_raw = task.op in COPIES and not copies_elements(task)
        for operand in task.operands:
            if operand.access == access:
                region = region_of(operand)
                if is_raw and region.compression is None:
                    yield _bytes_of_copy(task, lookup)
                else:
                    yield self._typed(region, lookup)

    def _typed(self, region: Region, lookup: Lookup) -> Operand:
        type_ = tensor_type(region, lookup)
        compression = region.compression
        return Operand(
            _ANYWHERE,
            0,
            type_.elem.name,
            type_.shape,
            None if region.strides is None else resolve_symbols(region.strides, lookup),
            self._quant(region, lookup),
            None if compression is None else compression.form,
            None if compression is None else resolve_symbols(region.extent, lookup),
        )

    def _quant(self, region: Region, lookup: Lookup) -> Quant | None:
        """The quantisation of a region; equal ones are one value."""
        if region.quant is None:
            return None
        made = tensor_type(region, lookup).quant
        if made is None:
            raise ValueError("a quantisation of a program with errors")
        scales, zeros = tuple(made.scale.tolist()), tuple(made.zero_point.tolist())
        key = (scales, zeros, made.axis, made.group_size)
        return self._quants.setdefault(key, Quant(scales, zeros, made.axis, made.group_size))


def _bytes_of_copy(task: Task, lookup: Lookup) -> Operand:
    """The bytes of a copy: as many as its source has, or as its elements take decompressed."""
    source = next(region_of(o) for o in task.operands if o.access == "read")
    if source.compression is not None:
        shape = resolve_symbols(source.shape, lookup)
        return Operand(_ANYWHERE, 0, source.elem or _RAW, shape)
    return Operand(_ANYWHERE, 0, _RAW, (resolve_symbols(source.extent, lookup),))


def _with_truths(operands: tuple[Operand, ...], are_truths: list[bool]) -> tuple[Operand, ...]:
    """Operands of which some are truth values, which lie in memory as bytes."""
    return tuple(
        Operand(o.memory, o.address, _TRUTH.name, o.dims, o.strides, o.quant) if is_truth else o
        for o, is_truth in zip(operands, are_truths, strict=True)
    )


def _in_order(
    task: Task, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...]
) -> tuple[Operand, ...]:
    """What a task reads and writes, as it names them."""
    read, written = iter(inputs), iter(outputs)
    return tuple(next(read if o.access == "read" else written) for o in task.operands)


def _extents(task: Task) -> tuple[object, ...]:
    """How many bytes a copy moves; of other tasks the shapes say it."""
    if task.op not in COPIES:
        return ()
    return tuple(o.region.extent for o in task.operands if o.region is not None)


def region_of(operand: TaskOperand) -> Region:
    """The region of an operand of a program without errors."""
    if operand.region is None:
        raise ValueError("a region of a program with errors")
    return operand.region

"""Forms: all of a task but where its operands lie, how these are quantised and what it waits for.

A form is worked out once for all tasks of a kind, and remembered for the next program or the next
way of binding this one: what a task costs takes longer to work out than to write its blocks.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from functools import lru_cache
from struct import pack, unpack
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nacre.base.elements import GRAPH_TYPES
from nacre.bind.task_kinds import COPIES
from nacre.bind.units import Target, UnitBinder
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Quant as ProgramQuant
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import (
    Lookup,
    TaskCall,
    attributes_of,
    lookup_at,
    plain_type,
    resolve_symbols,
)
from nacre.nem.plan.core_operations import primitive_of, resolve_call
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.nem.plan.grid import TOP, Grid
from nacre.nem.plan.placement import table_level
from nacre.nem.run.machine.actions import copy_operands
from nacre.nem.run.machine.machine import operation_name
from nacre.nem.run.timing.costs import primitive_work
from nacre.tcb.image import Attribute, Operand, Quant, UnitUse

_RAW = "u8"  # the element type of bytes that a copy moves as they are
_ANYWHERE = ""  # the memory of an operand without place
_NOTHING: Lookup = MappingProxyType({})
_FEW_SCALES = 4  # of quantisations that are compared
_MOST_TARGETS, _MOST_REMEMBERED = 8, 4096  # forms of a target: some four megabytes
_TRUTH = GRAPH_TYPES["bool"]  # lies in memory as a byte


class TaskForm(Struct, frozen=True, eq=False):
    """What tasks of a kind have in common; operands have no place yet."""

    op: str
    attributes: tuple[tuple[str, Attribute], ...]
    is_ordered: bool
    operands: tuple[Operand, ...] | None  # in the task's order; None: of the types of their regions
    units: tuple[UnitUse, ...]  # of any instance
    shared: int
    format: str
    takes_quants: bool  # whether operands are quantised as their regions say
    reads: int  # so many operands are read, then come those that are written; -1: the last is read
    is_compressed: bool = False  # whether any of its operands is


class QuantBinder:
    """Makes quantisations of those of the program; equal short ones are one value."""

    def __init__(self) -> None:
        self.known: dict[int, Quant] = {}  # by id of the program's, whatever the rank of operands
        self._of_rank: dict[tuple[int, int], Quant] = {}  # whose axis counts from the end
        self._distinct: dict[Quant, Quant] = {}

    def make(self, quant: ProgramQuant, rank: int) -> Quant:
        """A quantisation that is the same in every iteration, and is not known."""
        if quant.axis is None or 0 <= quant.axis < rank:
            made = self.known[id(quant)] = self._make(quant, rank, quant.scales, quant.zero_points)
            return made
        found = self._of_rank.get((id(quant), rank))
        if found is None:
            found = self._make(quant, rank, quant.scales, quant.zero_points)
            self._of_rank[id(quant), rank] = found
        return found

    def make_at(self, quant: ProgramQuant, rank: int, lookup: Lookup) -> Quant:
        """One whose scales or zero points are those of an iteration."""
        parts = resolve_symbols((quant.scales, quant.zero_points), lookup)
        return self._make(quant, rank, *parts)

    def _make(self, quant: ProgramQuant, rank: int, scales: Any, zeros: Any) -> Quant:  # noqa: ANN401 - as they came
        zeros = tuple(map(int, zeros)) if any(zeros) else (0,) * len(zeros)
        axis = None if quant.axis is None else quant.axis % rank
        made = Quant(_in_f32(scales), zeros, axis, quant.group_size or 1)
        return made if len(scales) > _FEW_SCALES else self._distinct.setdefault(made, made)


def _in_f32(scales: tuple[float, ...]) -> tuple[float, ...]:
    """Scales in the precision of the kernels."""
    layout = f"{len(scales)}f"
    try:
        return unpack(layout, pack(layout, *scales))  # in half the time of an array
    except OverflowError:  # an array has infinity then
        return tuple(array("f", scales))


@lru_cache(maxsize=_MOST_TARGETS)
def remembered_forms(target: Target) -> dict[Hashable, TaskForm]:
    """The forms of kinds of tasks that were bound to a target, by the keys of the kinds."""
    return {}


class FormBinder:
    """Makes forms, each once."""

    def __init__(self, units: UnitBinder) -> None:
        self._units = units
        kinds = units.kinds
        self._kinds, self._varying, self._keys = kinds.numbers, kinds.varying, kinds.keys
        self.known: dict[int, TaskForm] = {}  # by kind, those that are alike in every iteration
        self.quants = QuantBinder()
        self._remembered = remembered_forms(units.target)

    def make(self, task: Task, row_of: Callable[[], Grid]) -> TaskForm:
        """The form of a task in an iteration."""
        kind = self._kinds[task.position]
        if not self._varying[kind]:
            made = self._remembered.get(self._keys[kind])
            if made is None:
                made = self._remember(task, kind)
            self.known[kind] = made
            return made
        row = row_of()
        lookup = lookup_at(self._varying[kind], row, 0)
        made = self._make(task, lookup, row)
        return made if task.op in COPIES else self._quantised(task, made, lookup)

    def _remember(self, task: Task, kind: int) -> TaskForm:
        """The form of tasks of a kind that is alike in every iteration, and not known."""
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        size = self._units.kinds.copied[kind]
        if size is None:
            made = self._make(task, _NOTHING, TOP)
        else:
            made = self._make_bytes(task, size)
        self._remembered[self._keys[kind]] = made
        return made

    def _make_bytes(self, task: Task, size: int) -> TaskForm:
        """The form of a copy of so many bytes as they are."""
        uses, shared = self._units.copy_uses(task, size)
        moved = Operand(_ANYWHERE, 0, _RAW, (size,))
        is_ordered, reads = self._units.kinds.is_deterministic(task), _reads(task.operands, 1)
        return TaskForm(task.op, (), is_ordered, (moved, moved), uses, shared, "raw", False, reads)

    def _make(self, task: Task, lookup: Lookup, row: Grid) -> TaskForm:
        """The form of a task but for the quantisation of its operands."""
        if task.op in COPIES:
            return self._make_copy(task, lookup, row)
        operands: Any = task.operands  # those of a program without errors have regions
        op, regions = operation_name(task), [operand.region for operand in operands]
        call = _plain_call(task, regions, lookup)
        primitive, resolved = primitive_of(op), resolve_call(op, call)
        is_compressed = any(region.compression for region in regions)
        typed = None
        if lookup or is_compressed or resolved is not call:
            typed = tuple([_typed(region, lookup) for region in regions])
            typed = _with_truths(typed, resolved)
        units = self._units
        return TaskForm(
            primitive.name if primitive is not None else op,
            tuple(sorted(resolved.attributes.items())),
            units.kinds.is_deterministic(task),
            typed,
            units.call_uses(task, call, primitive_work(primitive, resolved)),
            0 if table_level(task) is None else units.shared(task, row),
            "raw",
            True,
            len(call.inputs),
            is_compressed,
        )

    def _make_copy(self, task: Task, lookup: Lookup, row: Grid) -> TaskForm:
        """The form of a copy: of elements with what they are quantised by, or of bytes."""
        units = self._units
        is_ordered = units.kinds.is_deterministic(task)
        source, target = copy_operands(task)
        if copies_elements(task) or region_of(source).compression or region_of(target).compression:
            operands, form = self._copied(task, lookup), "raw"
            if quantises(task):
                form = _written_elem(task, operands)
            uses, shared = units.uses(task, row), units.shared(task, row)
        else:
            moved = Operand(
                _ANYWHERE, 0, _RAW, (resolve_symbols(region_of(source).extent, lookup),)
            )
            operands, form = (moved, moved), "raw"
            uses, shared = units.copy_uses(task, moved.dims[0])
        is_compressed = any(operand.compression is not None for operand in operands)
        reads = _reads(task.operands, 1)
        given = (task.op, (), is_ordered, operands, uses, shared, form, False, reads)
        return TaskForm(*given, is_compressed)

    def _quantised(self, task: Task, plain: TaskForm, lookup: Lookup) -> TaskForm:
        """The form of a compute task in an iteration with the quantisation of its operands."""
        operands = list(plain.operands or ())
        for at, operand in enumerate(task.operands):
            quant = region_of(operand).quant
            if quant is not None:
                operands[at] = self._with_quant(operands[at], quant, lookup)
        return replace(plain, operands=tuple(operands), takes_quants=False)

    def _copied(self, task: Task, lookup: Lookup) -> tuple[Operand, ...]:
        """What a copy has on its two sides: elements, or the bytes as they are."""
        has_elements, made = copies_elements(task), []
        for operand in task.operands:
            region = region_of(operand)
            if region.compression is None and not has_elements:
                made.append(_bytes_of_copy(task, lookup))
                continue
            typed = _typed(region, lookup)
            if region.quant is not None:
                typed = self._with_quant(typed, region.quant, lookup)
            made.append(typed)
        return tuple(made)

    def _with_quant(self, of: Operand, quant: ProgramQuant, lookup: Lookup) -> Operand:
        """An operand with its quantisation."""
        rank = len(of.dims)
        return replace(of, quant=self.quants.make_at(quant, rank, lookup))


def _plain_call(task: Task, regions: list[Region], lookup: Lookup) -> TaskCall:
    """A compute task as a call without quantisation; what it reads comes first."""
    typed: Any = regions  # of a program without errors
    if lookup:
        types = [plain_type(r.elem, resolve_symbols(r.shape, lookup)) for r in typed]
    else:
        types = [plain_type(region.elem, region.shape) for region in typed]
    reads = len([1 for operand in task.operands if operand.access == "read"])
    return TaskCall(tuple(types[:reads]), tuple(types[reads:]), attributes_of(task, lookup))


def _with_truths(operands: tuple[Operand, ...], resolved: TaskCall) -> tuple[Operand, ...]:
    """Operands with those as truth values that an operation means as such: they lie as bytes."""
    meant = (*resolved.inputs, *resolved.outputs)
    return tuple([
        replace(made, elem=_TRUTH.name) if of is not None and of.elem is _TRUTH else made
        for made, of in zip(operands, meant, strict=True)
    ])  # fmt: skip


def _reads(operands: tuple[TaskOperand, ...], reads: int) -> int:
    """So many operands are read, which come before those written; -1: the last alone is read."""
    if not reads or operands[0].access == operands[reads - 1].access == "read":
        return reads
    if reads == 1 and operands[-1].access == "read":
        return -1
    raise ValueError("a task that reads and writes in turn")


def _typed(region: Region, lookup: Lookup) -> Operand:
    """An operand with its type, without its quantisation."""
    elem, packed = region.elem, region.compression
    shape: Any = region.shape
    strides: Any = region.strides
    if elem is None or shape is None:
        raise ValueError("a region without type")
    if lookup:
        shape, strides = resolve_symbols((shape, strides), lookup)
    if packed is None:
        return Operand(_ANYWHERE, 0, elem, shape, strides)
    size = resolve_symbols(region.extent, lookup)
    return Operand(_ANYWHERE, 0, elem, shape, strides, None, packed.form, size)


def _bytes_of_copy(task: Task, lookup: Lookup) -> Operand:
    """The bytes of a copy: as many as its source has, or as its elements take decompressed."""
    source = next(region_of(o) for o in task.operands if o.access == "read")
    if source.compression is not None:
        shape = resolve_symbols(source.shape, lookup)
        return Operand(_ANYWHERE, 0, source.elem or _RAW, shape)
    return Operand(_ANYWHERE, 0, _RAW, (resolve_symbols(source.extent, lookup),))


def _written_elem(task: Task, operands: tuple[Operand, ...]) -> str:
    pairs = zip(task.operands, operands, strict=True)
    return next(made.elem for operand, made in pairs if operand.access == "write")


def region_of(operand: TaskOperand) -> Region:
    """The region of an operand of a program without errors."""
    if operand.region is None:
        raise ValueError("a region of a program with errors")
    return operand.region

"""Where tasks run: on which engine, and on which units of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nacre.base.term_columns import TermProblem, Values
from nacre.base.terms import Term
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Buffer, Statement, Task, UnitIndex
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.decompression import WDM, decompresses
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sequence import sequence
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.units import DEVICE_UNITS, Level, transfer_units

_WITH_TABLE = frozenset(
    name for name, o in OPCODES.items() if any(operand.role == "table" for operand in o.operands)
)

UnitCombination = tuple[str, ...]  # unit types that a task occupies together


def has_unit(device: Device, unit: str) -> bool:
    """Whether a device has a unit type; a per-engine count below 1 has been reported."""
    if device.topology is None:
        return False
    if unit in DEVICE_UNITS:
        return device.count(unit) > 0
    return unit in device.topology.per_engine


def capable_units(task: Task) -> tuple[UnitCombination, ...]:
    """The units on which a task can run on some device, the preferred ones first.

    A combination names those that are busy together. Without operands or opcode there is none.
    """
    if task.op == "transfer":
        levels = [o.region.buffer.level for o in task.operands if o.region and o.region.buffer]
        if len(levels) != 2 or levels[0] is None or levels[1] is None:
            return ()
        units = transfer_units(levels[0], levels[1])
        return ((*units, WDM) if decompresses(task) else units,)
    if task.opcode is None:
        return ()
    level = table_level(task)
    if level is not None:
        return (transfer_units(level, "L1"),)
    return tuple((unit,) for unit in task.opcode.eligible_units)


def table_level(task: Task) -> Level | None:
    """Where the table of a gather lies if not in L1: its rows are fetched as a transfer would."""
    if task.op not in _WITH_TABLE:  # which is most of them
        return None
    for operand in task.operands:
        is_table = operand.spec is not None and operand.spec.role == "table"
        buffer = operand.region.buffer if operand.region is not None else None
        if is_table and buffer is not None and not is_in_l1(buffer):
            return buffer.level
    return None


def eligible_units(task: Task, device: Device) -> tuple[UnitCombination, ...]:
    """The units on which a task can run on a device, the preferred ones first."""
    return present_units(capable_units(task), device)


def present_units(ways: tuple[UnitCombination, ...], device: Device) -> tuple[UnitCombination, ...]:
    """Those combinations of which a device has all units."""
    return tuple(way for way in ways if all(has_unit(device, unit) for unit in way))


def requested_unit(task: Task) -> UnitIndex | None:
    """What `@resource` asks for, where its argument is sound."""
    decorator = task.decorator("resource")
    if decorator is None or not decorator.arguments or len(decorator.arguments) != 1:
        return None
    argument = decorator.arguments[0]
    return argument if isinstance(argument, UnitIndex) else None


Match = Literal["free", "exact", "remapped", "translated"]


@dataclass(frozen=True, eq=False)
class UnitBinding:
    """The units that a task runs on, and which instance of one of them it is bound to."""

    units: UnitCombination
    match: Match
    unit: str | None = None  # the bound one; None: any instance will do
    index: Values | None = None  # of the bound unit, in every row
    requested: Values | None = None  # the index as the program gives it


def bind_units(task: Task, device: Device, grid: Grid) -> UnitBinding | None:
    """Where `@resource` puts a task by the Target Resource Validity Rule; None: nowhere.

    An index beyond the device's count wraps around. A unit that the device lacks is replaced by
    the first combination that can run the task; then any instance will do. So is one that cannot
    run it, where that error was allowed.
    """
    ways = eligible_units(task, device)
    if not ways:
        return None
    asked = requested_unit(task)
    if asked is None:
        return UnitBinding(ways[0], "free")
    way = next((way for way in ways if asked.unit in way), None)
    term = as_term(asked.index)
    if way is None:
        return UnitBinding(ways[0], "translated")
    if term is None:
        return UnitBinding(way, "free")
    requested = grid.evaluate(term)
    count = max(1, device.count(asked.unit))
    is_exact = bool(np.all(np.asarray(requested) < count))
    match: Match = "exact" if is_exact else "remapped"
    return UnitBinding(way, match, asked.unit, requested % count, requested)


def l1_engines(task: Task) -> tuple[int, ...]:
    """The engines whose L1 a task touches, in the order of its operands; more than one is wrong."""
    buffers = [o.region.buffer for o in task.operands if o.region and o.region.buffer]
    return tuple(dict.fromkeys(b.engine for b in buffers if is_in_l1(b) and b.engine is not None))


def is_in_l1(buffer: Buffer) -> bool:
    """Whether a buffer lies in an engine's own memory."""
    return buffer.level == "L1"


def requested_engine(task: Task) -> Term | None:
    """The argument of `@seq_engine`, where it is an integer: a constant, or one by iteration."""
    decorator = task.decorator("seq_engine")
    if decorator is None or not decorator.arguments:
        return None
    return as_term(decorator.arguments[0])


def fixed_engine(task: Task) -> Term | None:
    """The engine that a task must run on; None: any will do."""
    for operand in task.operands:
        buffer = operand.region.buffer if operand.region is not None else None
        if buffer is not None and is_in_l1(buffer) and buffer.engine is not None:
            return buffer.engine
    return requested_engine(task)


def engine_column(plan: Plan, device: Device) -> dict[int, Values]:
    """The engine of every task, by the task's position: a number, or a column over its rows.

    Tasks that may run anywhere take the engines in turn, in program order.
    """
    engines: dict[int, Values] = {
        task.position: _fixed_engines(plan, task) for task in plan.program.tasks
    }
    if device.num_engines > 1:
        for position, number in sequence(plan, _may_run_anywhere).items():
            turn = number % device.num_engines
            engines[position] = int(turn[0]) if turn.size == 1 else turn
    return engines


def _fixed_engines(plan: Plan, task: Task) -> Values:
    """The engine that a task must run on in every row; 0 where there is none, or no value."""
    term, grid = fixed_engine(task), plan.grid_of(task.loops)
    if term is None or grid is None:
        return 0
    try:
        return grid.evaluate(term)
    except TermProblem:  # reported where the decorator is checked
        return 0


def _may_run_anywhere(statement: Statement) -> bool:
    return isinstance(statement, Task) and fixed_engine(statement) is None

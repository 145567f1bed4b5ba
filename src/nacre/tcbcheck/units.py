"""Whether blocks run where the Target Resource Validity Rule lets their tasks run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.decompression import WDM
from nacre.nem.plan.placement import (
    UnitBinding,
    bind_units,
    eligible_units,
    fixed_engine,
    has_unit,
)
from nacre.tcb.figures import Figures
from nacre.tcb.image import DEVICE, UnitUse
from nacre.tcbcheck.copies import COPIES, chosen_compression
from nacre.tcbcheck.correspondence import TaskBlock

_CSTL, _POST_PROCESSING, _STORE_BACK = "CSTL", "CSTLA", "CSTLB"


def unit_problem(block: TaskBlock, device: Device, figures: Figures) -> str | None:
    """Why a block may not run on its units, or where it does; None: it may."""
    problems = (
        _type_problem(block, device),
        _instance_problem(block, device),
        next(_part_problems(block, figures), None),
        next(_engine_problems(block), None),
    )
    return next((problem for problem in problems if problem is not None), None)


def _type_problem(block: TaskBlock, device: Device) -> str | None:
    """A task runs on any units that can run it, of those with the one that it asks for."""
    binding = bind_units(block.task, device, block.grid)
    ways = eligible_units(block.task, device)
    if binding is not None and binding.unit is not None:
        ways = tuple(way for way in ways if binding.unit in way)
    if _decompresses_by_choice(block):
        ways = tuple((*way, WDM) for way in ways if has_unit(device, WDM))
    found = sorted(use.unit for use in block.found.block.units)
    if any(found == sorted(way) for way in ways):
        return None
    expected = " or ".join(" and ".join(way) for way in ways) or "none, for the device has none"
    return f"runs on {' and '.join(found) or 'no unit'}, expected {expected}"


def _decompresses_by_choice(block: TaskBlock) -> bool:
    if block.task.op not in COPIES:
        return False
    source = next(operand for operand in block.task.operands if operand.access == "read")
    taken = block.found.block.inputs[0]
    return block.conversion is None and taken is not None and chosen_compression(taken, source)


def _instance_problem(block: TaskBlock, device: Device) -> str | None:
    """`@resource` of the task, or else that of the conversion that it does, names an instance."""
    binding = bind_units(block.task, device, block.grid)
    if block.conversion is not None and (binding is None or binding.unit is None):
        binding = bind_units(block.conversion, device, block.grid)
    if binding is None or binding.unit is None or binding.index is None:
        return None
    use = next((use for use in block.found.block.units if use.unit == binding.unit), None)
    if use is None:
        return f"does not run on {binding.unit}, which `@resource` asks for"
    return _bound_problem(block, use, binding)


def _bound_problem(block: TaskBlock, use: UnitUse, binding: UnitBinding) -> str | None:
    if use.instance is None:
        return f"runs on any {use.unit}, where `@resource` asks for one"
    expected = np.broadcast_to(np.asarray(binding.index), (block.grid.rows,))[block.rows]
    found = block.found.grid.column(use.instance)
    wrong = np.flatnonzero(found != expected)
    if not wrong.size:
        return None
    row = int(wrong[0])
    where = f" in iteration {list(block.found.grid.iteration(row))}" if block.grid.ordinals else ""
    return f"runs on {use.unit}[{found[row]}]{where}, expected {use.unit}[{expected[row]}]"


def _part_problems(block: TaskBlock, figures: Figures) -> Iterator[str]:
    """A CSTL in parts stores by one and computes on the other; without a part it does on both."""
    has_parts = figures.count("cstl.parts") > 1
    right = _STORE_BACK if block.task.op == "store" else _POST_PROCESSING
    for use in block.found.block.units:
        if use.part is None:
            continue
        if use.unit != _CSTL or not has_parts:
            yield f"runs on a part of {use.unit}, which has none"
        elif use.part != right:
            yield f"runs on {use.part}, expected {right}"


def _engine_problems(block: TaskBlock) -> Iterator[str]:
    """A task runs on the engine whose memory it touches, or which `@seq_engine` names."""
    placed = block.found
    for task in block.tasks:
        expected = _engines(block, task)
        if expected is None:
            continue
        if placed.stream == DEVICE and placed.block.engine is None:
            yield "runs on any engine, expected a particular one"
            continue
        engine = placed.block.engine if placed.stream == DEVICE else placed.stream
        found = placed.grid.column(0 if engine is None else engine)
        wrong = np.flatnonzero(found != expected)
        if wrong.size:
            row = int(wrong[0])
            yield f"runs on engine {found[row]}, expected {expected[row]}"


def _engines(block: TaskBlock, task: Task) -> Column | None:
    term = fixed_engine(task)
    if term is None:
        return None
    column = np.asarray(block.grid.evaluate(term))
    return np.broadcast_to(column, (block.grid.rows,))[block.rows]

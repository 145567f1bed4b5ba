"""PLC: engines, units and memory levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.fixes import insertion_fix
from nacre.base.rules import declare, rule
from nacre.base.term_columns import Column, TermProblem
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import device_text, in_iteration, no_value_finding
from nacre.nem.model.program import Buffer, Operand, Task
from nacre.nem.plan.columns import first_row
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.placement import (
    UnitCombination,
    capable_units,
    has_unit,
    l1_engines,
    requested_engine,
)
from nacre.nem.spec.units import DEVICE_UNITS
from nacre.nem.syntax import ast

Mask = npt.NDArray[np.bool_]

_PLACEMENT = "Task Placement and Engine Assignment"
_UNITS = "Execution Units / Resource Classes and Task Mapping"


@rule("PLC01", "two-l1-memories", _PLACEMENT)
def two_l1_memories(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """One task touches the L1 of two engines.

    An L1 is private to its engine; data goes from one to the other through L2.

    Bad (-) and good (+):

          include "npm_mid.nem"
          device npm_mid
          buffer A : L1[0] (size=64)
          buffer B : L1[1] (size=64)
          buffer C : L2 (size=64)
          s = transfer.sync(dst=region(A, 0, 64), src=region(C, 0, 64))
        - t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
        + t = transfer.sync(dst=region(B, 0, 64), src=region(C, 0, 64))
          u = store.sync(dst=region(C, 0, 64), src=region(B, 0, 64))
        + v = store.sync(dst=region(C, 0, 64), src=region(A, 0, 64))
    """
    for task in facts.program.tasks:
        if len(l1_engines(task)) < 2:
            continue
        placed = list(_l1_operands(task))
        first, first_buffer = placed[0]
        other, buffer = next(p for p in placed if p[1].engine != first_buffer.engine)
        yield two_l1_memories.at(
            facts.span(other.node.value),
            f"`{task.op}` touches `{buffer.name}` in {buffer.memory} and `{first_buffer.name}` in "
            f"{first_buffer.memory}, but runs on one engine",
            related=(
                Related(facts.span(first.node.value), f"this operand is in {first_buffer.memory}"),
            ),
            help="go through L2",
        )


def _l1_operands(task: Task) -> Iterator[tuple[Operand, Buffer]]:
    for operand in task.operands:
        buffer = operand.region.buffer if operand.region is not None else None
        if buffer is not None and buffer.level == "L1" and buffer.engine is not None:
            yield operand, buffer


declare(
    "PLC02",
    "l1-operand-chooses-the-engine",
    _PLACEMENT,
    """
    A task with an operand in `L1[k]` runs on engine k. No diagnostic carries this code.
    """,
    behaviour=True,
)


@rule("PLC03", "engine-contradicts-operand", _PLACEMENT)
def engine_contradicts_operand(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@seq_engine` asks for another engine than the one whose L1 the task touches.

    Bad (-) and good (+):

          include "npm_mid.nem"
          device npm_mid
          buffer A : L2 (size=64)
          buffer B : L1[1] (size=64)
        - t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64)) @seq_engine(0)
        + t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64)) @seq_engine(1)
          s = store.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
    """
    for request in _engine_requests(facts):
        engines = l1_engines(request.task)
        if len(engines) != 1:
            continue
        row = first_row((request.asked != engines[0]) & request.is_there(facts.device.num_engines))
        if row is None:
            continue
        operand, buffer = next(_l1_operands(request.task))
        yield engine_contradicts_operand.at(
            facts.span(request.node),
            f"`@seq_engine` asks for engine {request.text(row)}, but `{buffer.name}` is in "
            f"{buffer.memory}",
            related=(Related(facts.span(operand.node.value), f"`{buffer.name}` is used here"),),
        )


class _EngineRequest(Struct, frozen=True):
    """A task with `@seq_engine`, and the engine that it asks for in every iteration."""

    task: Task
    node: ast.Decorator
    grid: Grid
    asked: Column

    def is_there(self, engines: int) -> Mask:
        """In which iterations the device has the engine."""
        return (self.asked >= 0) & (self.asked < engines)

    def text(self, row: int) -> str:
        """The engine of a row and, where it varies, the iteration."""
        when = in_iteration(self.grid, row) if self.asked.size > 1 else ""
        return f"{int(self.asked[min(row, self.asked.size - 1)])}{when}"


def _engine_requests(facts: ProgramFacts) -> Iterator[_EngineRequest]:
    """Every `@seq_engine` whose argument has a value in each iteration."""
    for task in facts.program.tasks:
        if not task.decorators:
            continue
        term, decorator = requested_engine(task), task.decorator("seq_engine")
        grid = facts.plan.grid_of(task.loops)
        if term is None or decorator is None or grid is None:
            continue
        if isinstance(term, int) and term < 0:  # DEC03
            continue
        try:
            asked = np.atleast_1d(np.asarray(grid.evaluate(term), np.int64))
        except TermProblem:  # which has been reported
            continue
        yield _EngineRequest(task, decorator.node, grid, asked)


def engine_indices_have_values(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Arguments of `@seq_engine` that divide by zero or leave 64 bits in some iteration."""
    for task in facts.program.tasks:
        if not task.decorators:
            continue
        term, decorator = requested_engine(task), task.decorator("seq_engine")
        grid = facts.plan.grid_of(task.loops)
        if term is None or decorator is None or grid is None:
            continue
        try:
            grid.evaluate(term)
        except TermProblem as problem:
            yield no_value_finding(facts, decorator.node, grid, problem)


@rule("PLC04", "no-such-engine-for-task", _PLACEMENT)
def no_such_engine_for_task(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@seq_engine` asks for an engine that the device does not have, in some iteration or in all.

    Bad (-) and good (+):

          include "npm_mid.nem"
          device npm_mid
          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @seq_engine(2)
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @seq_engine(1)
    """
    engines = facts.device.num_engines
    topology = facts.device.topology
    if topology is None or (topology.num_engines or 0) < 1:  # which has been reported
        return
    for request in _engine_requests(facts):
        row = first_row(~request.is_there(engines))
        if row is None:
            continue
        has = f"engines 0 to {engines - 1}" if engines > 1 else "engine 0 only"
        asked = f"`@seq_engine` asks for engine {request.text(row)}"
        message = f"{asked}, but {device_text(facts)} has {has}"
        yield no_such_engine_for_task.at(facts.span(request.node), message)


declare(
    "PLC05",
    "l1-beyond-the-device",
    _PLACEMENT,
    """
    A region in the L1 of an engine that the device does not have gets BUF05, where its buffer is
    declared. No diagnostic carries this code.
    """,
    behaviour=True,
)
declare(
    "PLC06",
    "tasks-without-l1-run-anywhere",
    _PLACEMENT,
    """
    A task that touches only L2 and DDR may run on any engine: such tasks take the engines in
    turn, in program order. No diagnostic carries this code.
    """,
    behaviour=True,
)


def _missing_units(facts: ProgramFacts) -> Iterator[tuple[Task, str]]:
    """The tasks that the device cannot run, each with a unit that it would need."""
    if facts.device.is_abstract:
        return
    missing: dict[tuple[UnitCombination, ...], str | None] = {}
    for task in facts.program.tasks:
        ways = capable_units(task)
        if ways not in missing:
            missing[ways] = _missing_unit(facts, ways)
        unit = missing[ways]
        if unit is not None:
            yield task, unit


def _missing_unit(facts: ProgramFacts, ways: tuple[UnitCombination, ...]) -> str | None:
    """A unit that the device lacks and would need; None where it has all of one combination."""
    missing = [[unit for unit in way if not has_unit(facts.device, unit)] for way in ways]
    return missing[0][0] if missing and all(missing) else None


@rule("PLC07", "no-path-to-ddr", "Execution Units / Device-Level Execution Units")
def no_path_to_ddr(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A transfer touches DDR on a device that has no sDMA.

    Bad (-) and good (+):

        - include "nem_baseline_1.0.nem"
        - device island extends nem_baseline_1_0 {
        -     topology {
        -         num_engines = 1
        -         l2_size_bytes = 1024
        -         per_engine { NMU = 1 CSTL = 1 DMA = 1 VPU = 1 SEQ = 1 l1_size_bytes = 1024 }
        -     }
        - }
        - program p:
        + include "npm_lite.nem"
        + device npm_lite
          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
          t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64))
    """
    for task, unit in _missing_units(facts):
        if unit == "sDMA":  # a WDM that is missing is WDM03
            message = f"this `{task.op}` needs an `{unit}`, but {device_text(facts)} has none"
            yield no_path_to_ddr.at(facts.span(task.node.op), message)


@rule(
    "PLC08",
    "l1-without-engine",
    "Abstract Machine Model / Memory Levels",
    severity="warning",
    fix="writes `L1[0]`, which it means",
)
def l1_without_engine(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A buffer lies in `L1` without saying whose, on a device with several engines.

    It is engine 0's.

    Bad (-) and good (+):

          include "npm_mid.nem"
          device npm_mid
        - buffer A : L1 (size=64)
        + buffer A : L1[0] (size=64)
    """
    engines = facts.device.num_engines
    for buffer in facts.program.buffers:
        level = buffer.node.level
        if engines > 1 and buffer.level == "L1" and level is not None and level.index is None:
            message = (
                f"buffer `{buffer.name}` is in L1 of engine 0, but {device_text(facts)} has "
                f"{engines} engines"
            )
            span = facts.span(level)
            fix = insertion_fix(span.source, span.end, "[0]")
            yield l1_without_engine.at(span, message, help="write `L1[0]`", fix=fix)


@rule("PLC09", "no-unit-for-task", _UNITS)
def no_unit_for_task(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """No unit of the device can run the task.

    Bad (-) and good (+):

        - include "nem_baseline_1.0.nem"
        - device bare extends nem_baseline_1_0 {
        -     topology {
        -         num_engines = 1
        -         l2_size_bytes = 1024
        -         per_engine { NMU = 1 DMA = 1 SEQ = 1 l1_size_bytes = 1024 }
        -     }
        - }
        - program p:
        + include "npm_lite.nem"
        + device npm_lite
          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
          s = store.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
    """
    for task, unit in _missing_units(facts):
        if unit not in DEVICE_UNITS:
            able = " or ".join(f"`{name}`" for way in capable_units(task) for name in way)
            message = f"`{task.op}` runs on {able}, but {device_text(facts)} has none"
            yield no_unit_for_task.at(facts.span(task.node.op), message)

"""DEC07 to DEC10 and DEC15: what the device makes of `@resource`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import declare, rule
from nacre.base.term_columns import TermProblem
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import device_text, in_iteration, no_value_finding
from nacre.nem.model.program import Program, Task, UnitIndex
from nacre.nem.plan.columns import OncePerPlan, as_term, first_row, value_at
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.placement import (
    UnitCombination,
    bind_units,
    capable_units,
    eligible_units,
    has_unit,
    requested_unit,
)
from nacre.nem.plan.sound_bounds import sure_interval
from nacre.nem.spec.units import RESOURCE_TARGETS
from nacre.nem.syntax import ast

_VALIDITY = "Target Resource Validity Rule"


class Request(Struct, frozen=True):
    """A task with a `@resource` whose argument is a unit."""

    task: Task
    unit: UnitIndex
    node: ast.UnitRef


def requests(facts: ProgramFacts) -> Sequence[Request]:
    """Every unit that the program asks for."""
    return _program_requests(facts.plan)


def _every_request(program: Program) -> Iterator[Request]:
    for task in program.tasks:
        if not task.decorators:
            continue
        unit, decorator = requested_unit(task), task.decorator("resource")
        if unit is None or decorator is None or not decorator.node.args:
            continue
        node = decorator.node.args[0]
        if isinstance(node, ast.UnitRef):
            yield Request(task, unit, node)


_program_requests = OncePerPlan(lambda plan: tuple(_every_request(plan.program)))


@rule("DEC08", "resource-index-wraps", f"{_VALIDITY} 2", severity="info")
def resource_index_wraps(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` asks for an instance beyond those that the device has; the index wraps around.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(DMA[2])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(DMA[1])
    """
    for request, grid in _sound_requests(facts):
        bounds = sure_interval(request.unit.index, grid)
        if bounds is not None and bounds[1] < facts.device.count(request.unit.unit):
            continue
        binding = bind_units(request.task, facts.device, grid)
        if binding is None or binding.match != "remapped":
            continue
        unit, asked = request.unit.unit, binding.requested
        count = facts.device.count(unit)
        if asked is None or binding.index is None:
            continue
        row = first_row(asked >= count) or 0
        when = "" if isinstance(asked, int) else in_iteration(grid, row)
        message = (
            f"`{unit}[{value_at(asked, row)}]`{when} is beyond the {count} of "
            f"{device_text(facts)}; the task runs on `{unit}[{value_at(binding.index, row)}]`"
        )
        yield resource_index_wraps.at(facts.span(request.node), message)


def _sound_requests(facts: ProgramFacts) -> Iterator[tuple[Request, Grid]]:
    """Requests that no other rule has something against."""
    if facts.device.is_abstract:
        return
    for request in requests(facts):
        grid = facts.plan.grid_of(request.task.loops)
        if grid is None or request.unit.unit not in RESOURCE_TARGETS:
            continue
        if as_term(request.unit.index) is None:
            continue
        if _is_surely_sound(request, grid) or (
            _first_negative(request, grid) is None and _problem(request, grid) is None
        ):
            yield request, grid


def _is_surely_sound(request: Request, grid: Grid) -> bool:
    """Whether an index has a value of 0 or more in every row, told from intervals."""
    bounds = sure_interval(request.unit.index, grid)
    return bounds is not None and bounds[0] >= 0


def _problem(request: Request, grid: Grid) -> TermProblem | None:
    term = as_term(request.unit.index)
    if sure_interval(request.unit.index, grid) is not None:
        return None
    try:
        if term is not None:
            grid.evaluate(term)
    except TermProblem as problem:
        return problem
    return None


def _first_negative(request: Request, grid: Grid) -> tuple[int, int] | None:
    """The first negative index and its row."""
    term = as_term(request.unit.index)
    if _is_surely_sound(request, grid):
        return None
    if term is None or _problem(request, grid) is not None:
        return None
    values = grid.evaluate(term)
    row = first_row(values < 0)
    return None if row is None else (value_at(values, row), row)


def resource_indices_have_values(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Indices that divide by zero or leave 64 bits in some iteration."""
    for request in requests(facts):
        grid = facts.plan.grid_of(request.task.loops)
        problem = _problem(request, grid) if grid is not None else None
        if grid is not None and problem is not None:
            yield no_value_finding(facts, request.node.index, grid, problem)


@rule("DEC09", "resource-absent", f"{_VALIDITY} 3", severity="info")
def resource_absent(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` asks for a unit type that the device does not have; another one runs the task.

    Where no unit can, that is PLC09.

    Bad (-) and good (+):

        - include "nem_baseline_1.0.nem"
        - device bare extends nem_baseline_1_0 {
        -     topology {
        -         num_engines = 1
        -         l2_size_bytes = 1024
        -         per_engine { NMU = 1 CSTL = 1 DMA = 1 SEQ = 1 l1_size_bytes = 1024 }
        -     }
        - }
        - program p:
          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
          t = transfer.sync(dst=X, src=region(A, 0, 64))
          r = relu.sync in X out X @resource(VPU[0])
          s = store.sync(dst=region(A, 0, 64), src=X)
    """
    for request, way in _translated_requests(facts):
        unit = request.unit.unit
        if not has_unit(facts.device, unit):
            message = f"{device_text(facts)} has no `{unit}`; `{request.task.op}` runs on "
            yield resource_absent.at(facts.span(request.node), message + _units_text(way))


def _translated_requests(facts: ProgramFacts) -> Iterator[tuple[Request, UnitCombination]]:
    """Requests for a unit that cannot run the task, and what runs it instead."""
    for request, _ in _sound_requests(facts):
        ways = eligible_units(request.task, facts.device)
        if ways and all(request.unit.unit not in way for way in ways):
            yield request, ways[0]


def _units_text(way: UnitCombination) -> str:
    return " and ".join(f"`{unit}`" for unit in way)


@rule("DEC10", "resource-cannot-run-task", f"{_VALIDITY} 1")
def resource_cannot_run_task(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@resource` asks for a unit that the device has and that can never run the task.

    The task must run on that very instance, and it cannot. Which units can follows from the
    registry: the opcode's own unit, then VPU, for views DMA too; transfers go by the memory levels
    of their ends. A unit that the device lacks is replaced by one that can (DEC09).

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(NMU[0])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(DMA[0])
    """
    for request, way in _translated_requests(facts):
        unit = request.unit.unit
        if has_unit(facts.device, unit):
            able = " or ".join(_units_text(way) for way in capable_units(request.task))
            yield resource_cannot_run_task.at(
                facts.span(request.node.unit),
                f"a `{unit}` cannot run this `{request.task.op}`, which takes {able}",
                help=_other_target(way),
            )


def _other_target(way: UnitCombination) -> str:
    """What to write instead: of the units of a way, one that `@resource` may name."""
    target = next((unit for unit in way if unit in RESOURCE_TARGETS), None)
    leave = "leave `@resource` out"
    return f"write `@resource({target}[0])`, or {leave}" if target is not None else leave


@rule("DEC15", "negative-resource-index", _VALIDITY)
def negative_resource_index(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The index of `@resource` is negative, in some iteration or in all.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L2 (size=64)
        - t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(DMA[0 - 1])
        + t = transfer.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @resource(DMA[1])
    """
    for request in requests(facts):
        grid = facts.plan.grid_of(request.task.loops)
        negative = _first_negative(request, grid) if grid is not None else None
        if grid is not None and negative is not None:
            value, row = negative
            when = "" if isinstance(request.unit.index, int) else in_iteration(grid, row)
            message = f"the index of `{request.unit.unit}` is {value}{when}, expected 0 or more"
            yield negative_resource_index.at(facts.span(request.node.index), message)


declare(
    "DEC07",
    "resource-binds-exactly",
    f"{_VALIDITY} 1",
    """
    A task with `@resource(UNIT[k])` runs on instance k of its engine when the device has it.

    No diagnostic carries this code.
    """,
    behaviour=True,
)

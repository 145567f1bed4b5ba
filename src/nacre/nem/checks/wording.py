"""How findings speak of regions, tasks and iterations."""

from __future__ import annotations

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.term_columns import TermProblem
from nacre.base.terms import LoopVariable, Operation
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.grid import Grid
from nacre.nem.spec.rules.constants import CST06, CST07, CST16
from nacre.nem.syntax import ast

_NO_VALUE: dict[str, tuple[Rule, str]] = {
    "division": (CST06, "division by zero"),
    "remainder": (CST07, "remainder by zero"),
    "overflow": (CST16, "the value does not fit in 64 bits"),
}


def region_text(region: Region) -> str:
    """A region as a message calls it."""
    if region.name is not None:
        return f"region `{region.name}`"
    return f"the region of `{region.node.buffer.name}`"


def task_text(task: Task) -> str:
    """A task as a message calls it."""
    return f"`{task.token}`" if task.token is not None else f"this `{task.op}`"


def argument_text(facts: ProgramFacts, node: ast.Node, value: object) -> str:
    """An argument that a decorator does not take: its value, or else the words of the program."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    span = facts.span(node)
    text = backquote(span.source.text[span.start : span.end])
    varies = isinstance(value, LoopVariable | Operation)
    return f"{text}, which varies by iteration" if varies else text


def device_text(facts: ProgramFacts) -> str:
    """The device as a message calls it."""
    return f"device `{facts.device.name}`" if facts.device_is_named else "the default device"


def iteration_text(grid: Grid, row: int) -> str:
    """The loop variables of a row: `i=4, j=0`; empty outside loops."""
    pairs = zip(grid.loops, grid.iteration(row), strict=True)
    return ", ".join(f"{loop.variable.name}={value}" for loop, value in pairs)


def in_iteration(grid: Grid, row: int) -> str:
    """` in iteration i=4`, to stand inside a message; empty outside loops."""
    text = iteration_text(grid, row)
    return f" in iteration {text}" if text else ""


def no_value_finding(
    facts: ProgramFacts, node: ast.Node, grid: Grid, problem: TermProblem
) -> Diagnostic:
    """An expression that divides by zero or leaves 64 bits in some iteration."""
    rule, text = _NO_VALUE[problem.kind]
    return rule.at(facts.span(node), f"{text}{in_iteration(grid, problem.row)}")

"""LOP: windows and iteration spaces."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.hints import setting
from nacre.base.rules import declare, rule
from nacre.base.term_columns import TermProblem
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import argument_text, in_iteration, no_value_finding
from nacre.nem.model.program import Decorator, Loop, Task
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.grid import EmptyLoop, TooManyRows
from nacre.nem.plan.plan import LoopProblem
from nacre.nem.syntax import ast

_LOOPS = "Loops and Bounded Pipelining"
_LIMIT = setting("`--max-instances`", "`max_instances=`")


@rule("LOP01", "window-not-a-positive-integer", _LOOPS)
def window_not_a_positive_integer(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The argument of `@max_in_flight` is missing or is not an integer constant of 1 or more.

    Bad (-) and good (+):

        - loop i in [0..3] @max_in_flight(0):
        + loop i in [0..3] @max_in_flight(2):
          endloop
    """
    for loop in facts.program.loops:
        for decorator in loop.decorators:
            if decorator.name != "max_in_flight":
                continue
            wrong = _wrong_window(facts, decorator)
            if wrong is not None:
                node, found = wrong
                message = f"`@max_in_flight` takes one integer constant of 1 or more, found {found}"
                yield window_not_a_positive_integer.at(facts.span(node), message)


def _wrong_window(facts: ProgramFacts, decorator: Decorator) -> tuple[ast.Node, str] | None:
    """What to blame and what was found; None where the argument is right or was reported."""
    arguments, nodes = decorator.arguments, decorator.node.args
    if not arguments or nodes is None:
        return decorator.node, "none"
    if len(arguments) > 1:
        return nodes[1], f"{len(arguments)} arguments"
    value = arguments[0]
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return None
    return nodes[0], argument_text(facts, nodes[0], value)


@rule("LOP02", "empty-loop", _LOOPS)
def empty_loop(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A loop ends before it starts, perhaps only in some iteration of a loop around it.

    Both bounds belong to the loop: `[0..0]` has one iteration.

    Bad (-) and good (+):

        - loop i in [4..0]:
        + loop i in [0..4]:
          endloop
    """
    for loop_problem in facts.plan.problems:
        problem = loop_problem.problem
        if isinstance(problem, EmptyLoop):
            when = in_iteration(loop_problem.outer, problem.row)
            message = (
                f"loop `{loop_problem.loop.variable.name}` runs from {problem.first} to "
                f"{problem.last}{when}: it has no iteration"
            )
            yield empty_loop.at(facts.span(_bounds(loop_problem.loop)), message)


def _bounds(loop: Loop) -> ast.Node:
    node = loop.node
    if node.first is None or node.last is None:
        return ast.Node(node.start, node.header_end)
    return ast.Node(node.first.start, node.last.end)


@rule("LOP06", "too-many-task-instances", "nacre: programs are expanded before they run")
def too_many_task_instances(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """The loops of a program make more task instances than the limit.

    A few lines can ask for more than memory holds. The limit is 5,000,000; the option
    `--max-instances` sets another.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        - loop i in [0..5999999]:
        + loop i in [0..59]:
              transfer.sync(dst=region(B, i, 1), src=region(A, i, 1))
          endloop
    """
    for loop_problem in facts.plan.problems:
        if isinstance(loop_problem.problem, TooManyRows):
            yield too_many_task_instances.at(
                facts.span(_bounds(loop_problem.loop)),
                _too_many(facts, loop_problem, loop_problem.problem.rows),
                help=f"raise the limit with {_LIMIT}, or make the loops shorter",
            )


def _too_many(facts: ProgramFacts, problem: LoopProblem, rows: int) -> str:
    loop, limit = problem.loop, facts.max_instances
    inside = _least_tasks(loop)
    if not inside:
        return f"loop `{loop.variable.name}` has {rows:,} iterations, but the limit is {limit:,}"
    total = facts.plan.instances + rows * inside
    with_loop = f"with loop `{loop.variable.name}` the program has {total:,} task instances"
    return f"{with_loop}, but the limit is {limit:,}"


def _least_tasks(loop: Loop) -> int:
    """How many task instances an iteration has; a loop whose length varies counts once."""
    total = 0
    for statement in loop.body:
        if isinstance(statement, Task):
            total += 1
        elif isinstance(statement, Loop):
            total += _least_tasks(statement) * _least_trips(statement)
    return total


def _least_trips(loop: Loop) -> int:
    if isinstance(loop.first, int) and isinstance(loop.last, int):
        return max(0, loop.last - loop.first + 1)
    return 1


def loop_bounds_have_values(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Loop bounds that divide by zero or leave 64 bits in some outer iteration."""
    for loop_problem in facts.plan.problems:
        problem = loop_problem.problem
        if isinstance(problem, TermProblem):
            yield no_value_finding(
                facts, _bound_without_value(loop_problem), loop_problem.outer, problem
            )


def _bound_without_value(problem: LoopProblem) -> ast.Node:
    loop = problem.loop
    first = as_term(loop.first)
    try:
        if first is not None:
            problem.outer.evaluate(first)
    except TermProblem:
        return loop.node.first or _bounds(loop)
    return loop.node.last or _bounds(loop)


declare(
    "LOP04",
    "loops-are-sequential",
    _LOOPS,
    """
    Without `@max_in_flight`, an iteration starts when the one before it is complete.

    No diagnostic carries this code.
    """,
    behaviour=True,
)
declare(
    "LOP05",
    "window-slides",
    _LOOPS,
    """
    Under `@max_in_flight(N)`, iteration i starts when all iterations up to i - N are complete.

    The window slides: it does not count active iterations, so i and i + N never overlap. No
    diagnostic carries this code.
    """,
    behaviour=True,
)

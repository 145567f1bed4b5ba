"""How rules about shapes look at tasks and word what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Check
from nacre.kernels.interface import shapes
from nacre.kernels.interface.shapes import Dims
from nacre.nem.checks.concrete_tasks import ConcreteTask, concrete_tasks
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.tasks import (
    attribute_span,
    compute_tasks,
    has_its_operands,
    operand_declaration,
    operand_span,
    operand_title,
)
from nacre.nem.model.program import Operand, Task
from nacre.nem.spec.opcodes import Opcode, OperandSpec

Finder = Callable[[ProgramFacts, ConcreteTask], Iterator[Diagnostic]]


def first_findings(facts: ProgramFacts, find: Finder, *kinds: str) -> Iterator[Diagnostic]:
    """What a rule finds in each task, in the first iteration in which it finds something.

    `kinds` are the opcodes or categories that the rule is about.
    Tasks with a wrong rank or layout are left out: their dimensions cannot be told apart.
    """
    for task, opcode in compute_tasks(facts, *kinds):
        if not _has_known_shapes(task, opcode):
            continue
        for concrete in concrete_tasks(facts, task, opcode):
            findings = list(find(facts, concrete))
            if findings:
                yield from findings
                break


def _has_known_shapes(task: Task, opcode: Opcode) -> bool:
    return has_its_operands(task, opcode) and not any(
        rank_problem(opcode, operand) or layout_problem(operand) for operand in task.operands
    )


def rank_problem(opcode: Opcode, operand: Operand) -> str | None:
    """Why an operand's rank does not fit; goes on after the operand's name."""
    spec, region = operand.spec, operand.region
    if spec is None or region is None or region.shape is None:
        return None
    if opcode.category == "normalization":  # scales have a whole shape to follow: SIG10
        return None
    rank = len(region.shape)
    if spec.rank is not None and rank != spec.rank:
        return f"has rank {rank}, expected {spec.rank}{_axes(spec)}"
    if spec.min_rank is not None and rank < spec.min_rank:
        return f"has rank {rank}, expected at least {spec.min_rank}{_axes(spec)}"
    return None


def _axes(spec: OperandSpec) -> str:
    return f": {spec.shape}" if spec.shape.startswith("[") else ""


def layout_problem(operand: Operand) -> str | None:
    """Why an operand's layout does not fit; a region with strides may be of any."""
    spec, region = operand.spec, operand.region
    if spec is None or spec.layout is None or region is None or region.layout is None:
        return None
    if region.layout == spec.layout:
        return None
    return f"has layout `{region.layout}`, expected `{spec.layout}`"


def shape_text(dims: Dims) -> str:
    """A shape as the language writes it."""
    return f"[{', '.join(map(str, dims))}]"


def shape_finding(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    concrete: ConcreteTask,
    operand: Operand,
    message: str,
    help: str | None = None,
) -> Diagnostic:
    """A finding about an operand's shape; `message` goes on after the operand's name."""
    return check.at(
        operand_span(facts, operand, "shape"),
        f"{operand_title(concrete.task, operand)} {message}{concrete.iteration}",
        related=operand_declaration(facts, operand, "shape"),
        help=help,
    )


def attribute_finding(
    facts: ProgramFacts, check: Check[ProgramFacts], concrete: ConcreteTask, name: str, message: str
) -> Diagnostic:
    """A finding about an attribute; `message` goes on after the attribute's name."""
    return check.at(
        attribute_span(facts, concrete.task, name),
        f"`{name}` of `{concrete.task.op}` {message}{concrete.iteration}",
    )


def unexpected_shapes(
    facts: ProgramFacts,
    check: Check[ProgramFacts],
    concrete: ConcreteTask,
    name: str,
    expected: Dims,
    why: str = "",
    help: str | None = None,
) -> Iterator[Diagnostic]:
    """A finding for the first operand of a name whose shape is not the expected one."""
    for operand, dims in zip(concrete.task.operands, concrete.shapes, strict=True):
        is_meant = operand.spec is not None and operand.spec.name == name
        if is_meant and dims != expected:
            message = f"has shape {shape_text(dims)}, expected {shape_text(expected)}{why}"
            yield shape_finding(facts, check, concrete, operand, message, help)
            return


def shapes_unlike_first(
    facts: ProgramFacts, check: Check[ProgramFacts], concrete: ConcreteTask
) -> Iterator[Diagnostic]:
    """A finding for the first main operand that has another shape than the first operand."""
    first = concrete.task.operands[0].spec
    for operand, dims in zip(concrete.task.operands, concrete.shapes, strict=True):
        is_main = operand.spec is not None and operand.spec.is_main
        if is_main and first is not None and dims != concrete.shapes[0]:
            expected = f"{shape_text(concrete.shapes[0])} like `{first.name}`"
            message = f"has shape {shape_text(dims)}, expected {expected}"
            yield shape_finding(facts, check, concrete, operand, message)
            return


def axis_out_of_range(
    facts: ProgramFacts, check: Check[ProgramFacts], concrete: ConcreteTask, rank: int
) -> Iterator[Diagnostic]:
    """A finding where the attribute `axis` is no axis of a tensor."""
    axis = concrete.number("axis")
    if axis is not None and shapes.axis_of(axis, rank) is None:
        message = f"is {axis}, expected {-rank} to {rank - 1}"
        yield attribute_finding(facts, check, concrete, "axis", message)

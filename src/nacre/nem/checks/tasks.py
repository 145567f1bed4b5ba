"""Compute tasks as the rules on signatures, types and quantisation see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from nacre.base.diagnostics import Related
from nacre.base.source import Span
from nacre.nem.checks.attributes import attribute_node
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.columns import OncePerPlan
from nacre.nem.plan.plan import Plan
from nacre.nem.spec.opcodes import Opcode
from nacre.nem.syntax import ast

_ANY = ""  # the kind of all compute tasks

Part = Literal["elem", "shape", "layout", "quant"]


def compute_tasks(facts: ProgramFacts, *kinds: str) -> Iterator[tuple[Task, Opcode]]:
    """The compute tasks whose opcode is known: all, or those of some opcodes or categories."""
    by_kind = _tasks_by_kind(facts.plan)
    if len(kinds) < 2:
        return iter(by_kind.get(kinds[0] if kinds else _ANY, ()))
    several = [pair for kind in kinds for pair in by_kind.get(kind, ())]
    unique = {pair[0].position: pair for pair in several}
    return iter([unique[position] for position in sorted(unique)])


def _group_tasks(plan: Plan) -> dict[str, list[tuple[Task, Opcode]]]:
    """The compute tasks whose opcode is known, by opcode and category, and all of them."""
    by_kind: dict[str, list[tuple[Task, Opcode]]] = {}
    for task in plan.program.tasks:
        opcode = task.opcode
        if opcode is None or opcode.category == "data_movement":
            continue
        for kind in {_ANY, opcode.category, opcode.name}:
            by_kind.setdefault(kind, []).append((task, opcode))
    return by_kind


_tasks_by_kind = OncePerPlan(_group_tasks)


def has_its_operands(task: Task, opcode: Opcode) -> bool:
    """Whether a task has as many operands as its signature asks for, no less and no more."""
    count = {operand.spec.name for operand in task.operands if operand.spec is not None}
    is_complete = all(spec.name in count for spec in opcode.operands if spec.required)
    return is_complete and all(operand.spec is not None for operand in task.operands)


def operands(task: Task, name: str) -> list[Operand]:
    """The operands that a task gives under a name of the signature."""
    return [o for o in task.operands if o.spec is not None and o.spec.name == name]


def operand(task: Task, name: str) -> Operand | None:
    """The first of them, if there is one."""
    return next(iter(operands(task, name)), None)


def operand_title(task: Task, one: Operand) -> str:
    """`` operand `B` of `gemm` ``, or `` input 2 of `concat` `` where there may be several."""
    spec = one.spec
    if spec is None or not spec.variadic:
        return f"operand `{spec.name if spec is not None else '?'}` of `{task.op}`"
    side = [o for o in task.operands if o.access == one.access]
    word = "input" if one.access == "read" else "output"
    number = next(index for index, o in enumerate(side, 1) if o is one)
    return f"{word} {number} of `{task.op}`"


def task_title(task: Task) -> str:
    """`` `gemm` task `tG` ``, or the opcode alone for a task without a token."""
    return f"`{task.op}` task `{task.token}`" if task.token is not None else f"this `{task.op}`"


def op_span(facts: ProgramFacts, task: Task) -> Span:
    """Where the opcode stands."""
    return facts.span(task.node.op)


def attribute_span(facts: ProgramFacts, task: Task, name: str) -> Span:
    """Where an attribute's value stands, or the opcode where the attribute is left out."""
    node = attribute_node(task, name)
    return op_span(facts, task) if node is None else facts.span(node.value)


def operand_span(facts: ProgramFacts, one: Operand, part: Part) -> Span:
    """The operand's name, or the part of its type where the region stands in the task itself."""
    node = one.node.value
    if isinstance(node, ast.RegionExpr) and node.type is not None:
        type_ = node.type.plain if isinstance(node.type, ast.Compressed) else node.type
        return facts.span(getattr(type_, part) or type_)
    return facts.span(node)


def operand_declaration(facts: ProgramFacts, one: Operand, part: Part) -> tuple[Related, ...]:
    """The place of a region's declaration that gives a part of its type."""
    region = one.region
    if region is None or region.name is None or region.type_node is None:
        return ()
    node = getattr(region.type_node, part) or region.type_node
    is_named = not region.node.start <= node.start < region.node.end
    what = f"the type of `{region.name}`" if is_named else f"`{region.name}`"
    return (Related(facts.span(node), f"{what} is declared here"),)

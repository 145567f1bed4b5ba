"""SIG03-SIG05, SIG21, SIG22, SIG26: opcodes that a task may use, and their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.fixes import respelling_fix
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean, nearest
from nacre.base.term_columns import TermProblem
from nacre.base.terms import Term
from nacre.nem.checks.attributes import attribute_node, attribute_value, item_node, kind_problem
from nacre.nem.checks.concrete_tasks import distinct_values
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.tasks import attribute_span, compute_tasks, has_its_operands, op_span
from nacre.nem.checks.wording import in_iteration, no_value_finding
from nacre.nem.model.matching import join_names
from nacre.nem.model.program import Task
from nacre.nem.plan.calls import distinct_calls
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.core_operations import call_problem
from nacre.nem.spec.opcodes import AttributeSpec, Opcode
from nacre.nem.syntax import ast

_SIGNATURES = "Opcode Signatures"
_CORE = "core."


@rule("SIG03", "attribute-missing", _SIGNATURES)
def attribute_missing(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task lacks an attribute that its opcode requires.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        - s = softmax.sync in X out X
        + s = softmax.sync in X out X axis=1
    """
    for task, opcode in compute_tasks(facts):
        if opcode.category == "generic":  # SIG22 speaks of the operation's name
            continue
        missing = [a for a in opcode.required_attributes if a.name not in task.attributes]
        if missing:
            misspelt = _intended_names(task, opcode)
            missing = [a for a in missing if a.name not in misspelt]
        if missing:
            word = "attribute" if len(missing) == 1 else "attributes"
            message = f"`{task.op}` lacks {word} {join_names([a.name for a in missing])}"
            help_ = "; ".join(f"`{a.name}`: {a.summary}" for a in missing)
            yield attribute_missing.at(op_span(facts, task), message, help=help_)


def _intended_names(task: Task, opcode: Opcode) -> set[str | None]:
    """The attributes that unknown ones were meant to be; SIG04 speaks of those."""
    known = [attribute.name for attribute in opcode.attributes]
    return {nearest(name, known) for name in task.attributes if name not in known}


@rule(
    "SIG04",
    "unknown-attribute",
    _SIGNATURES,
    fix="writes the word that was meant, where it can be one only",
)
def unknown_attribute(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task has an attribute that its opcode does not know.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=i8, shape=[32], layout=C
        - r = relu.sync in X out X alpha=0.1
        + r = leaky_relu.sync in X out X alpha=0.1
    """
    for task, opcode in compute_tasks(facts):
        if "open_attributes" in opcode.traits or isinstance(task.node, ast.Copy):
            continue
        known = [attribute.name for attribute in opcode.attributes]
        for node in task.node.attributes:
            if node.name.name not in known:
                message = f"`{task.op}` has no attribute {backquote(node.name.name)}"
                help_ = did_you_mean(node.name.name, known) or _attributes_text(opcode)
                span = facts.span(node.name)
                fix = respelling_fix(span, node.name.name, known)
                yield unknown_attribute.at(span, message, help=help_, fix=fix)


def _attributes_text(opcode: Opcode) -> str:
    if not opcode.attributes:
        return f"`{opcode.name}` has none"
    return f"`{opcode.name}` has {join_names([attribute.name for attribute in opcode.attributes])}"


@rule(
    "SIG05",
    "wrong-attribute-value",
    _SIGNATURES,
    fix="writes the word that was meant, where it can be one only",
)
def wrong_attribute_value(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An attribute's value has the wrong kind, length or range.

    An integer may stand for a float. Integers may depend on loop variables.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=32)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        - s = softmax.sync in X out X axis=1.5
        + s = softmax.sync in X out X axis=1
    """
    for task, opcode in compute_tasks(facts):
        if opcode.category == "generic":
            continue
        for spec in opcode.attributes:
            node = attribute_node(task, spec.name)
            if node is not None:
                yield from _wrong_kind(facts, task, spec, node)
                yield from _out_of_range(facts, task, spec, node)


def _wrong_kind(
    facts: ProgramFacts, task: Task, spec: AttributeSpec, node: ast.Attribute
) -> Iterator[Diagnostic]:
    value = task.attributes.get(spec.name)
    problem = kind_problem(spec, value, node.value)
    if problem is not None:
        help_ = did_you_mean(value, spec.allowed) if isinstance(value, str) else None
        message = f"`{spec.name}` of `{task.op}` {problem.text}"
        span = facts.span(problem.node)
        is_word = isinstance(value, str) and span.source.text[span.start : span.end] == value
        fix = respelling_fix(span, str(value), spec.allowed) if is_word else None
        yield wrong_attribute_value.at(span, message, help=help_, fix=fix)


def _out_of_range(
    facts: ProgramFacts, task: Task, spec: AttributeSpec, node: ast.Attribute
) -> Iterator[Diagnostic]:
    """The first integer of an attribute that has no value, or one below the minimum."""
    value = attribute_value(task, spec)
    items = value if isinstance(value, tuple) else (value,)
    least = spec.minimum
    if all(type(item) is int and (least is None or item >= least) for item in items):
        return
    for index, item in enumerate(items):
        value_node = item_node(node.value, index) if isinstance(value, tuple) else node.value
        term = as_term(item)
        if term is None:
            continue
        finding = _no_value_finding(facts, task, term, value_node) or _minimum_finding(
            facts, task, spec, term, value_node
        )
        if finding is not None:
            yield finding
            return


def _no_value_finding(
    facts: ProgramFacts, task: Task, term: Term, value_node: ast.Value
) -> Diagnostic | None:
    grid = facts.plan.grid_of(task.loops)
    if grid is None or isinstance(term, int):
        return None
    try:
        grid.evaluate(term)
    except TermProblem as problem:
        return no_value_finding(facts, value_node, grid, problem)
    return None


def _minimum_finding(
    facts: ProgramFacts, task: Task, spec: AttributeSpec, term: Term, value_node: ast.Value
) -> Diagnostic | None:
    least = spec.minimum
    if least is None:
        return None
    for (value,), iteration in distinct_values(facts, task.loops, [term]):
        if value < least:
            message = f"`{spec.name}` of `{task.op}` holds {value}, expected at least {least}"
            return wrong_attribute_value.at(facts.span(value_node), f"{message}{iteration}")
    return None


@rule("SIG21", "future-opcode", "NPM Hardware Support Status", severity="warning")
def future_opcode(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An opcode is part of the language, but no current silicon runs it.

    Bad (-) and good (+):

          buffer S : L2 (size=20)
          buffer M : L1 (size=20)
          t = transfer.sync(dst=region(M, 0, 20), src=region(S, 0, 20))
        - let X = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MN
        - let Y = region(M, 16, 4) elem=i8, shape=[4], layout=M
        - r = reduce_max.sync in X out Y axes=[1] keepdims=false
        + let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        + let Y = region(M, 16, 4) elem=i8, shape=[1, 4, 1, 1], layout=NHWC
        + p = maxpool.sync in X out Y kernel_shape=[1, 4] pads=[0, 0, 0, 0] strides=[1, 1]
    """
    for task, opcode in compute_tasks(facts):
        if opcode.status == "future":
            message = f"`{task.op}` is a future opcode: binders for current silicon reject it"
            yield future_opcode.at(op_span(facts, task), message)


@rule("SIG22", "operation-not-named", "Compute Tasks / Generic Compute Escape Hatch")
def operation_not_named(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`compute` does not say which operation it runs.

    `op` is a string. `core.NAME` is an operation of Core IR. Any other name belongs to a backend
    that registers it, which is known only when the program runs: a name that no backend knows is
    an error of this code then, and an info now.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=i8, shape=[32], layout=C
          let Y = region(M, 32, 32) elem=i8, shape=[32], layout=C
        - c = compute.sync in X out Y
        + c = compute.sync in X out Y op="core.Relu"
    """
    for task, opcode in compute_tasks(facts, "generic"):
        for spec in opcode.required_attributes:
            yield from _operation(facts, task, spec)


def _operation(facts: ProgramFacts, task: Task, spec: AttributeSpec) -> Iterator[Diagnostic]:
    node = attribute_node(task, spec.name)
    if node is None:
        message = f"`{task.op}` does not name its operation"
        help_ = f'add `{spec.name}="core.NAME"`'
        yield operation_not_named.at(op_span(facts, task), message, help=help_)
        return
    value = task.attributes.get(spec.name)
    span = facts.span(node.value)
    problem = kind_problem(spec, value, node.value)
    if problem is not None:
        yield operation_not_named.at(span, f"`{spec.name}` of `{task.op}` {problem.text}")
    elif value in ("", _CORE):
        yield operation_not_named.at(span, f"`{spec.name}` of `{task.op}` names no operation")
    elif isinstance(value, str) and not value.startswith(_CORE):
        message = f"only a backend that registers {backquote(value)} can run this task"
        yield replace(operation_not_named.at(span, message), severity="info")


@rule("SIG26", "operation-cannot-run", "Compute Tasks / Generic Compute Escape Hatch")
def operation_cannot_run(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task by name has operands or attributes that its operation cannot work on.

    Operations of Core IR have shapes and types of their own; a run would stop there with RUN04.

    Bad (-) and good (+):

          buffer S : L2 (size=32)
          buffer M : L1 (size=64)
          t = transfer.sync(dst=region(M, 0, 32), src=region(S, 0, 32))
          let X = region(M, 0, 32) elem=f32, shape=[8], layout=C
        - let Y = region(M, 32, 32) elem=f32, shape=[2, 4], layout=MN
        + let Y = region(M, 32, 32) elem=f32, shape=[8], layout=C
          c = compute.sync in X out Y op="core.Relu"
    """
    if not facts.program.is_whole:
        return
    for task, opcode in compute_tasks(facts, "generic"):
        name, grid = task.attributes.get("op"), facts.plan.grid_of(task.loops)
        if not isinstance(name, str) or grid is None or not has_its_operands(task, opcode):
            continue
        try:
            calls = list(distinct_calls(task, grid))
        except (TermProblem, ValueError, TypeError, KeyError):  # reported where it is met
            continue
        problems = ((call_problem(name, call), row) for call, row in calls)
        problem = next(((p, row) for p, row in problems if p is not None), None)
        if problem is not None:
            when = in_iteration(grid, problem[1]) if len(calls) > 1 else ""
            message = f"{backquote(name)} cannot run{when}: {problem[0]}"
            yield operation_cannot_run.at(attribute_span(facts, task, "op"), message)

"""SIG01-SIG05, SIG21, SIG22: operands and attributes against the opcode registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import quoted
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean
from nacre.nem.checks.attributes import (
    Problem,
    item_node,
    kind_problem,
    node_of,
    usable,
)
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.rules.signature_shapes import SHAPE_RULES
from nacre.nem.checks.rules.signature_views import VIEW_RULES
from nacre.nem.checks.rules.signature_windows import WINDOW_RULES
from nacre.nem.checks.tasks import computes, first_below, op_span, undefined
from nacre.nem.model.folding import LoopVariable, Operation
from nacre.nem.model.matching import joined
from nacre.nem.model.program import Task
from nacre.nem.spec.opcodes import AttributeSpec, Opcode, OperandSpec
from nacre.nem.syntax import ast

_SIGNATURES = "Opcode Signatures"
_CORE = "core."


@rule("SIG01", "operand-missing", f"{_SIGNATURES} / Operand rules")
def operand_missing(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task lacks an operand that its opcode requires.

    Bad:

        buffer M : L1 (size=16)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = add.async in A out A

    Good:

        buffer M : L1 (size=32)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        t = add.async in A, B out A
    """
    for task, opcode in computes(facts):
        given = {operand.spec.name for operand in task.operands if operand.spec is not None}
        missing = [s.name for s in opcode.operands if s.required and s.name not in given]
        if missing:
            word = "operand" if len(missing) == 1 else "operands"
            message = f"`{task.op}` lacks {word} {joined(missing)}"
            yield operand_missing.at(op_span(facts, task), message, help=_signature(opcode))


def _signature(opcode: Opcode) -> str:
    inputs, outputs = (", ".join(map(_shown, s)) for s in (opcode.inputs, opcode.outputs))
    return f"the signature is `{opcode.name}.async in {inputs} out {outputs}`"


def _shown(spec: OperandSpec) -> str:
    return f"{spec.name}{'...' if spec.variadic else ''}{'' if spec.required else '?'}"


@rule("SIG02", "too-many-operands", f"{_SIGNATURES} / Operand rules")
def too_many_operands(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task has more operands than its opcode takes.

    Bad:

        buffer M : L1 (size=32)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        let B = region(M, 16, 16) elem=i8, shape=[16], layout=C
        t = relu.async in A, B out A

    Good:

        buffer M : L1 (size=16)
        let A = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = relu.async in A out A
    """
    for task, opcode in computes(facts):
        for access, most in (("read", opcode.max_inputs), ("write", opcode.max_outputs)):
            side = [operand for operand in task.operands if operand.access == access]
            if most is not None and len(side) > most:
                word = "input" if access == "read" else "output"
                message = f"`{task.op}` has {len(side)} {word}s, expected at most {most}"
                span = facts.span(side[most].node.value)
                yield too_many_operands.at(span, message, help=_signature(opcode))


@rule("SIG03", "attribute-missing", _SIGNATURES)
def attribute_missing(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task lacks an attribute that its opcode requires.

    Bad:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X

    Good:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=1
    """
    for task, opcode in computes(facts):
        if "open_attributes" in opcode.traits:  # SIG22 speaks of the operation's name
            continue
        missing = [a for a in opcode.required_attributes if a.name not in task.attributes]
        if missing:
            word = "attribute" if len(missing) == 1 else "attributes"
            message = f"`{task.op}` lacks {word} {joined([a.name for a in missing])}"
            help_ = "; ".join(f"`{a.name}`: {a.summary}" for a in missing)
            yield attribute_missing.at(op_span(facts, task), message, help=help_)


@rule("SIG04", "unknown-attribute", _SIGNATURES)
def unknown_attribute(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task has an attribute that its opcode does not know.

    Bad:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = relu.async in X out X alpha=0.1

    Good:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = leaky_relu.async in X out X alpha=0.1
    """
    for task, opcode in computes(facts):
        if "open_attributes" in opcode.traits or isinstance(task.node, ast.Copy):
            continue
        known = [attribute.name for attribute in opcode.attributes]
        for node in task.node.attributes:
            if node.name.name not in known:
                message = f"`{task.op}` has no attribute {quoted(node.name.name)}"
                help_ = did_you_mean(node.name.name, known) or _known(opcode)
                yield unknown_attribute.at(facts.span(node.name), message, help=help_)


def _known(opcode: Opcode) -> str:
    if not opcode.attributes:
        return f"`{opcode.name}` has none"
    return f"`{opcode.name}` has {joined([attribute.name for attribute in opcode.attributes])}"


@rule("SIG05", "wrong-attribute-value", _SIGNATURES)
def wrong_attribute_value(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An attribute's value has the wrong kind, length or range.

    An integer may stand for a float. Integers may depend on loop variables.

    Bad:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=1.5

    Good:

        buffer M : L1 (size=32)
        let X = region(M, 0, 32) elem=f16, shape=[2, 8], layout=MN
        t = softmax.async in X out X axis=1
    """
    for task, opcode in computes(facts):
        if "open_attributes" in opcode.traits:
            continue
        for spec in opcode.attributes:
            node = node_of(task, spec.name)
            if node is None:
                continue
            value = task.attributes.get(spec.name)
            problem = kind_problem(spec, value, node.value) or _range_problem(facts, task, spec, node)
            if problem is not None:
                message = f"`{spec.name}` of `{task.op}` {problem.text}"
                near = did_you_mean(str(value), spec.allowed) if spec.allowed else None
                yield wrong_attribute_value.at(facts.span(problem.node), message, help=near)


def _range_problem(
    facts: ProgramFacts, task: Task, spec: AttributeSpec, node: ast.Attribute
) -> Problem | None:
    """The first integer of an attribute that has no value, or one below the minimum."""
    value = usable(task, spec)
    items = value if isinstance(value, tuple) else (value,)
    for index, item in enumerate(items):
        if not isinstance(item, int | LoopVariable | Operation):
            continue
        place = item_node(node.value, index) if isinstance(value, tuple) else node.value
        reason = undefined(facts, task, item)
        if reason is not None:
            return Problem(place, reason)
        below = None
        if spec.minimum is not None:
            below = first_below(facts, task, item, spec.minimum)
        if below is not None:
            verb = "holds" if isinstance(value, tuple) else "is"
            text = f"{verb} {below[0]}, expected at least {spec.minimum}{below[1]}"
            return Problem(place, text)
    return None


@rule("SIG21", "future-opcode", "NPM Hardware Support Status", severity="warning")
def future_opcode(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """An opcode is part of the language, but no current silicon runs it.

    Bad:

        buffer M : L1 (size=20)
        let X = region(M, 0, 16) elem=i8, shape=[4, 4], layout=MN
        let Y = region(M, 16, 4) elem=i8, shape=[4], layout=M
        t = reduce_max.async in X out Y axes=[1] keepdims=false

    Good:

        buffer M : L1 (size=20)
        let X = region(M, 0, 16) elem=i8, shape=[1, 4, 4, 1], layout=NHWC
        let Y = region(M, 16, 4) elem=i8, shape=[1, 4, 1, 1], layout=NHWC
        t = maxpool.async in X out Y kernel_shape=[1, 4] pads=[0, 0, 0, 0] strides=[1, 1]
    """
    for task, opcode in computes(facts):
        if opcode.status == "future":
            message = f"`{task.op}` is a future opcode: binders for current silicon reject it"
            yield future_opcode.at(op_span(facts, task), message)


@rule("SIG22", "operation-not-named", "Compute Tasks / Generic Compute Escape Hatch")
def operation_not_named(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`compute` does not say which operation it runs.

    `op` is a string. `core.NAME` is an operation of Core IR. Any other name belongs to a backend
    that registers it, which is known only when the program runs: then a name that no backend
    knows is an error of this code, and until then it gets an info.

    Bad:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = compute.async in X out X

    Good:

        buffer M : L1 (size=16)
        let X = region(M, 0, 16) elem=i8, shape=[16], layout=C
        t = compute.async in X out X op="core.Abs"
    """
    for task, opcode in computes(facts, "generic"):
        for spec in opcode.required_attributes:
            yield from _operation(facts, task, spec)


def _operation(facts: ProgramFacts, task: Task, spec: AttributeSpec) -> Iterator[Diagnostic]:
    node = node_of(task, spec.name)
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
        message = f"only a backend that registers {quoted(value)} can run this task"
        yield replace(operation_not_named.at(span, message), severity="info")


SIGNATURE_RULES = (
    operand_missing,
    too_many_operands,
    attribute_missing,
    unknown_attribute,
    wrong_attribute_value,
    *SHAPE_RULES,
    *WINDOW_RULES,
    *VIEW_RULES,
    future_opcode,
    operation_not_named,
)

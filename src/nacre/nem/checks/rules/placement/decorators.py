"""DEC: decorators are known, stand where they mean something, and have the right arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import removal_fix, respelling_fix
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean
from nacre.base.terms import LoopVariable, Operation
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import argument_text
from nacre.nem.model.program import Program, UnitIndex
from nacre.nem.plan.columns import OncePerPlan
from nacre.nem.spec.decorators import DECORATORS, Target
from nacre.nem.spec.decorators import Decorator as Spec
from nacre.nem.spec.units import UNITS
from nacre.nem.syntax import ast

_DECORATORS = "Decorators / Semantic Decorators"
_TARGET_WORDS: dict[Target, str] = {
    "buffer": "a buffer",
    "region": "a region",
    "let": "a `let`",
    "operand": "an operand",
    "task": "a task",
    "loop": "a loop",
}


class _DecoratorUse(Struct, frozen=True):
    """A decorator where it stands; only those on tasks and loops have resolved arguments."""

    target: Target
    node: ast.Decorator
    owner: int  # decorators with the same owner stand on the same object
    op: str | None = None  # of a task
    arguments: tuple[object, ...] | None = None
    binds_region: bool = True  # False: a `let` of something else

    @property
    def name(self) -> str:
        return self.node.name.name

    @property
    def spec(self) -> Spec | None:
        return DECORATORS.get(self.name)


def _uses(facts: ProgramFacts) -> Sequence[_DecoratorUse]:
    """Every decorator of the program."""
    return _program_uses(facts.plan)


def _every_use(program: Program) -> Iterator[_DecoratorUse]:
    yield from _on_declarations(program.document.body)
    for task in program.tasks:
        for d in task.decorators:
            yield _DecoratorUse("task", d.node, task.node.start, task.op, d.arguments)
        for operand in task.operands:
            for d in operand.decorators:
                yield _DecoratorUse("operand", d.node, operand.node.start, None, d.arguments)
    for loop in program.loops:
        for d in loop.decorators:
            yield _DecoratorUse("loop", d.node, loop.node.start, None, d.arguments)


_program_uses = OncePerPlan(lambda plan: tuple(_every_use(plan.program)))


def _on_declarations(body: tuple[ast.Stmt, ...]) -> Iterator[_DecoratorUse]:
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Loop):
            pending += reversed(node.body)
            continue
        target = _TARGET_OF.get(type(node))
        if target is None or not node.decorators:  # type: ignore[union-attr] # each has them
            continue
        binds = not isinstance(node, ast.LetDecl) or isinstance(node.value, ast.RegionExpr)
        for decorator in node.decorators:  # type: ignore[union-attr]
            yield _DecoratorUse(target, decorator, node.start, binds_region=binds)


_TARGET_OF: dict[type, Target] = {
    ast.BufferDecl: "buffer",
    ast.RegionDecl: "region",
    ast.LetDecl: "let",
}


@rule(
    "DEC01",
    "unknown-decorator",
    _DECORATORS,
    fix="writes the word that was meant, where it can be one only",
)
def unknown_decorator(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A decorator is not one of the language.

    Bad (-) and good (+):

        - loop i in [0..3] @fast:
        + loop i in [0..3] @max_in_flight(2):
          endloop
    """
    for use in _uses(facts):
        if use.spec is None:
            message = f"unknown decorator {backquote('@' + use.name)}"
            help_ = did_you_mean(use.name, DECORATORS)
            span = facts.span(use.node.name)
            fix = respelling_fix(span, use.name, DECORATORS)
            yield unknown_decorator.at(span, message, help=help_, fix=fix)


@rule("DEC02", "misplaced-decorator", "Design Principle / Decorator validation")
def misplaced_decorator(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A decorator stands on an object that it says nothing about.

    `nacre rule DEC16` is about `@memmove` on tasks other than transfers.

    Bad (-) and good (+):

        - loop i in [0..3] @readonly:
        - endloop
        + buffer A : L2 (size=64)
        + r = region(A, 0, 64) @readonly
    """
    for use in _uses(facts):
        spec = use.spec
        if spec is None or (_fits(use, spec) and (use.binds_region or use.name == "debug")):
            continue
        found = _TARGET_WORDS[use.target] if use.binds_region else "a `let` that is no region"
        wanted = [_TARGET_WORDS[target] for target in spec.targets]
        message = f"`@{use.name}` stands on {found}, but belongs on {' or '.join(wanted)}"
        yield misplaced_decorator.at(facts.span(use.node), message)


def _fits(use: _DecoratorUse, spec: Spec) -> bool:
    return use.target in spec.targets


@rule("DEC03", "wrong-decorator-arguments", _DECORATORS)
def wrong_decorator_arguments(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A decorator has too many or too few arguments, or one of the wrong kind.

    LOP01 is about the argument of `@max_in_flight`.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 64) @materialized(1)
        + r = region(A, 0, 64) @materialized
    """
    for use in _uses(facts):
        spec = use.spec
        if spec is None or not _fits(use, spec) or use.name == "max_in_flight":
            continue
        wrong = _wrong_argument(facts, use, spec)
        if wrong is not None:
            node, found = wrong
            message = f"`@{use.name}` takes {_takes(spec)}, found {found}"
            yield wrong_decorator_arguments.at(facts.span(node), message)


def _takes(spec: Spec) -> str:
    if spec.argument == "integer":
        return f"one integer constant of {spec.minimum} or more"
    return {
        "none": "no argument",
        "index": f"one integer of {spec.minimum} or more",
        "unit": "one unit such as `CSTL[0]`",
        "name": "one name or string",
    }[spec.argument]


def _wrong_argument(
    facts: ProgramFacts, use: _DecoratorUse, spec: Spec
) -> tuple[ast.Node, str] | None:
    """What to blame and what was found; None where the arguments are right or were reported."""
    nodes = use.node.args or ()
    count = len(nodes)
    if count != (spec.argument != "none"):
        blamed = nodes[1] if count > 1 else nodes[0] if count else use.node
        return blamed, f"{count} arguments" if count > 1 else "one" if count else "none"
    if not count or _is_right(use, spec, nodes[0]):
        return None
    return nodes[0], argument_text(facts, nodes[0], use.arguments[0] if use.arguments else None)


def _is_right(use: _DecoratorUse, spec: Spec, node: ast.Value | ast.UnitRef) -> bool:
    value = use.arguments[0] if use.arguments else None
    if spec.argument == "name":
        return isinstance(node, ast.NameRef | ast.StringLit)
    if value is None:  # it has been reported why there is no value
        return True
    if spec.argument == "unit":
        if not isinstance(value, UnitIndex):
            return False
        return value.unit in UNITS and not isinstance(value.index, float)
    if spec.argument == "index" and isinstance(value, LoopVariable | Operation):
        return True  # what it is in each iteration, PLC04 says
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return spec.minimum is None or value >= spec.minimum


@rule("DEC16", "memmove-on-other-tasks", _DECORATORS)
def memmove_on_other_tasks(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """`@memmove` stands on a task that is not a transfer.

    Bad (-) and good (+):

        - buffer A : L1 (size=128)
          buffer B : L2 (size=64)
        - t = transfer.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
        - s = store.async(dst=region(B, 0, 64), src=region(A, 0, 64)) @memmove
        + t = transfer.async(dst=region(B, 4, 8), src=region(B, 0, 8)) @memmove
    """
    for use in _uses(facts):
        spec = use.spec
        if spec is not None and _fits(use, spec) and not spec.fits(use.target, use.op):
            message = f"`@{use.name}` stands on a `{use.op}`, but is for `{spec.only_opcode}` only"
            yield memmove_on_other_tasks.at(facts.span(use.node), message)


@rule(
    "DEC17",
    "decorator-repeated",
    _DECORATORS,
    fix="takes the second one out where both say the same",
)
def decorator_repeated(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A decorator stands twice on one object, so that it is not clear which one holds.

    Bad (-) and good (+):

        - loop i in [0..3] @max_in_flight(2) @max_in_flight(3):
        + loop i in [0..3] @max_in_flight(2):
          endloop
    """
    seen: dict[tuple[str, str, int], ast.Decorator] = {}
    for use in _uses(facts):
        first = seen.setdefault((use.target, use.name, use.owner), use.node)
        if first is not use.node and use.spec is not None and use.spec.kind == "semantic":
            related = (Related(facts.span(first), "the first one stands here"),)
            message = f"`@{use.name}` stands here a second time"
            span, text = facts.span(use.node), facts.span(use.node).source.text
            is_same = text[first.start : first.end] == text[span.start : span.end]
            fix = removal_fix(span) if is_same else None
            yield decorator_repeated.at(span, message, related=related, fix=fix)

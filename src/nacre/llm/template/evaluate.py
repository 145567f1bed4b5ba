"""A template run on messages: statements one after another, every step counted."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import assert_never

from nacre.llm.template.limits import MAX_STEPS, MAX_TEXT
from nacre.llm.template.nodes import (
    Call,
    Conditional,
    Constant,
    DictLiteral,
    Expression,
    For,
    If,
    Jump,
    ListLiteral,
    Name,
    Operation,
    Output,
    Set,
    Slice,
    Statement,
    Subscript,
    Text,
)
from nacre.llm.template.operators import OPERATORS, item_of, part_of
from nacre.llm.template.problems import failure, limit, syntax
from nacre.llm.template.values import (
    FILTERS,
    FUNCTIONS,
    TESTS,
    UNDEFINED,
    LimitError,
    Namespace,
    Refused,
    Value,
    WrongTypeError,
    kind_of,
    method_of,
    require_bounded,
    written,
)

_ITEMS_A_STEP = 32

Scope = ChainMap[str, Value]


class _End(Enum):
    """Why a body stopped."""

    WHOLE = auto()
    BREAK = auto()
    CONTINUE = auto()


def run_template(statements: Sequence[Statement], variables: dict[str, Value]) -> str:
    """What a template writes; TemplateProblem where it cannot."""
    run = _Run()
    run.body(statements, ChainMap({}, variables))
    return "".join(run.parts)


class _Run:
    """Where a run stands: what it wrote, and how many steps it took."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._written = 0
        self._steps = 0

    def body(self, statements: Sequence[Statement], scope: Scope) -> _End:
        for statement in statements:
            end = self._statement(statement, scope)
            if end is not _End.WHOLE:
                return end
        return _End.WHOLE

    def _statement(self, statement: Statement, scope: Scope) -> _End:
        self._count(statement.line)
        match statement:
            case Text(text, line):
                self._write(text, line)
            case Output(value, line):
                found = self._value(value, scope)
                self._write(self._evaluate_guarded(lambda: written(found), line), line)
            case Set():
                self._set(statement, scope)
            case If():
                return self._if(statement, scope)
            case For():
                return self._for(statement, scope)
            case Jump(is_break):
                return _End.BREAK if is_break else _End.CONTINUE
            case _:
                assert_never(statement)
        return _End.WHOLE

    def _count(self, line: int, made: Value = None) -> None:
        """Another step; large values count for as many as they are large."""
        self._steps += 1 + (
            len(made) // _ITEMS_A_STEP if isinstance(made, str | list | dict) else 0
        )
        if self._steps > MAX_STEPS:
            raise limit(line, f"the template takes more than {MAX_STEPS:,} steps")

    def _write(self, text: str, line: int) -> None:
        self._written += len(text)
        if self._written > MAX_TEXT:
            raise limit(line, f"the template writes more than {MAX_TEXT:,} characters")
        self.parts.append(text)

    def _set(self, statement: Set, scope: Scope) -> None:
        if isinstance(statement.value, tuple):
            kept, self.parts = self.parts, []
            self.body(statement.value, scope)
            value, self.parts = "".join(self.parts), kept
        else:
            value = self._value(statement.value, scope)
        if statement.field is None:
            scope[statement.name] = value
            return
        owner = scope.get(statement.name)
        if not isinstance(owner, Namespace):
            raise failure(
                statement.line, f"`{statement.name}` is no namespace, whose fields are set"
            )
        owner.fields[statement.field] = value

    def _if(self, statement: If, scope: Scope) -> _End:
        for condition, body in statement.branches:
            if condition is None or self._value(condition, scope):
                return self.body(body, scope)
        return _End.WHOLE

    def _for(self, statement: For, scope: Scope) -> _End:
        values = self._value(statement.values, scope)
        if not isinstance(values, str | list | dict) and values is not UNDEFINED:
            raise failure(statement.line, f"a loop goes over {kind_of(values)}, expected a list")
        self._count(statement.line, values)
        rows = list(values) if isinstance(values, str | list | dict) else []
        if statement.condition is not None:
            condition = statement.condition
            rows = [r for r in rows if self._value(condition, self._row_scope(statement, r, scope))]
        if not rows:
            return self.body(statement.otherwise, scope)
        for at, row in enumerate(rows):
            inner = self._row_scope(statement, row, scope)
            inner["loop"] = _loop(at, rows)
            if self.body(statement.body, inner) is _End.BREAK:
                break
        return _End.WHOLE

    def _row_scope(self, statement: For, row: Value, scope: Scope) -> Scope:
        self._count(statement.line)
        inner = scope.new_child({})
        if len(statement.names) == 1:
            inner[statement.names[0]] = row
        elif isinstance(row, list) and len(row) == len(statement.names):
            inner.update(zip(statement.names, row, strict=True))
        else:
            message = f"{kind_of(row)} does not fit {len(statement.names)} names"
            raise failure(statement.line, message)
        return inner

    # Expressions

    def _value(self, node: Expression, scope: Scope) -> Value:
        self._count(node.line)
        match node:
            case Constant(value):
                return value
            case Name(name):
                return scope.get(name, UNDEFINED)
            case ListLiteral(items):
                return [self._value(item, scope) for item in items]
            case DictLiteral(pairs):
                return {self._key(k, scope): self._value(v, scope) for k, v in pairs}
            case Subscript(value, key, line):
                owner, place = self._value(value, scope), self._value(key, scope)
                return self._evaluate_guarded(lambda: item_of(owner, place), line)
            case Slice(value, bounds, line):
                owner = self._value(value, scope)
                found = [None if b is None else self._value(b, scope) for b in bounds]
                return self._evaluate_guarded(lambda: part_of(owner, found), line)
            case Call():
                return self._call(node, scope)
            case Operation():
                return self._operation(node, scope)
            case Conditional(condition, then, otherwise):
                if self._value(condition, scope):
                    return self._value(then, scope)
                return UNDEFINED if otherwise is None else self._value(otherwise, scope)
            case _:
                assert_never(node)

    def _key(self, node: Expression, scope: Scope) -> str | int | float | None:
        key = self._value(node, scope)
        if not isinstance(key, str | int | float | None):
            raise failure(node.line, f"{kind_of(key)} is no key")
        return key

    def _operation(self, node: Operation, scope: Scope) -> Value:
        first = self._value(node.operands[0], scope)
        if node.sign == "not":
            return not first
        if node.sign in ("and", "or"):
            is_decided = bool(first) == (node.sign == "or")
            return first if is_decided else self._value(node.operands[1], scope)
        rest = [self._value(operand, scope) for operand in node.operands[1:]]
        return self._evaluate_guarded(lambda: OPERATORS[node.sign](first, *rest), node.line)

    def _call(self, node: Call, scope: Scope) -> Value:
        arguments = [self._value(argument, scope) for argument in node.arguments]
        named = {name: self._value(value, scope) for name, value in node.named}
        if node.kind == "method":
            work = self._evaluate_guarded(lambda: method_of(arguments[0], node.name), node.line)
        else:
            table = {"function": FUNCTIONS, "filter": FILTERS, "test": TESTS}[node.kind]
            if node.name not in table:
                raise syntax(
                    node.line, f"there is no {node.kind} `{node.name}` of those that are run"
                )
            work = table[node.name]
        return self._evaluate_guarded(lambda: work(*arguments, **named), node.line)

    def _evaluate_guarded(self, work: Callable[[], Value], line: int) -> Value:
        """A value; what cannot be done is said with its line."""
        try:
            value = require_bounded(work())
        except WrongTypeError as problem:
            raise failure(line, str(problem)) from None
        except Refused as word:
            raise failure(line, f"the template refuses the messages: {word}") from None
        except LimitError as problem:
            raise limit(line, str(problem)) from None
        except (TypeError, ValueError) as problem:  # arguments that a function does not take
            raise failure(line, f"a call does not fit: {problem}") from None
        self._count(line, value)
        return value


def _loop(at: int, rows: Sequence[Value]) -> dict[str, Value]:
    """What a body knows of its loop."""
    count = len(rows)
    return {
        "index": at + 1,
        "index0": at,
        "revindex": count - at,
        "revindex0": count - at - 1,
        "first": at == 0,
        "last": at == count - 1,
        "length": count,
        "previtem": rows[at - 1] if at else UNDEFINED,
        "nextitem": rows[at + 1] if at + 1 < count else UNDEFINED,
    }

"""Statements of a program, and loops, which are read without recursion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nacre.base.diagnostics import Edit, Fix
from nacre.base.fixes import removal_fix
from nacre.base.suggest import did_you_mean
from nacre.nem.spec.limits import MAX_LOOP_DEPTH
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.constants import CST14
from nacre.nem.spec.rules.document import DOC06, DOC19, DOC20
from nacre.nem.spec.rules.tasks import SIG20
from nacre.nem.syntax.ast import (
    Broken,
    ConstDecl,
    Decorator,
    Expr,
    LetDecl,
    Loop,
    NameRef,
    Quant,
    RegionDecl,
    Stmt,
    TypeAttrs,
    Value,
)
from nacre.nem.syntax.buffers import read_buffer
from nacre.nem.syntax.cursor import (
    STATEMENT_WORDS,
    Cursor,
    Recover,
    assigns_statement,
    begins_statement,
    is_task_word,
)
from nacre.nem.syntax.expressions import OPERATORS, expression
from nacre.nem.syntax.regions import (
    begins_quantisation,
    begins_type,
    misspelt_region_help,
    quantisation,
    read_type,
    region_expression,
)
from nacre.nem.syntax.statement_forms import StatementForms
from nacre.nem.syntax.tasks import task, wait
from nacre.nem.syntax.values import decorator_list, value_of


@dataclass(slots=True)
class _OpenLoop:
    """A loop whose `endloop` has not been met."""

    start: int
    variable: NameRef | None
    first: Expr | None = None
    last: Expr | None = None
    decorators: tuple[Decorator, ...] = ()
    header_end: int = 0
    body: list[Stmt] = field(default_factory=list)


class StatementReader:
    """Collects statements; the open loops are a stack, so that depth costs no recursion."""

    def __init__(self, cursor: Cursor) -> None:
        self._c = cursor
        self._open: list[_OpenLoop] = []
        self._too_deep = 0
        self._top: list[Stmt] = []
        self._forms = StatementForms(cursor)

    @property
    def is_empty(self) -> bool:
        """Whether no statement has been read."""
        return not self._top and not self._open

    def read(self) -> None:
        """Read one statement, or recover behind one that cannot be read."""
        c = self._c
        if (filled := self._forms.fill()) is not None:
            self._add(filled)
            return
        c.begin_statement()
        word, start = c.texts[c.i], c.start()
        if word == ";":
            c.i += 1
        elif word == "endloop" and c.texts[c.i + 1] != "=":
            self._end_loop()
        elif word == "loop" and c.texts[c.i + 1] != "=":
            self._begin_loop()
        else:
            declares = _declared_name(c)
            begin, findings = c.i, len(c.findings)
            try:
                statement = _statement(c)
                self._add(statement)
                self._forms.note(statement, begin, findings)
            except Recover:
                c.skip_to_statement()
                known = declares is not None and declares.end <= c.last_end()
                self._add(Broken(start, c.last_end(), declares if known else None))

    def finish(self) -> tuple[Stmt, ...]:
        """The statements; loops that are still open are reported and closed."""
        c = self._c
        while self._open:
            loop = self._open[-1]
            name = f" over `{loop.variable.name}`" if loop.variable else ""
            end = loop.start + len("loop")
            c.report(DOC06, f"loop{name} has no `endloop`", loop.start, end)
            self._close(c.last_end())
        return tuple(self._top)

    def _add(self, statement: Stmt) -> None:
        (self._open[-1].body if self._open else self._top).append(statement)

    def _begin_loop(self) -> None:
        c = self._c
        if len(self._open) >= MAX_LOOP_DEPTH:
            if not self._too_deep:
                c.report_token(DOC20, f"more than {MAX_LOOP_DEPTH} loops inside each other")
            self._too_deep += 1
            c.i += 1
            self._skip_header()
            return
        loop = _OpenLoop(c.start(), _name_at(c, c.i + 1) if c.texts[c.i + 2] != "=" else None)
        try:
            _loop_header(c, loop)
        except Recover:
            self._skip_header()
        loop.header_end = c.last_end()
        self._open.append(loop)

    def _skip_header(self) -> None:
        """Go on behind the colon of a header that cannot be read, or at the next statement."""
        c = self._c
        at = c.i
        while c.texts[at] not in (":", "") and not (
            c.starts_line(at) or begins_statement(c.texts, at)
        ):
            at += 1
        if c.texts[at] == ":":
            c.i = at + 1
        else:
            c.skip_to_statement()

    def _end_loop(self) -> None:
        c = self._c
        if self._too_deep:
            self._too_deep -= 1
        elif self._open:
            self._close(c.start())
        else:
            c.report_token(DOC06, "`endloop` without a `loop`")
        c.i += 1

    def _close(self, endloop: int) -> None:
        loop = self._open.pop()
        end = min(endloop + len("endloop"), len(self._c.source.text))
        self._add(
            Loop(
                loop.start,
                end,
                loop.variable,
                loop.first,
                loop.last,
                loop.decorators,
                tuple(loop.body),
                loop.header_end,
                endloop,
            )
        )


def _name_at(c: Cursor, i: int) -> NameRef | None:
    text = c.texts[i]
    return NameRef(c.starts[i], c.starts[i] + len(text), text) if text.isidentifier() else None


def _declared_name(c: Cursor) -> NameRef | None:
    """What the statement at hand would declare."""
    if c.texts[c.i + 1] == "=":
        return _name_at(c, c.i)
    # `cosnt X = 1`, `bufer B : L2`: a misspelt word declares what the right one would.
    word, mark = c.texts[c.i], c.texts[c.i + 2]
    declares = word in ("buffer", "let", "const") or (word.isidentifier() and mark in ("=", ":"))
    return _name_at(c, c.i + 1) if declares else None


def _loop_header(c: Cursor, loop: _OpenLoop) -> None:
    c.i += 1
    loop.variable = c.reference("a loop variable after `loop`")
    c.expect("in", "the loop variable")
    c.expect("[")
    loop.first = expression(c)
    c.expect("..", "the first bound")
    loop.last = expression(c)
    c.expect("]", "the last bound")
    loop.decorators = decorator_list(c)
    c.expect(":", "the loop header")


def _statement(c: Cursor) -> Stmt:
    word = c.texts[c.i]
    if c.texts[c.i + 1] == "=":
        return _assignment(c)
    reader = _STATEMENTS.get(word)
    if reader is not None:
        return reader(c)
    if is_task_word(word) or word.partition(".")[0] in OPCODES:
        return task(c, None)
    near = did_you_mean(word, STATEMENT_WORDS) if word.isidentifier() else None
    fix = c.respelling_fix(STATEMENT_WORDS) if word.isidentifier() else None
    return c.fail_expected("a statement", help=near or _continuation_help(word), fix=fix)


def _continuation_help(word: str) -> str | None:
    if word == "/":
        return "comments begin with `#`"
    if word in OPERATORS or word in (",", ")", "]"):
        return "the statement before it ended here; is a parenthesis or a comma missing?"
    if word == "@":
        return "decorators stand at the end of the statement that they belong to"
    return None


def _assignment(c: Cursor) -> Stmt:
    value = c.texts[c.i + 2]
    name = c.name("a name")
    c.i += 1
    if value == "region" and c.texts[c.i + 1] == "(":
        region = region_expression(c)
        decorators = decorator_list(c)
        return RegionDecl(name.start, c.last_end(), name, region, decorators)
    if value == "wait" and c.texts[c.i + 1] == "(":
        help_ = f"write `wait(...)` without `{name.name} =`"
        fix = Fix(help_, (Edit(c.source.span(name.start, c.start()), ""),))
        c.report(SIG20, "`wait` yields no token", name.start, name.end, help=help_, fix=fix)
        c.i += 1
        return Broken(name.start, wait(c, name.start).end, name)
    if is_task_word(value) or value.partition(".")[0] in OPCODES:
        return task(c, name)
    if name.name == "deps":
        c.i -= 2
        c.fail(DOC19, "`deps` stands outside the task that it belongs to",
               help="put it inside the parentheses of a transfer or store, and before the "
               "decorators of a compute task")  # fmt: skip
    return c.fail(
        DOC19,
        f"expected `region(...)` or a task after `{name.name} =`, found {c.describe()}",
        help=misspelt_region_help(c)
        or f"write `const {name.name} = ...` for an integer, `let {name.name} = ...` for any "
        "other value; attributes of a task stand before its decorators",
    )


def _const(c: Cursor) -> ConstDecl:
    start = c.start()
    c.i += 1
    name = c.name("a constant's name")
    if c.texts[c.i] == ":":
        colon = c.start()
        c.i += 1
        if c.texts[c.i] != "=":
            c.name("a type")
        c.report(CST14, f"constant `{name.name}` has a type annotation", colon, c.last_end(),
                 help="take it out: constants are integers",
                 fix=removal_fix(c.source.span(colon, c.last_end())))  # fmt: skip
    c.expect("=", "the constant's name")
    value = value_of(c)
    return ConstDecl(start, value.end, name, value)


def _let(c: Cursor) -> LetDecl:
    start = c.start()
    c.i += 1
    name = c.name("a name after `let`")
    c.expect("=", "the name")
    value = _read_let_value(c)
    decorators = decorator_list(c)
    return LetDecl(start, c.last_end(), name, value, decorators)


def _read_let_value(c: Cursor) -> Value | Quant | TypeAttrs:
    """What a `let` names: a whole type, a quantisation or any value."""
    if begins_type(c) and not assigns_statement(c.texts, c.i):
        return read_type(c)
    if help_ := misspelt_region_help(c):
        c.fail_expected("a value", help=help_)
    return quantisation(c) if begins_quantisation(c) else value_of(c)


def _wait(c: Cursor) -> Stmt:
    start = c.start()
    c.i += 1
    return wait(c, start)


_STATEMENTS: dict[str, Callable[[Cursor], Stmt]] = {
    "const": _const,
    "let": _let,
    "wait": _wait,
    "buffer": read_buffer,
}

"""Tasks: transfers and stores, waits, compute."""

from __future__ import annotations

from nacre.base.diagnostics import Edit, Fix
from nacre.base.excerpt import backquote
from nacre.base.fixes import (
    item_removal_fix,
    removal_fix,
    reordering_fix,
    replacement_fix,
    respelling_fix,
)
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.document import DOC19
from nacre.nem.spec.rules.tasks import DOC07, DOC10, DOC11, DOC12, DOC17, DOC18, DOC21, DOC23, SIG20
from nacre.nem.syntax.ast import (
    Attribute,
    Broken,
    Compute,
    Copy,
    Decorator,
    NameRef,
    Operand,
    Stmt,
    Wait,
)
from nacre.nem.syntax.cursor import Cursor, assigns_statement
from nacre.nem.syntax.regions import misspelt_region_help, region_expression
from nacre.nem.syntax.values import decorator_list, value_of

_COPIES = frozenset({"transfer", "store"})
_ARGUMENT_ORDER = {"dst": 0, "src": 1, "deps": 2}
_FORMS = ("async", "sync")


def task(c: Cursor, token: NameRef | None) -> Stmt:
    """A task after its optional `token =`; the opcode is at hand."""
    start = c.start() if token is None else token.start
    op, is_sync = _operation(c)
    if op.name in _COPIES:
        return _copy(c, start, token, op, is_sync)
    if op.name == "wait":
        form = c.source.span(op.end, c.last_end())
        fix = Fix("write `wait(...)`", (Edit(form, ""), *_token_removal(c, token, op.start)))
        c.report(SIG20, "`wait` has no form", op.start, op.end, help="write `wait(...)`", fix=fix)
        waited = wait(c, start)
        return waited if token is None else Broken(start, waited.end, token)
    if op.name not in OPCODES:
        c.report(
            DOC12,
            f"unknown opcode {backquote(op.name)}",
            op.start,
            op.end,
            help=did_you_mean(op.name, OPCODES),
            fix=respelling_fix(c.span(op), op.name, OPCODES),
        )
    return _compute(c, start, token, op, is_sync)


def _token_removal(c: Cursor, token: NameRef | None, end: int) -> tuple[Edit, ...]:
    """What takes `token =` out."""
    return () if token is None else (Edit(c.source.span(token.start, end), ""),)


def _operation(c: Cursor) -> tuple[NameRef, bool]:
    text = c.texts[c.i]
    start = c.start()
    name, dot, form = text.rpartition(".")
    if not dot or form not in ("async", "sync"):
        name = name if dot else text
        near = did_you_mean(form, _FORMS) if dot else None
        message = f"task {backquote(text)} needs the form `.async` or `.sync`"
        span = c.source.span(start + len(text) - len(form), start + len(text))
        fix = respelling_fix(span, form, _FORMS) if dot else None
        help_ = near or f"write `{name}.async` or `{name}.sync`"
        c.report_token(DOC11, message, help=help_, fix=fix)
    c.i += 1
    return NameRef(start, start + len(name), name), form == "sync"


def wait(c: Cursor, start: int) -> Wait:
    """`( id_list )`; the word `wait` has been read."""
    c.expect("(", "`wait`")
    tokens = _tokens(c, ")", "wait()")
    waited = Wait(start, c.last_end(), tokens)
    decorators = decorator_list(c)
    if decorators:
        first, last = decorators[0], decorators[-1]
        fix = Fix("take them out", tuple(_decorator_removal(c, one) for one in decorators))
        help_ = "write `wait(...)` alone: decorators belong on the tasks that it waits for"
        c.report(SIG20, "`wait` has no decorators", first.start, last.end, help=help_, fix=fix)
    return waited


def _decorator_removal(c: Cursor, decorator: Decorator) -> Edit:
    """What takes a decorator out, and the blanks before it."""
    before = c.source.text[: decorator.start]
    return Edit(c.source.span(len(before.rstrip(" \t")), decorator.end), "")


def _tokens(c: Cursor, closing: str, empty: str) -> tuple[NameRef, ...]:
    """A list of tokens up to its closing mark, which is stepped over."""
    texts = c.texts
    if texts[c.i] == closing:
        start = c.starts[c.i - 1]
        c.i += 1
        message = f"`{empty}` names no token"
        help_ = "name at least one token, or leave it out"
        c.report(DOC07, message, start, c.last_end(), help=help_)
        return ()
    names = [c.reference("a token's name")]
    while texts[c.i] == ",":
        c.i += 1
        names.append(c.reference("a token's name"))
    if texts[c.i] != closing:
        c.fail_expected(f"`,` or `{closing}`")
    c.i += 1
    return tuple(names)


def _deps(c: Cursor) -> tuple[NameRef, ...]:
    c.expect("[", "`deps=`")
    return _tokens(c, "]", "deps=[]")


def _operand(c: Cursor) -> Operand:
    start = c.start()
    if c.texts[c.i] == "region" and c.texts[c.i + 1] == "(":
        region = region_expression(c)
        decorators = decorator_list(c)
        return Operand(start, c.last_end(), region, decorators)
    what = "an operand: a region's name or `region(...)`"
    if help_ := misspelt_region_help(c):
        c.fail_expected(what, help=help_)
    name = c.reference(what)
    decorators = decorator_list(c)
    return Operand(start, c.last_end() if decorators else name.end, name, decorators)


def _copy(c: Cursor, start: int, token: NameRef | None, op: NameRef, is_sync: bool) -> Copy:
    c.expect("(", f"`{op.name}.{'sync' if is_sync else 'async'}`")
    operands: dict[str, Operand] = {}
    deps: tuple[NameRef, ...] | None = None
    written: list[tuple[str, Span]] = []
    while c.texts[c.i] != ")":
        word, begun = c.texts[c.i], c.start()
        if word not in _ARGUMENT_ORDER or c.texts[c.i + 1] != "=":
            _wrong_argument(c, op)
        c.i += 2
        if word == "deps":
            deps = _deps(c)
        else:
            operands[word] = _operand(c)
        span = c.source.span(begun, c.last_end())
        before = next((s for w, s in written if w == word), None)
        if before is not None:
            fix = item_removal_fix(span) if have_same_text(before, span) else None
            message = f"`{word}` is given twice"
            c.report(DOC17, message, begun, begun + len(word), fix=fix)
        written.append((word, span))
        if not c.comma(")"):
            break
    if c.texts[c.i] != ")":
        c.fail_expected("`,` or `)`")
    c.i += 1
    _check_arguments(c, op, operands, written)
    decorators = decorator_list(c)
    dst, src = operands.get("dst"), operands.get("src")
    return Copy(start, c.last_end(), token, op, is_sync, dst, src, deps or (), decorators)


def _wrong_argument(c: Cursor, op: NameRef) -> None:
    word = c.texts[c.i]
    if word.isidentifier() and c.texts[c.i + 1] == "=":
        near = did_you_mean(word, _ARGUMENT_ORDER)
        c.fail(DOC18, f"`{op.name}` has no argument {backquote(word)}",
               help=near or "the arguments are `dst`, `src` and `deps`",
               fix=c.respelling_fix(_ARGUMENT_ORDER))  # fmt: skip
    c.fail(DOC18, f"expected `dst=`, `src=` or `deps=`, found {c.describe()}",
           help=f"arguments are named: `{op.name}.async(dst=..., src=...)`")  # fmt: skip


def _check_arguments(
    c: Cursor, op: NameRef, operands: dict[str, Operand], written: list[tuple[str, Span]]
) -> None:
    missing = [f"`{name}`" for name in ("dst", "src") if name not in operands]
    if missing:
        message = f"`{op.name}` lacks {' and '.join(missing)}"
        c.report(DOC18, message, op.start, op.end, help="give both `dst=...` and `src=...`")
        return
    ranks = [_ARGUMENT_ORDER[word] for word, _ in written]
    late = next((i for i in range(1, len(ranks)) if max(ranks[:i]) > ranks[i]), None)
    if late is not None:
        message = "arguments stand in another order than `dst`, `src`, `deps`"
        start = written[late][1].start
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        fix = reordering_fix([span for _, span in written], order)
        c.report(DOC23, message, start, start + len("dst"), fix=fix,
                 help="`nacre fmt` restores the order")  # fmt: skip


def have_same_text(first: Span, second: Span) -> bool:
    """Whether two places say the same, to the letter."""
    text = first.source.text
    return text[first.start : first.end] == text[second.start : second.end]


def _compute(c: Cursor, start: int, token: NameRef | None, op: NameRef, is_sync: bool) -> Compute:
    if c.texts[c.i] == "(":
        c.fail(
            DOC10,
            f"`{op.name}` is not called with parentheses",
            help=f"write `{op.name}.async in ... out ...` and then attributes as `name=value`",
        )
    inputs = _operand_list(c, "in", "IN", op)
    outputs = _operand_list(c, "out", "OUT", op)
    deps, attributes = _attributes(c)
    decorators = decorator_list(c)
    return Compute(
        start, c.last_end(), token, op, is_sync, inputs, outputs, deps, attributes, decorators
    )


def _operand_list(c: Cursor, word: str, upper: str, op: NameRef) -> tuple[Operand, ...]:
    text = c.texts[c.i]
    if text == upper:
        fix = replacement_fix(c.source.span(c.start(), c.start() + len(upper)), word)
        message = f"`{upper}` is written in upper case"
        c.report_token(DOC21, message, help=f"write `{word}`", fix=fix)
    elif text != word:
        what = "its `in` list" if word == "in" else "`out` after the `in` list"
        c.fail(DOC10, f"`{op.name}` needs {what}, found {c.describe()}",
               help=f"write `{op.name}.async in ... out ...`")  # fmt: skip
    c.i += 1
    if word == "in" and _is_out_word(c.texts[c.i]) and not _list_goes_on(c.texts[c.i + 1]):
        c.fail(DOC10, f"the `in` list of `{op.name}` is empty")
    if word == "out" and (not c.texts[c.i].isidentifier() or _begins_next(c)):
        c.fail(DOC10, f"the `out` list of `{op.name}` is empty, found {c.describe()}")
    operands = [_operand(c)]
    while c.texts[c.i] == ",":
        c.i += 1
        operands.append(_operand(c))
    return tuple(operands)


def _begins_next(c: Cursor) -> bool:
    """Whether the next part has begun, so that the word at hand is no name of an operand."""
    return c.texts[c.i + 1] == "=" or c.at_next_statement()


def _is_out_word(text: str) -> bool:
    return text == "out" or text == "OUT"


def _list_goes_on(following: str) -> bool:
    """Whether a first input called `out` is one: the list goes on, or the outputs follow."""
    return following == "," or following == "@" or _is_out_word(following)


def _attributes(c: Cursor) -> tuple[tuple[NameRef, ...], tuple[Attribute, ...]]:
    texts = c.texts
    deps: tuple[NameRef, ...] | None = None
    attributes: dict[str, Attribute] = {}
    written: dict[str, Span] = {}
    while texts[c.i + 1] == "=" and not assigns_statement(texts, c.i):
        word, begun = texts[c.i], c.start()
        if word == "deps":
            c.i += 2
            deps = _deps(c)
            _report_duplicate(c, written, word, begun)
            continue
        name = c.name("an attribute")
        c.i += 1
        value = value_of(c)
        _report_duplicate(c, written, word, begun)
        attributes[word] = Attribute(name.start, value.end, name, value)
    _reject_comma(c)
    return deps or (), tuple(attributes.values())


def _report_duplicate(c: Cursor, written: dict[str, Span], word: str, begun: int) -> None:
    """Report an attribute that was there before; one that says the same can be taken out."""
    span = c.source.span(begun, c.last_end())
    before = written.setdefault(word, span)
    if before is not span:
        fix = removal_fix(span) if have_same_text(before, span) else None
        what = "`deps`" if word == "deps" else f"attribute {backquote(word)}"
        c.report(DOC17, f"{what} is given twice", begun, begun + len(word), fix=fix)


def _reject_comma(c: Cursor) -> None:
    texts = c.texts
    if texts[c.i] == "," and texts[c.i + 2] == "=":
        span = c.source.span(c.start(), c.start() + 1)
        c.fail(DOC19, "attributes of a compute task are separated by blanks, found `,`",
               help="take the comma out",
               fix=Fix("take the comma out", (Edit(span, " "),)))  # fmt: skip

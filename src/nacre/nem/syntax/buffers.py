"""Declarations of buffers: level, size and alignment."""

from __future__ import annotations

from nacre.base.excerpt import backquote
from nacre.base.fixes import item_removal_fix, respelling_fix
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.nem.spec.rules.declarations import DOC13, DOC14, DOC15
from nacre.nem.syntax.ast import BufferDecl, IntLit, MemLevel, NameRef, Value
from nacre.nem.syntax.cursor import Cursor
from nacre.nem.syntax.expressions import expression, integer_literal, is_operator_at
from nacre.nem.syntax.tasks import have_same_text
from nacre.nem.syntax.values import decorator_list, value_of

_LEVELS = ("DDR", "L2", "L1")
_PROPERTIES = ("size", "align")


def read_buffer(c: Cursor) -> BufferDecl:
    """A declaration of a buffer: its name, its level, its size and its alignment."""
    start = c.start()
    c.i += 1
    name = c.name("a buffer's name")
    c.expect(":", "the buffer's name")
    level = _read_level(c)
    c.expect("(", "the memory level")
    size, align = _read_properties(c, name)
    decorators = decorator_list(c)
    return BufferDecl(start, c.last_end(), name, level, size, align, decorators)


def _read_level(c: Cursor) -> MemLevel | None:
    start = c.start()
    name = c.name("a memory level")
    index = None
    if c.texts[c.i] == "[":
        c.i += 1
        index = expression(c)
        c.expect("]")
    fix = None
    if name.name not in _LEVELS:
        fix = respelling_fix(c.span(name), name.name, _LEVELS)
        message = f"{backquote(name.name)} is not a memory level"
        help_ = did_you_mean(name.name, _LEVELS) or "the levels are `DDR`, `L2`, `L1` and `L1[k]`"
    elif index is not None and name.name != "L1":
        message = f"`{name.name}` is shared by all engines and takes no index"
        help_ = f"write `{name.name}`"
    else:
        return MemLevel(start, c.last_end(), name.name, index)
    c.report(DOC13, message, start, c.last_end(), help=help_, fix=fix)
    return None


def _read_properties(c: Cursor, buffer: NameRef) -> tuple[Value | None, IntLit | None]:
    """`size` and `align` in any order, up to and with the closing parenthesis."""
    values: dict[str, Value | None] = {}
    written: dict[str, Span] = {}
    while c.texts[c.i] != ")":
        key = c.name("`size=` or `align=`")
        c.expect("=", f"`{key.name}`")
        if key.name == "align":
            values["align"] = _read_alignment(c)
        else:
            values[key.name] = value_of(c)
        span = c.source.span(key.start, c.last_end())
        before = written.setdefault(key.name, span)
        if before is not span:
            message = f"`{key.name}` of buffer `{buffer.name}` is given twice"
            fix = item_removal_fix(span) if have_same_text(before, span) else None
            c.report(DOC15, message, key.start, key.end, fix=fix)
        if key.name not in ("size", "align"):
            near = did_you_mean(key.name, _PROPERTIES)
            fix = respelling_fix(c.span(key), key.name, _PROPERTIES)
            c.report(DOC14, f"a buffer has no property {backquote(key.name)}", key.start, key.end,
                     help=near or "the properties are `size` and `align`", fix=fix)  # fmt: skip
        if not c.comma(")"):
            break
    if c.texts[c.i] != ")":
        c.fail_expected("`,` or `)`")
    c.i += 1
    if "size" not in values and values.keys() <= {"align"}:  # else it may be there, misspelt
        c.report(DOC15, f"buffer `{buffer.name}` has no size", buffer.start, buffer.end,
                 help="add `size=` and the number of bytes")  # fmt: skip
    align = values.get("align")
    return values.get("size"), align if isinstance(align, IntLit) else None


def _read_alignment(c: Cursor) -> IntLit | None:
    text = c.texts[c.i]
    if text.isdigit() and not is_operator_at(c.texts, c.i + 1):
        return integer_literal(c, "`align`")
    value = value_of(c)
    written = backquote(c.source.text[value.start : value.end])
    c.report(
        DOC14,
        f"`align` takes an integer literal, found {written}",
        value.start,
        value.end,
        help="write the number itself",
    )
    return None

"""Regions, their type attributes, and quantisation descriptors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from nacre.base.diagnostics import Edit, Fix
from nacre.base.elements import ELEMENT_TYPES, OTHER_SPELLINGS
from nacre.base.excerpt import backquote
from nacre.base.fixes import item_removal_fix, reordering_fix, replacement_fix, respelling_fix
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean, nearest
from nacre.nem.spec.rules.declarations import DOC08, DOC09, DOC16, DOC22
from nacre.nem.spec.rules.document import DOC19
from nacre.nem.syntax.ast import (
    Compressed,
    IntLit,
    ListLit,
    NameRef,
    Quant,
    RegionExpr,
    TypeAttrs,
    Value,
)
from nacre.nem.syntax.cursor import Cursor, assigns_statement
from nacre.nem.syntax.expressions import expression, integer_literal, list_of, number_list

_RANK = {"type": 0, "elem": 0, "shape": 1, "layout": 2, "strides": 2, "quant": 3}
# What may follow a region behind a comma: the next type attribute or argument.
_OTHER_WORDS = frozenset({*_RANK, "compressed", "dst", "src", "deps"})
_COMPRESSION_PARTS = {"palette": ("bits", "tables"), "sparse": ()}
_NAMED_HELP = "only `quant` may follow: write `type=T` or `type=T, quant=...`"
_ORDER_HELP = "write `elem=..., shape=[...], layout=...` (or `strides=[...]`), then `quant=...`"


def misspelt_region_help(c: Cursor) -> str | None:
    """What to write where the word at hand is `region` with a slip, called with a buffer."""
    word = c.texts[c.i]
    is_other = c.texts[c.i + 1] == "(" and word != "region"
    return did_you_mean(word, ("region",)) if is_other else None


def region_expression(c: Cursor) -> RegionExpr:
    """`region(buffer, offset, extent)` with its type attributes, outside or inside."""
    start = c.start()
    c.i += 1
    c.enter_nesting()
    c.expect("(")
    buffer = c.reference("a buffer's name")
    c.expect(",", "the buffer")
    offset = expression(c)
    c.expect(",", "the offset")
    extent = expression(c)
    inside = None
    if c.texts[c.i] == ",":
        c.i += 1
        inside = _attributes_inside(c, extent.end)
    c.expect(")")
    c.depth -= 1
    attributes = type_attributes(c)
    if inside is not None and attributes is not None:
        c.report(DOC08, "type attributes are given twice", attributes.start, attributes.end)
    type_ = inside if inside is not None else attributes
    return RegionExpr(start, c.last_end(), buffer, offset, extent, type_)


def _attributes_inside(c: Cursor, extent_end: int) -> TypeAttrs | Compressed:
    if not begins_type(c):
        c.fail_expected("type attributes or `)` after the extent")
    attributes = _region_type(c)
    c.report(
        DOC22,
        "type attributes stand inside `region( )`",
        attributes.start,
        attributes.end,
        help="move them behind the closing parenthesis, or run `nacre fmt`",
        fix=_move_behind_fix(c, extent_end, attributes) if c.texts[c.i] == ")" else None,
    )
    return attributes


def _move_behind_fix(c: Cursor, extent_end: int, attributes: TypeAttrs | Compressed) -> Fix:
    text, behind = c.source.text[attributes.start : attributes.end], c.start() + 1
    removal = Edit(c.source.span(extent_end, attributes.end), "")
    return Fix(
        "move them behind the parenthesis",
        (removal, Edit(c.source.span(behind, behind), f" {text}")),
    )


def type_attributes(c: Cursor) -> TypeAttrs | Compressed | None:
    """The type attributes that follow a region, or None where there are none."""
    texts, i = c.texts, c.i
    # `strides` is an attribute of convolutions as well; it never comes first in a type.
    if not begins_type(c) or texts[i] == "strides" or assigns_statement(texts, i):
        return None
    if texts[i] == "type" and not texts[i + 2].isidentifier():  # an attribute of someone's opcode
        return None
    return _region_type(c)


def _region_type(c: Cursor) -> TypeAttrs | Compressed:
    """Type attributes, and how the region holds them compressed."""
    plain = read_type(c)
    if c.texts[c.i] != "," or c.texts[c.i + 1] != "compressed" or c.texts[c.i + 2] != "=":
        return plain
    c.i += 3
    form = c.texts[c.i]
    if form not in _COMPRESSION_PARTS:
        fix = c.respelling_fix(_COMPRESSION_PARTS)
        c.fail_expected(
            "`palette` or `sparse`", help=did_you_mean(form, _COMPRESSION_PARTS), fix=fix
        )
    c.i += 1
    parts = _compression_parts(c, _COMPRESSION_PARTS[form])
    return Compressed(
        plain.start, c.last_end(), plain, form, parts.get("bits"), parts.get("tables")
    )


def _named_parts(c: Cursor, expected: Sequence[str], between: str) -> Iterator[str]:
    """`NAME=` of each part of a list with commas; who asks reads its value before the next."""
    given: set[str] = set()
    while True:
        word = c.texts[c.i]
        if word not in expected or c.texts[c.i + 1] != "=":
            left = [name for name in expected if name not in given]
            fix = c.respelling_fix(left) if c.texts[c.i + 1] == "=" else None
            c.fail_expected(between.join(f"`{name}=`" for name in left) or "`)`", fix=fix)
        if word in given:
            c.fail(DOC19, f"`{word}` is given twice")
        given.add(word)
        c.i += 2
        yield word
        if c.texts[c.i] != ",":
            return
        c.i += 1


def _compression_parts(c: Cursor, expected: tuple[str, ...]) -> dict[str, IntLit | None]:
    """`(bits=4, tables=2)`: the first is needed; nothing where a form has no parts."""
    parts: dict[str, IntLit | None] = {}
    if not expected:
        return parts
    c.expect("(")
    for word in _named_parts(c, expected, " or "):
        parts[word] = integer_literal(c, f"`{word}`")
    if expected[0] not in parts:
        c.fail_expected(f"`{expected[0]}=`")
    c.expect(")")
    return parts


def begins_type(c: Cursor) -> bool:
    """Whether a type attribute stands here: `elem=` or another."""
    return c.texts[c.i] in _RANK and c.texts[c.i + 1] == "="


def read_type(c: Cursor) -> TypeAttrs:
    """Type attributes, or the name of a type: what stands behind a region or a `let`."""
    texts = c.texts
    start = c.start()
    parts: dict[str, NameRef | ListLit | Quant | None] = {}
    rank = -1
    misplaced: tuple[int, int] | None = None  # the first one that does not follow on
    written: list[tuple[str, Span]] = []
    while True:
        word, at = texts[c.i], c.start()
        follows = _RANK[word] > rank
        rank = _RANK[word]
        c.i += 2
        parts[word] = _PARSE[word](c)
        written.append((word, c.source.span(at, c.last_end())))
        if not follows and misplaced is None:
            misplaced = at, c.last_end()
        _skip_misspelt(c, parts)
        following = texts[c.i + 1]
        if texts[c.i] != "," or following not in _RANK or texts[c.i + 2] != "=":
            break
        c.i += 1
    fix = None if misplaced is None else _order_fix(written, misplaced)
    _check_parts(c, start, parts, misplaced, fix)
    return TypeAttrs(
        start,
        c.last_end(),
        parts.get("elem"),  # type: ignore[arg-type] # each part's parser gives its type
        parts.get("shape"),  # type: ignore[arg-type]
        parts.get("layout"),  # type: ignore[arg-type]
        parts.get("strides"),  # type: ignore[arg-type]
        parts.get("quant"),  # type: ignore[arg-type]
        parts.get("type"),  # type: ignore[arg-type]
    )


def _skip_misspelt(c: Cursor, parts: dict[str, NameRef | ListLit | Quant | None]) -> None:
    """Take a word that is nearly a type attribute for that attribute, and say so."""
    texts = c.texts
    while texts[c.i] == "," and texts[c.i + 2] == "=" and texts[c.i + 1] not in _OTHER_WORDS:
        word = texts[c.i + 1]
        known = ["quant"] if "type" in parts else [n for n in _RANK if n not in (*parts, "type")]
        meant = nearest(word, known)
        if meant is None:
            return
        start = c.starts[c.i + 1]
        message, help_ = f"{backquote(word)} is not a type attribute", f"did you mean `{meant}`?"
        fix = respelling_fix(c.source.span(start, start + len(word)), word, known)
        c.report(DOC08, message, start, start + len(word), help=help_, fix=fix)
        c.i += 3
        _scalar_or_list(c)
        parts[meant] = None


def _order_fix(written: list[tuple[str, Span]], misplaced: tuple[int, int]) -> Fix | None:
    """Put the attributes in order; of two that say the same, take the second out."""
    words = [word for word, _ in written]
    if len(set(words)) == len(words):
        order = sorted(range(len(words)), key=lambda i: _RANK[words[i]])
        return reordering_fix([span for _, span in written], order)
    word, span = next((w, s) for w, s in written if s.start == misplaced[0])
    first = next(s for w, s in written if w == word)
    text = span.source.text
    is_same = text[first.start : first.end] == text[span.start : span.end]
    return item_removal_fix(span) if is_same and first is not span else None


def _check_parts(
    c: Cursor,
    start: int,
    parts: Mapping[str, object],
    misplaced: tuple[int, int] | None,
    fix: Fix | None,
) -> None:
    if "type" in parts:
        _check_parts_beside_name(c, start, parts, misplaced, fix)
        return
    missing = [name for name in ("elem", "shape") if name not in parts]
    if "layout" not in parts and "strides" not in parts:
        missing.append("layout` or `strides")
    if missing:
        text = ", ".join(f"`{name}`" for name in missing)
        c.report(DOC08, f"type attributes lack {text}", start, c.last_end(), help=_ORDER_HELP)
    elif any(isinstance(part, ListLit) and not part.items for part in parts.values()):
        message = "a shape has at least one dimension"
        c.report(DOC08, message, start, c.last_end(), help="a single element has `shape=[1]`")
    elif misplaced is None:
        return
    elif "layout" in parts and "strides" in parts:
        message = "a region has `layout` or `strides`, not both"
        c.report(DOC09, message, *misplaced, help="`layout` means dense strides")
    else:
        message = "type attributes are out of order or given twice"
        c.report(DOC08, message, *misplaced, help=_ORDER_HELP, fix=fix)


def _check_parts_beside_name(
    c: Cursor,
    start: int,
    parts: Mapping[str, object],
    misplaced: tuple[int, int] | None,
    fix: Fix | None,
) -> None:
    beside = ", ".join(f"`{word}`" for word in parts if word not in ("type", "quant"))
    if beside:
        message = f"`type` names a whole type, but {beside} stands beside it"
        c.report(DOC08, message, start, c.last_end(), help=_NAMED_HELP)
    elif misplaced is not None:
        message = "type attributes are out of order or given twice"
        c.report(DOC08, message, *misplaced, help=_NAMED_HELP, fix=fix)


def element_type(c: Cursor) -> NameRef | None:
    """One of the ten element types; another name is reported and dropped."""
    name = c.reference("an element type")
    if name.name in ELEMENT_TYPES:
        return name
    c.report(
        DOC16,
        f"{backquote(name.name)} is not an element type",
        name.start,
        name.end,
        help=f"the element types are {', '.join(ELEMENT_TYPES)}",
        fix=element_respelling_fix(c.span(name), name.name),
    )
    return None


def element_respelling_fix(span: Span, name: str, others: Iterable[str] = ()) -> Fix | None:
    """Write the element type that was meant, also where it is called as elsewhere: `int8`."""
    meant = OTHER_SPELLINGS.get(name.lower())
    if meant is not None:
        return replacement_fix(span, meant)
    return respelling_fix(span, name, [*ELEMENT_TYPES, *others])


def _layout(c: Cursor) -> NameRef:
    return c.reference("a layout such as `NHWC`")


def _scalar_or_list(c: Cursor) -> Value:
    return list_of(c, expression) if c.texts[c.i] == "[" else expression(c)


_QUANT_PARTS = {
    "per_tensor": ("scale", "zero_point"),
    "per_channel": ("axis", "scales", "zero_points"),
    "per_group": ("axis", "group_size", "scales", "zero_points"),
}


def _type_name(c: Cursor) -> NameRef:
    return c.reference("a type's name")


def _named_element(c: Cursor) -> NameRef:
    """An element type, or the name of a `let` that stands for one: that is looked up later."""
    return c.reference("an element type")


def _named_quant(c: Cursor) -> Quant | NameRef:
    """A quantisation descriptor, or the name of a `let` that stands for one."""
    word = c.texts[c.i]
    if c.texts[c.i + 1] == "(" or word in _QUANT_PARTS or not word.isidentifier():
        return quantisation(c)
    return c.reference("a quantisation")


def begins_quantisation(c: Cursor) -> bool:
    """Whether `per_tensor(` or the like stands here, well spelt or nearly so."""
    word = c.texts[c.i]
    return c.texts[c.i + 1] == "(" and (word in _QUANT_PARTS or bool(nearest(word, _QUANT_PARTS)))


def quantisation(c: Cursor) -> Quant:
    """`per_tensor(...)`, `per_channel(...)` or `per_group(...)`."""
    form = c.reference("`per_tensor`, `per_channel` or `per_group`")
    expected = _QUANT_PARTS.get(form.name)
    if expected is None:
        help_ = did_you_mean(form.name, _QUANT_PARTS)
        c.i -= 1
        c.fail_expected("`per_tensor`, `per_channel` or `per_group`", help=help_,
                        fix=c.respelling_fix(_QUANT_PARTS))  # fmt: skip
    c.expect("(")
    parts: dict[str, Value | None] = {}
    for word in _named_parts(c, expected, ", "):
        is_literal = word in ("axis", "group_size")
        parts[word] = integer_literal(c, f"`{word}`") if is_literal else _scalar_or_list(c)
    absent = [name for name in expected if name not in parts]
    if absent:
        c.fail_expected(" and ".join(f"`{name}=`" for name in absent))
    c.expect(")")
    axis, group = parts.get("axis"), parts.get("group_size")
    return Quant(
        form.start,
        c.last_end(),
        form.name,
        axis if isinstance(axis, IntLit) else None,
        group if isinstance(group, IntLit) else None,
        parts.get("scales", parts.get("scale")),
        parts.get("zero_points", parts.get("zero_point")),
    )


_PARSE = {
    "type": _type_name,
    "elem": _named_element,
    "shape": number_list,
    "layout": _layout,
    "strides": number_list,
    "quant": _named_quant,
}

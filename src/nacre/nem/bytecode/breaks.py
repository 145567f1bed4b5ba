"""Where statements of several lines are broken: as `syntax/layout.py` does it, by widths alone.

Places are counted as if every statement stood on one line and no character between statements. A
break is where a line begins there; the blank before it, where there is one, is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nacre.nem.bytecode.batches import Batch, Children
from nacre.nem.bytecode.kinds import CODES
from nacre.nem.syntax import ast
from nacre.nem.syntax.layout import INDENT, WIDTH


class Break(NamedTuple):
    """A line that begins inside a statement."""

    start: int
    indent: int
    drops_blank: bool
    opens: bool = False  # whether the line before it opened a block
    closes: bool = False


class Place(NamedTuple):
    """A node: one of a batch."""

    batch: Batch
    row: int

    @property
    def start(self) -> int:
        """Where it starts, all on one line."""
        return int(self.batch.starts[self.row])

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + int(self.batch.widths[self.row])

    def is_a(self, kind: type[ast.Node]) -> bool:
        """Whether it is of that kind."""
        return self.batch.code == CODES[kind]

    def child(self, name: str) -> Place | None:
        """The node in a field, if there is one."""
        return _at(self.batch.children[name], self.row)

    def children(self, name: str) -> list[Place]:
        """The nodes of a list."""
        field = self.batch.children[name]
        end = int(field.ends[self.row])
        nodes = (_at(field, at) for at in range(end - int(field.counts[self.row]), end))
        return [node for node in nodes if node is not None]

    def spans(self, name: str) -> list[tuple[int, int]]:
        """Where the nodes of a list start and end."""
        field = self.batch.children[name]
        if len(field.parts) != 1 or field.parts[0].where is not None:
            return [(node.start, node.end) for node in self.children(name)]
        batch, offset, _, _ = field.parts[0]
        end = offset + int(field.ends[self.row])
        rows = slice(end - int(field.counts[self.row]), end)
        starts = batch.starts[rows]
        return list(zip(starts.tolist(), (starts + batch.widths[rows]).tolist(), strict=True))


def _at(field: Children, index: int) -> Place | None:
    for part in field.parts:
        if part.where is None:
            return Place(part.batch, part.offset + index)
        at = int(np.searchsorted(part.where, index))
        if at < part.size and part.where[at] == index:
            return Place(part.batch, part.offset + at)
    return None


def statement_breaks(node: Place, indent: int) -> Iterator[Break]:
    """The breaks of a declaration or a wait that does not stand on one line."""
    breaks = _BREAKS.get(node.batch.code)
    return iter(()) if breaks is None else breaks(node, indent)


def _fits(start: int, end: int, indent: int) -> bool:
    return indent * INDENT + end - start <= WIDTH


def _decorator_breaks(node: Place, indent: int) -> Iterator[Break]:
    decorators = node.children("decorators")
    if decorators:
        yield Break(decorators[0].start, indent + 1, True)


def _region_declaration(node: Place, indent: int) -> Iterator[Break]:
    region = node.child("region")
    assert region is not None
    yield from _value(node.start, region, indent, 0)
    yield from _decorator_breaks(node, indent)


def _let(node: Place, indent: int) -> Iterator[Break]:
    value = node.child("value")
    assert value is not None
    if value.is_a(ast.Quant):
        yield from _quant(node.start, value, indent, 0)
    elif value.is_a(ast.TypeAttrs):
        yield from _type(node.start, value, indent, 0, True)
    else:
        yield from _value(node.start, value, indent, 0)
    yield from _decorator_breaks(node, indent)


def _wait(node: Place, indent: int) -> Iterator[Break]:
    return _fill(node.start, node.spans("tokens"), node.end - 1, 1, indent)


def copy_clause_breaks(node: Place, indent: int) -> Iterator[Break]:
    """Breaks inside the arguments of a transfer or store, each of which begins a line."""
    deps = node.spans("deps")
    for name in ("dst", "src"):
        operand = node.child(name)
        assert operand is not None
        comma = 1 if name == "dst" or deps else 0
        yield from _operand(operand.start - len("dst="), operand, indent + 1, comma)
    yield from _dependences(deps, indent + 1)


def _dependences(deps: list[tuple[int, int]], indent: int) -> Iterator[Break]:
    if deps:
        yield from _fill(deps[0][0] - len("deps=["), deps, deps[-1][1], 1, indent)


def compute_clause_breaks(node: Place, indent: int) -> Iterator[Break]:
    """Breaks inside the clauses of a compute task, each of which begins a line."""
    yield from _operands("in ", node.children("inputs"), indent + 1)
    yield from _operands("out ", node.children("outputs"), indent + 1)
    yield from _dependences(node.spans("deps"), indent + 1)
    for attribute in node.children("attributes"):
        value = attribute.child("value")
        assert value is not None
        yield from _value(attribute.start, value, indent + 1, 0)


def _operands(prefix: str, operands: list[Place], indent: int) -> Iterator[Break]:
    line = operands[0].start - len(prefix)
    if _fits(line, operands[-1].end, indent):
        return
    last = operands[-1]
    yield from _operand(line, operands[0], indent, operands[0] is not last)
    for operand in operands[1:]:
        yield Break(operand.start, indent + 1, True)
        yield from _operand(operand.start, operand, indent + 1, operand is not last)


def _operand(line: int, node: Place, indent: int, behind: int) -> Iterator[Break]:
    value = node.child("value")
    assert value is not None
    if not value.is_a(ast.NameRef) and not _fits(line, node.end + behind, indent):
        yield from _value(line, value, indent, node.end - value.end + behind)


def _value(line: int, place: Place, indent: int, behind: int) -> Iterator[Break]:
    """A value on a line that begins at `line`, with so many characters behind it."""
    if place.is_a(ast.RegionExpr):
        attributes = place.child("type")
        if attributes is not None:
            yield Break(attributes.start, indent + 1, True)
            plain = attributes.child("plain") if attributes.is_a(ast.Compressed) else attributes
            assert plain is not None
            rest = behind + attributes.end - plain.end
            yield from _type(plain.start, plain, indent + 1, rest, False)
    elif place.is_a(ast.ListLit):
        yield from _fill(line, place.spans("items"), place.end - 1, 1 + behind, indent)


def _type(begun: int, node: Place, indent: int, behind: int, is_prefixed: bool) -> Iterator[Break]:
    """A type on a line that begins at `begun`; a quantisation stays there where its name fits."""
    quant = node.child("quant")
    if quant is not None and not (
        quant.is_a(ast.NameRef) and _fits(begun, quant.end + behind, indent)
    ):
        line, inner = quant.start - len("quant="), indent + is_prefixed
        yield Break(line, inner, True)
        yield from _quant(line, quant, inner, behind)


def _quant(line: int, node: Place, indent: int, behind: int) -> Iterator[Break]:
    if node.is_a(ast.NameRef) or _fits(line, node.end + behind, indent):
        return
    plural = "s" if node.batch.scalars["form"][node.row] else ""
    labels = (("axis", "axis="), ("group_size", "group_size="), ("scales", f"scale{plural}="),
              ("zero_points", f"zero_point{plural}="))  # fmt: skip
    labelled = [(label, node.child(name)) for name, label in labels]
    parts = [(label, value) for label, value in labelled if value is not None]
    for index, (label, value) in enumerate(parts):
        start = value.start - len(label)
        yield Break(start, indent + 1, index > 0, opens=index == 0)
        yield from _value(start, value, indent + 1, index < len(parts) - 1)
    yield Break(node.end - 1, indent, False, closes=True)


def _fill(
    line: int, spans: list[tuple[int, int]], closing: int, behind: int, indent: int
) -> Iterator[Break]:
    """As many items a line as fit; `behind` counts from the closing mark on."""
    if not spans or _fits(line, closing + behind, indent):
        return
    begun = spans[0][0]
    yield Break(begun, indent + 1, False, opens=True)
    last = len(spans) - 1
    for index, (start, end) in enumerate(spans):
        if start != begun and not _fits(begun, end + (index < last), indent + 1):
            yield Break(start, indent + 1, True)
            begun = start
    yield Break(closing, indent, False, closes=True)


_BREAKS: dict[int, Callable[[Place, int], Iterator[Break]]] = {
    CODES[ast.RegionDecl]: _region_declaration,
    CODES[ast.LetDecl]: _let,
    CODES[ast.Wait]: _wait,
}

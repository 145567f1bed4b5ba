"""How wide nodes are on one line, and where in them their parts stand: for whole batches at once.

The same as `syntax/printer.py` prints, one function a kind; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.nem.bytecode.batches import Batch
from nacre.nem.bytecode.kinds import CODES, ENUMS, EndLoop
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.syntax import ast
from nacre.nem.syntax.printer import string_text

_POWERS = 10 ** np.arange(1, 19, dtype=np.uint64)
_FEW = 1 << 14
_DIGITS = np.searchsorted(_POWERS, np.arange(_FEW, dtype=np.uint64), side="right") + 1
_ENUM_WIDTHS = {
    name: np.array([len(str(word).lower()) for word in words]) for name, words in ENUMS.items()
}
Widths = Mapping[str, Integers]  # of the scalars of a batch, by their fields
_SYNC = np.array([len("async"), len("sync")])


def set_widths(tree: ReadTree, pools: Mapping[str, Sequence[str]]) -> None:
    """Fill in the widths of all nodes of a program, and where in them their fields begin."""
    scalars = _scalar_widths(tree, pools)
    for batch in reversed(tree.batches):
        pen = _Pen(batch, scalars[batch.first])
        _WRITE[batch.code](pen)
        batch.widths = pen.at
    tree.widths = np.concatenate([batch.widths for batch in tree.batches])
    tree.starts = starts = np.zeros(tree.count, np.int64)
    for batch in tree.batches:
        batch.starts = starts[batch.first : batch.first + batch.count]


def _scalar_widths(tree: ReadTree, pools: Mapping[str, Sequence[str]]) -> Mapping[int, Widths]:
    """How wide the scalars of each batch are: those of one kind in one go."""
    widths: dict[int, dict[str, Integers]] = {batch.first: {} for batch in tree.batches}
    uses: dict[str, list[tuple[Batch, str]]] = {}
    for batch in tree.batches:
        for column in batch.kind.fields:
            if column.scalar:
                uses.setdefault(column.scalar, []).append((batch, column.name))
    for scalar, columns in uses.items():
        values = np.concatenate([batch.scalars[name] for batch, name in columns])
        each, at = _text_widths(scalar, values, pools), 0
        for batch, name in columns:
            widths[batch.first][name] = each[at : at + batch.count]
            at += batch.count
    return widths


def _text_widths(scalar: str, values: Integers, pools: Mapping[str, Sequence[str]]) -> Integers:
    """How many characters each of these numbers stands for."""
    if scalar == "integer":
        return _integer_widths(values)
    if scalar in ENUMS:
        return _ENUM_WIDTHS[scalar][values]
    texts = map(string_text, pools["text"]) if scalar == "text" else pools[scalar]
    return np.fromiter(map(len, texts), np.int64, len(pools[scalar]))[values]


def _integer_widths(values: Integers) -> Integers:
    """Digits and a sign; most by a table, which is faster than looking among powers."""
    widths: Integers = _DIGITS.take(values, mode="clip")
    others = np.flatnonzero(values.view(np.uint64) >= _FEW)
    rest = values[others]
    digits = np.searchsorted(_POWERS, np.abs(rest).view(np.uint64), side="right") + 1
    widths[others] = digits + (rest < 0)
    return widths


def set_starts(tree: ReadTree) -> None:
    """Fill in where nodes start if statements stood behind each other without a gap."""
    for batch in tree.batches:
        for name, children in batch.children.items():
            if not children.parts:
                continue
            base = batch.starts
            if children.lengths is not None:
                base = np.repeat(base, children.counts)
            children.scatter(base + batch.begins[name])


class _Pen:
    """Goes along the nodes of a batch, all at once."""

    def __init__(self, batch: Batch, scalars: Widths) -> None:
        self._batch = batch
        self._scalars = scalars
        self.at = np.zeros(batch.count, np.int64)

    def write(self, text: str) -> None:
        self.at += len(text)

    def scalar(self, name: str) -> None:
        """The text of a scalar."""
        self.at += self._scalars[name]

    def is_true(self, name: str) -> Integers:
        return self._batch.scalars[name]

    def node(self, name: str, before: str = "") -> None:
        """A node that is always there."""
        self.at += len(before)
        self._batch.begins[name] = self.at
        self.at = self.at + self._batch.children[name].gather()

    def optional(self, name: str, before: str = "", after: str = "") -> None:
        """A node that may be missing, with what stands around it."""
        children = self._batch.children[name]
        if not children.parts:
            return
        assert children.selector is not None
        is_there = children.selector > 0
        self.at = self.at + len(before) * is_there
        self._batch.begins[name] = self.at
        self.at = self.at + children.gather() + len(after) * is_there

    def joined_width(self, parts: Sequence[tuple[str, str | Integers]]) -> None:
        """Optional nodes with their labels, a comma and a blank between those that are there."""
        has_any = np.zeros(self._batch.count, bool)
        for name, label in parts:
            children = self._batch.children[name]
            if not children.parts:
                continue
            assert children.selector is not None
            is_there = children.selector > 0
            size = len(label) if isinstance(label, str) else label
            self.at = self.at + is_there * (size + 2 * has_any)
            self._batch.begins[name] = self.at
            self.at = self.at + children.gather()
            has_any |= is_there

    def list_width(self, name: str, gap: str = ", ", before: str = "", after: str = "") -> None:
        """A list of nodes; what stands around it only where it has some."""
        children = self._batch.children[name]
        if not children.size:
            self._batch.begins[name] = np.zeros(0, np.int64)
            return
        counts = children.counts
        is_there = counts > 0
        self.at = self.at + len(before) * is_there
        behind = np.cumsum(children.gather() + len(gap))
        sums = np.concatenate([np.zeros(1, np.int64), behind])
        ends = children.ends
        begun = sums[ends - counts]
        self._batch.begins[name] = sums[:-1] + np.repeat(self.at - begun, counts)
        self.at = self.at + sums[ends] - begun + (len(after) - len(gap)) * is_there

    def decorators(self) -> None:
        """All of them, each with a blank before it."""
        self.list_width("decorators", " ", " ")


def _binary(pen: _Pen) -> None:
    pen.node("left")
    pen.write(" ")
    pen.scalar("op")
    pen.node("right", " ")


def _list(pen: _Pen) -> None:
    pen.write("[")
    pen.list_width("items")
    pen.write("]")


def _quant(pen: _Pen) -> None:
    pen.scalar("form")
    pen.write("(")
    plural = (pen.is_true("form") > 0).astype(np.int64)
    pen.joined_width(
        [
            ("axis", "axis="),
            ("group_size", "group_size="),
            ("scales", len("scale=") + plural),
            ("zero_points", len("zero_point=") + plural),
        ]
    )
    pen.write(")")


def _type(pen: _Pen) -> None:
    words = [("name", "type="), ("elem", "elem="), ("shape", "shape="), ("layout", "layout=")]
    pen.joined_width([*words, ("strides", "strides="), ("quant", "quant=")])


def _compressed(pen: _Pen) -> None:
    pen.node("plain")
    pen.write(", compressed=")
    pen.scalar("form")
    brackets = np.array([len("()"), 0])[pen.is_true("form")]
    pen.at = pen.at + (brackets > 0)
    pen.joined_width([("bits", "bits="), ("tables", "tables=")])
    pen.at = pen.at + (brackets > 0)


def _region(pen: _Pen) -> None:
    pen.node("buffer", "region(")
    pen.node("offset", ", ")
    pen.node("extent", ", ")
    pen.write(")")
    pen.optional("type", " ")


def _unit(pen: _Pen) -> None:
    pen.node("unit")
    pen.node("index", "[")
    pen.write("]")


def _decorator(pen: _Pen) -> None:
    pen.node("name", "@")
    lengths = pen._batch.children["args"].lengths
    assert lengths is not None
    pen.at = pen.at + (lengths >= 0)
    pen.list_width("args")
    pen.at = pen.at + (lengths >= 0)


def _level(pen: _Pen) -> None:
    pen.scalar("name")
    pen.optional("index", "[", "]")


def _buffer(pen: _Pen) -> None:
    pen.node("name", "buffer ")
    pen.node("level", " : ")
    pen.node("size", " (size=")
    pen.optional("align", ", align=")
    pen.write(")")
    pen.decorators()


def _region_declaration(pen: _Pen) -> None:
    pen.node("name")
    pen.node("region", " = ")
    pen.decorators()


def _let(pen: _Pen) -> None:
    pen.node("name", "let ")
    pen.node("value", " = ")
    pen.decorators()


def _const(pen: _Pen) -> None:
    pen.node("name", "const ")
    pen.node("value", " = ")


def _operand(pen: _Pen) -> None:
    pen.node("value")
    pen.decorators()


def _task_head(pen: _Pen) -> None:
    pen.optional("token", "", " = ")
    pen.node("op")
    pen.at = pen.at + 1 + _SYNC[pen.is_true("is_sync")]


def _copy(pen: _Pen) -> None:
    _task_head(pen)
    pen.node("dst", "(dst=")
    pen.node("src", ", src=")
    pen.list_width("deps", before=", deps=[", after="]")
    pen.write(")")
    pen.decorators()


def _wait(pen: _Pen) -> None:
    pen.write("wait(")
    pen.list_width("tokens")
    pen.write(")")


def _attribute(pen: _Pen) -> None:
    pen.node("name")
    pen.node("value", "=")


def _compute(pen: _Pen) -> None:
    _task_head(pen)
    pen.list_width("inputs", before=" in ")
    pen.list_width("outputs", before=" out ")
    pen.list_width("deps", before=" deps=[", after="]")
    pen.list_width("attributes", " ", " ")
    pen.decorators()


def _loop(pen: _Pen) -> None:
    pen.node("variable", "loop ")
    pen.node("first", " in [")
    pen.node("last", "..")
    pen.write("]")
    pen.decorators()
    pen.write(":")


def _document(pen: _Pen) -> None:
    pen.list_width("includes", "")
    pen.optional("device")
    pen.optional("header")
    pen.list_width("body", "")


def _between(before: str, name: str, after: str = "") -> Callable[[_Pen], None]:
    def write(pen: _Pen) -> None:
        pen.node(name, before)
        pen.write(after)

    return write


def _leaf(name: str) -> Callable[[_Pen], None]:
    def write(pen: _Pen) -> None:
        pen.at = pen._scalars[name]

    return write


_BY_CLASS: dict[type[ast.Node], Callable[[_Pen], None]] = {
    ast.IntLit: _leaf("value"),
    ast.FloatLit: _leaf("text"),
    ast.NameRef: _leaf("name"),
    ast.StringLit: _leaf("value"),
    ast.BoolLit: _leaf("value"),
    ast.Negated: _between("-", "operand"),
    ast.Binary: _binary,
    ast.Paren: _between("(", "inner", ")"),
    ast.ListLit: _list,
    ast.Quant: _quant,
    ast.TypeAttrs: _type,
    ast.Compressed: _compressed,
    ast.RegionExpr: _region,
    ast.UnitRef: _unit,
    ast.Decorator: _decorator,
    ast.MemLevel: _level,
    ast.BufferDecl: _buffer,
    ast.RegionDecl: _region_declaration,
    ast.LetDecl: _let,
    ast.ConstDecl: _const,
    ast.Operand: _operand,
    ast.Copy: _copy,
    ast.Wait: _wait,
    ast.Attribute: _attribute,
    ast.Compute: _compute,
    ast.Loop: _loop,
    EndLoop: lambda pen: pen.write("endloop"),
    ast.Include: _between("include ", "path"),
    ast.DeviceRef: _between("device ", "target"),
    ast.ProgramHeader: _between("program ", "name", ":"),
    ast.Document: _document,
}
_WRITE = {code: _BY_CLASS[kind] for kind, code in CODES.items() if kind in _BY_CLASS}

"""Statements as lines: on one line where it fits, otherwise one clause a line."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from nacre.nem.syntax.ast import (
    BufferDecl,
    Comment,
    Compressed,
    Compute,
    ConstDecl,
    Copy,
    Decorator,
    LetDecl,
    ListLit,
    Loop,
    NameRef,
    Node,
    Operand,
    Quant,
    RegionDecl,
    RegionExpr,
    Stmt,
    TypeAttrs,
    Value,
    Wait,
)
from nacre.nem.syntax.printer import (
    SimpleStmt,
    compressed_suffix,
    copy_arguments,
    decorators_text,
    loop_header,
    operand_text,
    quant_parts,
    quant_text,
    region_bounds,
    statement_text,
    task_head,
    type_parts,
    value_text,
)

WIDTH = 100
INDENT = 4


@dataclass(slots=True)
class Line:
    """An output line. `start` is where the first of its tokens stands in the source."""

    indent: int
    text: str
    start: int
    is_item: bool = False  # begins a statement or entry: a blank line before it is kept
    opens: bool = False  # begins a block: no blank line below
    closes: bool = False  # ends a block: comments before it belong inside
    joined: str | None = None  # all lines of this statement as one, if comments allow it
    parts: int = 1  # how many lines those are


class LineWriter:
    """Lays out statements. Knows the source and its comments, for both can force a line break."""

    def __init__(self, text: str, comments: Sequence[Comment], tokens: Sequence[int]) -> None:
        self._text = text
        self._comment_starts = [comment.start for comment in comments]
        self._tokens = tokens
        self.lines: list[Line] = []

    def add(
        self,
        indent: int,
        text: str,
        start: int,
        *,
        item: bool = False,
        opens: bool = False,
        closes: bool = False,
    ) -> None:
        """Append a line."""
        self.lines.append(Line(indent, text, start, item, opens, closes))

    def token(self, offset: int, steps: int) -> int:
        """Where the token stands that comes so many steps after the one at `offset`."""
        return self._tokens[bisect_left(self._tokens, offset) + steps]

    def statements(self, body: Sequence[Stmt], indent: int) -> None:
        """Lay out statements one after the other."""
        for statement in body:
            if isinstance(statement, Loop):
                header = loop_header(statement)
                self.add(indent, header, statement.start, item=True, opens=True)
                self.statements(statement.body, indent + 1)
                self.add(indent, "endloop", statement.endloop, closes=True)
            elif isinstance(statement, SimpleStmt):
                self._statement(statement, indent)

    def _statement(self, node: SimpleStmt, indent: int) -> None:
        text = statement_text(node)
        is_short = fits(text, indent)
        if is_short and not self._has_comments(node):
            self.add(indent, text, node.start, item=True)
            return
        before = len(self.lines)
        self._on_several_lines(node, indent)
        first = self.lines[before]
        first.is_item = True
        if is_short:
            first.joined, first.parts = text, len(self.lines) - before

    def _has_comments(self, node: Node) -> bool:
        """Whether comments may stand among the lines of a statement that was written on several."""
        if "\n" not in self._text[node.start : node.end]:
            return False
        line_end = self._text.find("\n", node.end)
        last = line_end if line_end >= 0 else len(self._text)
        starts = self._comment_starts
        return bisect_right(starts, last) > bisect_right(starts, node.start)

    def _on_several_lines(self, node: SimpleStmt, indent: int) -> None:
        match node:
            case BufferDecl() | ConstDecl():
                self.add(indent, statement_text(node), node.start)
            case RegionDecl():
                self._value(f"{node.name.name} = ", node.region, indent, node.start)
                self._decorators(node.decorators, indent + 1)
            case LetDecl():
                head = f"let {node.name.name} = "
                if isinstance(node.value, Quant):
                    self._quant(head, node.value, indent, node.start, "")
                elif isinstance(node.value, TypeAttrs):
                    self._type(head, node.value, indent, node.start, "")
                else:
                    self._value(head, node.value, indent, node.start)
                self._decorators(node.decorators, indent + 1)
            case Wait():
                self._fill("wait(", _chunks(node.tokens), ")", indent, node.start, node.end - 1)
            case Copy():
                self._copy(node, indent)
            case Compute():
                self._compute(node, indent)
            case _:
                assert_never(node)

    def _decorators(self, nodes: tuple[Decorator, ...], indent: int) -> None:
        if nodes:
            self.add(indent, decorators_text(nodes)[1:], nodes[0].start)

    def _value(self, prefix: str, node: Value, indent: int, start: int, suffix: str = "") -> None:
        """`prefix` and a value; regions break before their types, lists are filled."""
        if isinstance(node, RegionExpr) and node.type is not None:
            self.add(indent, prefix + region_bounds(node), start)
            type_ = node.type
            if isinstance(type_, Compressed):
                suffix = compressed_suffix(type_) + suffix
                type_ = type_.plain
            self._type("", type_, indent + 1, type_.start, suffix)
        elif isinstance(node, ListLit):
            chunks = [(value_text(item), item.start) for item in node.items]
            self._fill(f"{prefix}[", chunks, f"]{suffix}", indent, start, node.end - 1)
        else:
            self.add(indent, f"{prefix}{value_text(node)}{suffix}", start)

    def _type(self, prefix: str, node: TypeAttrs, indent: int, start: int, suffix: str) -> None:
        """Type attributes on a line, and the quantisation on others, unless its name fits there."""
        parts = prefix + ", ".join(type_parts(node))
        quant = node.quant
        named = f"{parts}, quant={quant.name}" if isinstance(quant, NameRef) else parts
        if quant is None or (named is not parts and fits(named + suffix, indent)):
            self.add(indent, named + suffix, start)
            return
        self.add(indent, f"{parts},", start)
        quant_start = self.token(quant.start, -len(("quant", "=")))
        self._quant("quant=", quant, indent + bool(prefix), quant_start, suffix)

    def _quant(
        self, prefix: str, quant: Quant | NameRef, indent: int, start: int, suffix: str
    ) -> None:
        text = f"{prefix}{quant_text(quant)}{suffix}"
        if isinstance(quant, NameRef) or fits(text, indent):
            self.add(indent, text, start)
            return
        self.add(indent, f"{prefix}{quant.form}(", start, opens=True)
        pairs = quant_parts(quant)
        for index, (name, value) in enumerate(pairs):
            comma = "," if index < len(pairs) - 1 else ""
            self._value(f"{name}=", value, indent + 1, self._argument(value), comma)
        self.add(indent, f"){suffix}", quant.end - 1, closes=True)

    def _argument(self, node: Node) -> int:
        """Where the argument starts that has this value: at `name` of `name=value`."""
        return self.token(node.start, -len(("name", "=")))

    def _copy(self, node: Copy, indent: int) -> None:
        self.add(indent, f"{task_head(node)}(", node.start, opens=True)
        arguments = copy_arguments(node)
        for index, (name, operand) in enumerate(arguments):
            comma = "," if index < len(arguments) - 1 or node.deps else ""
            self._operand(f"{name}=", operand, indent + 1, self._argument(operand), comma)
        self._dependences(node.deps, indent + 1)
        nodes = node.decorators
        closing = self.token(nodes[0].start, -1) if nodes else node.end - 1
        self.add(indent, ")" + decorators_text(nodes), closing, closes=True)

    def _dependences(self, nodes: tuple[NameRef, ...], indent: int) -> None:
        if nodes:
            start = self.token(nodes[0].start, -len(("deps", "=", "[")))
            self._fill("deps=[", _chunks(nodes), "]", indent, start, self.token(nodes[-1].start, 1))

    def _operand(self, prefix: str, node: Operand, indent: int, start: int, suffix: str) -> None:
        text = f"{prefix}{operand_text(node)}{suffix}"
        if fits(text, indent) or isinstance(node.value, NameRef):
            self.add(indent, text, start)
        else:
            self._value(
                prefix, node.value, indent, start, decorators_text(node.decorators) + suffix
            )

    def _compute(self, node: Compute, indent: int) -> None:
        self.add(indent, task_head(node), node.start)
        self._operands("in ", node.inputs, indent + 1)
        self._operands("out ", node.outputs, indent + 1)
        self._dependences(node.deps, indent + 1)
        for attribute in node.attributes:
            self._value(f"{attribute.name.name}=", attribute.value, indent + 1, attribute.start)
        self._decorators(node.decorators, indent + 1)

    def _operands(self, prefix: str, nodes: tuple[Operand, ...], indent: int) -> None:
        start = self.token(nodes[0].start, -1)
        text = prefix + ", ".join(operand_text(node) for node in nodes)
        if fits(text, indent):
            self.add(indent, text, start)
            return
        for index, node in enumerate(nodes):
            comma = "," if index < len(nodes) - 1 else ""
            if index == 0:
                self._operand(prefix, node, indent, start, comma)
            else:
                self._operand("", node, indent + 1, node.start, comma)

    def _fill(
        self,
        prefix: str,
        chunks: list[tuple[str, int]],
        suffix: str,
        indent: int,
        start: int,
        closing: int,
    ) -> None:
        """As many chunks a line as fit; a single line where all of them do."""
        whole = f"{prefix}{', '.join(text for text, _ in chunks)}{suffix}"
        if fits(whole, indent) or not chunks:
            self.add(indent, whole, start)
            return
        self.add(indent, prefix, start, opens=True)
        line, line_start = "", chunks[0][1]
        for index, (text, chunk_start) in enumerate(chunks):
            piece = text + ("," if index < len(chunks) - 1 else "")
            joined = f"{line} {piece}" if line else piece
            if line and not fits(joined, indent + 1):
                self.add(indent + 1, line, line_start)
                line, line_start = piece, chunk_start
            else:
                line = joined
        self.add(indent + 1, line, line_start)
        self.add(indent, suffix, closing, closes=True)


def _chunks(nodes: Sequence[NameRef]) -> list[tuple[str, int]]:
    return [(node.name, node.start) for node in nodes]


def fits(text: str, indent: int) -> bool:
    """Whether a line of this text is not wider than the page."""
    return indent * INDENT + len(text) <= WIDTH

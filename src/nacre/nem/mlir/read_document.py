"""The operations of a module as a document: the tree that they mean, and its lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec.structs import replace
from xdsl.dialects.builtin import DenseArrayBase, FileLineColLoc, FusedLoc
from xdsl.ir import Attribute as MlirAttribute
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import MAX_SOURCE_BYTES
from nacre.nem.mlir.dialect import NemOperation, TerminatorOp, verify_region
from nacre.nem.mlir.nodes import MalformedError, list_of, string_of, value_of, word_of
from nacre.nem.mlir.operation_spans import config_lines
from nacre.nem.mlir.read_config import body_of, config_operations, device_of, family_of
from nacre.nem.mlir.read_statements import (
    HiddenNameError,
    Names,
    is_written,
    read_loop,
    read_statement,
)
from nacre.nem.mlir.reading import ReadModule
from nacre.nem.mlir.rows import Mark, Row
from nacre.nem.mlir.token_marks import TOKENS
from nacre.nem.mlir.trivia import ABOVE, BEHIND, END_ABOVE, END_BEHIND, INSIDE, Trivia
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.spec.rules.mlir import MLR03, MLR04
from nacre.nem.syntax.ast import (
    BoolLit,
    DeviceConfig,
    DeviceRef,
    Document,
    Include,
    IntLit,
    ListLit,
    NameRef,
    ProgramHeader,
    Stmt,
    StringLit,
    TypeFamily,
)
from nacre.nem.syntax.printer import loop_header, statement_text, string_text

_END = "nem.end"
_HELP = (
    "`nacre nem irdl` writes what the dialect asks of it; a task that `nacre check` is to judge is "
    "a `nem.task`"
)
# Documents have their parts in this order; what is not named is a statement.
_RANKS = {"include": 0, "device_ref": 1, "type_family": 2, "device": 2, "program": 3}
_STATEMENT = 4
_LONGEST = 400  # of a message: attributes may be as long as the text
_DEEPEST = 8  # of locations within locations


@dataclass(slots=True)
class _Parts:
    includes: list[Include] = field(default_factory=list)
    configs: list[TypeFamily | DeviceConfig] = field(default_factory=list)
    device: DeviceRef | None = None
    header: ProgramHeader | None = None
    body: list[Stmt] = field(default_factory=list)


def read_document(read: ReadModule, stem: str) -> DocumentReader:
    """The document of a module; what is wrong with it is in `found`."""
    reader = DocumentReader(read, stem)
    reader.read(read.module)
    return reader


class DocumentReader:
    """Reads operations one after the other; what one cannot be is reported, and the next tried."""

    def __init__(self, read: ReadModule, stem: str) -> None:
        self._read = read
        self._naming = Names(stem)
        self._parts = _Parts()
        self.found: list[Diagnostic] = []
        self.rows: list[Row] = []
        self.end: list[str] = []
        self._size = 0

    @property
    def document(self) -> Document:
        """The tree, without places."""
        parts = self._parts
        before = tuple(parts.includes), tuple(parts.configs), parts.device, parts.header
        return Document(0, 0, *before, tuple(parts.body))

    def read(self, module: Any) -> None:  # noqa: ANN401 - a module of xDSL
        """Take up all operations of a module."""
        self._verify(module)
        if self.found:
            return
        try:
            self.end = _lines_of(module.attributes.get(_END))
        except MalformedError as error:
            self._report(module, str(error))
        rank = -1
        for op in _statements_of(module):
            before, rank = rank, _RANKS.get(op.signature.name, _STATEMENT)
            is_single = op.signature.name in ("device_ref", "program")
            if rank < before or (is_single and rank == before):
                self._report(op, f"`{op.name}` stands behind `nem` operations that follow it")
            self._take(op, 0, self._parts.body)
            if self._size > MAX_SOURCE_BYTES:
                self._report(
                    op, f"the text of this module has more than {MAX_SOURCE_BYTES:,} bytes"
                )
                return

    def _report(self, op: Operation, message: str, rule: Rule = MLR03, help: str = _HELP) -> None:
        if len(self.found) < MAX_DIAGNOSTICS:
            short = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
            self.found.append(rule.at(self._read.span(op), short, help=help))

    def _verify(self, module: Any) -> None:  # noqa: ANN401
        try:
            verify_region(module, module.regions[0])
        except VerifyException as error:
            self._report(module, str(error))
        for op in module.walk():
            if op is module or isinstance(op, TerminatorOp):
                continue
            if not isinstance(op, NemOperation):
                self._report(op, f"`{op.name}` is no operation of the dialect `nem`")
                continue
            try:
                op.verify_()
            except VerifyException as error:
                self._report(op, str(error))

    def _take(self, op: NemOperation, indent: int, body: list[Stmt]) -> None:
        try:
            self._read_operation(op, indent, body)
        except MalformedError as error:
            self._report(op, str(error))
        except HiddenNameError as error:
            self._report(op, str(error), MLR04, "give one of the two another `name` or `token`")
        if op.signature.name in ("const", "let") or (op.results and is_written(op)):
            with suppress(MalformedError):  # known even where it is wrong: one mistake, one report
                self._naming.define(op)

    def _read_operation(self, op: NemOperation, indent: int, body: list[Stmt]) -> None:
        parts, attributes = self._parts, op.attributes
        match op.signature.name:
            case "include":
                path = string_of(attributes["path"])
                parts.includes.append(Include(0, 0, StringLit(0, 0, path)))
                self._add(op, indent, f"include {string_text(path)}")
            case "device_ref":
                parts.device = DeviceRef(0, 0, _target(attributes["target"]))
                self._add(op, indent, f"device {_target_text(parts.device.target)}")
            case "program":
                parts.header = ProgramHeader(0, 0, word_of(attributes["name"]))
                self._add(op, indent, f"program {parts.header.name.name}:")
            case "type_family":
                self._add_config(op, family_of(op))
            case "device":
                self._add_config(op, device_of(op))
            case "loop":
                self._read_loop(op, indent, body)
            case _ if is_written(op):
                statement = read_statement(op, self._naming)
                body.append(statement)
                self._add(op, indent, statement_text(statement))

    def _read_loop(self, op: NemOperation, indent: int, body: list[Stmt]) -> None:
        header = read_loop(op, ())
        self._add(op, indent, loop_header(header))
        inner: list[Stmt] = []
        self._naming.scopes.open()
        if header.variable is not None:
            self._naming.scopes.define(header.variable.name, None)
        for statement in body_of(op):
            self._take(statement, indent + 1, inner)
        self._naming.scopes.close()
        body.append(read_loop(op, tuple(inner)))
        self._add_closing(op, indent, "endloop")

    def _add(self, op: NemOperation, indent: int, text: str) -> None:
        # A region without a name is written wherever it is used: that can be more than was read.
        self._size += len(text)
        marks, tokens = _marks_of(op)[:2], _tokens_of(op)
        place = self._place_of(op)
        self.rows.append(Row(indent, text, _trivia_of(op), marks, tokens=tokens, place=place))

    def _place_of(self, op: Operation) -> tuple[int, int]:
        span = self._read.span(op)
        return span.start, span.end

    def _add_closing(self, op: NemOperation, indent: int, text: str) -> None:
        attributes = op.attributes
        trivia = Trivia(
            _lines_of(attributes.get(END_ABOVE)), _comment_of(attributes.get(END_BEHIND))
        )
        marks, place = _marks_of(op)[2:], self._place_of(op)
        self.rows.append(Row(indent, text, trivia, marks, is_closing=True, place=place))

    def _add_config(self, op: NemOperation, config: TypeFamily | DeviceConfig) -> None:
        self._parts.configs.append(config)
        operations = config_operations(op)
        opened: list[NemOperation] = []
        for line in config_lines(config, [0] * 8):  # places are not known: those of tokens neither
            if line.is_item:
                entry = next(operations)
                self._add(entry, line.indent, line.text)
                opened += [entry] if line.opens else []
            elif line.closes:
                self._add_closing(opened.pop(), line.indent, line.text)
            else:
                last = self.rows[-1]
                text = f"{last.text} {line.text}"
                self.rows[-1] = replace(last, text=text)


def _statements_of(module: Any) -> Iterator[NemOperation]:  # noqa: ANN401
    for block in module.regions[0].blocks:
        yield from (op for op in block.ops if isinstance(op, NemOperation))


def _target(attribute: MlirAttribute) -> StringLit | NameRef:
    read = value_of(attribute)
    if not isinstance(read, StringLit | NameRef):
        raise MalformedError(f"{attribute} is neither a name nor a file")
    return read


def _target_text(target: StringLit | NameRef) -> str:
    return target.name if isinstance(target, NameRef) else string_text(target.value)


def _comment_of(attribute: MlirAttribute | None) -> str | None:
    if attribute is None:
        return None
    text = string_of(attribute)
    if not text.startswith("#"):
        raise MalformedError(f"{attribute} is no comment: it does not begin with `#`")
    return text


def _lines_of(attribute: MlirAttribute | None) -> list[str]:
    """Comments and empty lines."""
    lines = () if attribute is None else list_of(attribute, string_of)
    if any(line and not line.startswith("#") for line in lines):
        raise MalformedError(f"{attribute} has lines that are no comments")
    return list(lines)


def _trivia_of(op: NemOperation) -> Trivia:
    attributes = op.attributes
    if not (ABOVE in attributes or BEHIND in attributes or INSIDE in attributes):
        return Trivia()
    inside = [] if INSIDE not in attributes else list(list_of(attributes[INSIDE], _inside_of))
    return Trivia(_lines_of(attributes.get(ABOVE)), _comment_of(attributes.get(BEHIND)), inside)


def _inside_of(attribute: MlirAttribute) -> tuple[int, bool, str]:
    match value_of(attribute):
        case ListLit(items=(IntLit(value=at), BoolLit(value=is_behind), StringLit(value=text))) if (
            not text or text.startswith("#")
        ):
            return at, is_behind, text
    raise MalformedError(f"{attribute} is no comment with its place")


def _tokens_of(op: NemOperation) -> tuple[tuple[int, int], ...]:
    marks = op.attributes.get(TOKENS)
    if not isinstance(marks, DenseArrayBase):
        return ()
    numbers = iter(int(number) for number in marks.iter_values())
    return tuple(zip(numbers, numbers, strict=False))


def _marks_of(op: NemOperation) -> tuple[Mark, ...]:
    """Where the operation comes from: the first place, and others that a fused location has."""
    return tuple(islice(_file_marks(op.location, _DEEPEST), 3))


def _file_marks(location: Any, depth: int) -> Iterator[Mark]:  # noqa: ANN401
    if isinstance(location, FileLineColLoc):
        line, column = int(location.line.data), int(location.column.data)
        yield Mark(location.filename.data, line, column)
    elif isinstance(location, FusedLoc) and depth:
        for inner in location.locations.data:
            yield from _file_marks(inner, depth - 1)

"""Operations of statements, read back into the tree: values get their names again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any

from nacre.nem.mlir.dialect import NemOperation, operand_groups
from nacre.nem.mlir.nodes import (
    MalformedError,
    bound_of,
    decorators_of,
    expression_of,
    integer_of,
    list_of,
    region_of,
    string_of,
    task_attributes,
    value_of,
    word_of,
)
from nacre.nem.mlir.scopes import Scopes
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.ast import (
    BufferDecl,
    Compute,
    ConstDecl,
    Copy,
    LetDecl,
    Loop,
    MemLevel,
    NameRef,
    Operand,
    RegionDecl,
    RegionExpr,
    Stmt,
    Wait,
)
from nacre.nem.syntax.printer import SimpleStmt

_COPIES = frozenset({"transfer", "store"})


class HiddenNameError(Exception):
    """A value is used where its name means another one."""


class Names:
    """The names of values, and which of them are known where the reader stands."""

    def __init__(self, stem: str) -> None:
        self._stem = stem  # no name of the module begins with it
        self._fresh: dict[int, str] = {}
        self.scopes: Scopes[NemOperation] = Scopes()

    def name(self, op: NemOperation) -> NameRef:
        """The name under which an operation's result is known; a new one where it has none."""
        stated = op.attributes.get("name", op.attributes.get("token"))
        if stated is not None:
            return word_of(stated)
        return NameRef(0, 0, self._fresh.setdefault(id(op), f"{self._stem}{len(self._fresh)}"))

    def define(self, op: NemOperation) -> None:
        """From here on an operation is known by its name."""
        self.scopes.define(self.name(op).name, op if op.results else None)

    def use(self, value: Any) -> NameRef:  # noqa: ANN401 - a value of xDSL
        """The name of a value, which must mean that value here."""
        op = value.owner
        if not isinstance(op, NemOperation):
            raise MalformedError("an operand is the argument of a block, which no program has")
        name = self.name(op)
        if op.signature.name != "lookup" and self.scopes.find(name.name) is not op:
            raise HiddenNameError(f"`{name.name}` means something else, or nothing yet, where "
                                  "this operation uses it")  # fmt: skip
        return name

    def operand(self, value: Any) -> NameRef | RegionExpr:  # noqa: ANN401
        """A region by its name, or as it is where it has none."""
        op = value.owner
        is_region = isinstance(op, NemOperation) and op.signature.name == "region_decl"
        return self.region(op) if is_region and "name" not in op.attributes else self.use(value)

    def region(self, op: NemOperation) -> RegionExpr:
        """The region that an operation takes of its buffer."""
        attributes = op.attributes
        buffer = self.use(op.operands[0])
        return region_of(buffer, attributes["offset"], attributes["extent"], attributes.get("type"))


def is_written(op: NemOperation) -> bool:
    """Whether an operation is a statement: names and regions without one stand where used."""
    kind = op.signature.name
    return kind != "lookup" and not (kind == "region_decl" and "name" not in op.attributes)


def read_statement(op: NemOperation, naming: Names) -> SimpleStmt:
    """The statement of an operation without a body."""
    read = _READERS.get(op.signature.name, _task)
    return read(op, naming)


def _const(op: NemOperation, naming: Names) -> SimpleStmt:
    return ConstDecl(0, 0, naming.name(op), value_of(op.attributes["value"]))


def _let(op: NemOperation, naming: Names) -> SimpleStmt:
    attributes = op.attributes
    decorators = decorators_of(attributes.get("decorators"))
    return LetDecl(0, 0, naming.name(op), bound_of(attributes["value"]), decorators)


def _let_region(op: NemOperation, naming: Names) -> SimpleStmt:
    decorators = decorators_of(op.attributes.get("decorators"))
    return LetDecl(0, 0, naming.name(op), naming.region(op), decorators)


def _region(op: NemOperation, naming: Names) -> SimpleStmt:
    decorators = decorators_of(op.attributes.get("decorators"))
    return RegionDecl(0, 0, naming.name(op), naming.region(op), decorators)


def _buffer(op: NemOperation, naming: Names) -> SimpleStmt:
    attributes = op.attributes
    index = expression_of(attributes["index"]) if "index" in attributes else None
    level = MemLevel(0, 0, word_of(attributes["level"]).name, index)
    align = integer_of(attributes["align"]) if "align" in attributes else None
    decorators = decorators_of(attributes.get("decorators"))
    return BufferDecl(0, 0, naming.name(op), level, value_of(attributes["size"]), align, decorators)


def _wait(op: NemOperation, naming: Names) -> SimpleStmt:
    if not op.operands:
        raise MalformedError(f"`{op.name}` names no token")
    return Wait(0, 0, tuple(map(naming.use, op.operands)))


def read_loop(op: NemOperation, body: tuple[Stmt, ...]) -> Loop:
    """A loop around its body."""
    attributes = op.attributes
    return Loop(
        0,
        0,
        word_of(attributes["variable"]),
        expression_of(attributes["first"]),
        expression_of(attributes["last"]),
        decorators_of(attributes.get("decorators")),
        body,
        0,
        0,
    )


def _task(op: NemOperation, naming: Names) -> SimpleStmt:
    """A copy or a compute task, by its opcode."""
    kind, attributes = op.signature.name, op.attributes
    opcode = OPCODES.get(string_of(attributes["opcode"]) if kind == "task" else kind)
    if opcode is None or (kind == "task" and opcode.name in _COPIES):
        raise MalformedError(f"`{op.name}` is no compute task of an opcode")
    *regions, deps = operand_groups(op)
    count = 1 if kind == "task" else len(opcode.inputs)
    values = [*chain(*regions[:count])], [*chain(*regions[count:])]
    inputs, outputs = _decorated_operands(op, values, naming)
    token = naming.name(op) if op.results else None
    if token is None and "token" in attributes:
        raise MalformedError(f"`{op.name}` has a `token` and no result")
    head = 0, 0, token, NameRef(0, 0, opcode.name), attributes["form"].data == "sync"
    tokens, decorators = tuple(map(naming.use, deps)), decorators_of(attributes.get("decorators"))
    if opcode.name in _COPIES:
        return Copy(*head, outputs[0], inputs[0], tokens, decorators)
    return Compute(*head, inputs, outputs, tokens, task_attributes(kind, attributes), decorators)


def _decorated_operands(
    op: NemOperation, groups: tuple[list[Any], list[Any]], naming: Names
) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    inputs, outputs = groups
    values = [naming.operand(value) for value in (*inputs, *outputs)]
    lists = op.attributes.get("operand_decorators")
    every = ((),) * len(values) if lists is None else list_of(lists, decorators_of)
    if len(every) != len(values):
        raise MalformedError("`operand_decorators` has another length than the operands")
    operands = tuple(Operand(0, 0, v, d) for v, d in zip(values, every, strict=True))
    return operands[: len(inputs)], operands[len(inputs) :]


_READERS: Mapping[str, Callable[[NemOperation, Names], SimpleStmt]] = MappingProxyType(
    {
        "const": _const,
        "let": _let,
        "let_region": _let_region,
        "region_decl": _region,
        "buffer_decl": _buffer,
        "wait": _wait,
    }
)

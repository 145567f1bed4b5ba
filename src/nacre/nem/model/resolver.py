"""Statements in order: names declared and looked up, constants evaluated, buffers collected."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.source import Source
from nacre.nem.model.expressions import Expressions
from nacre.nem.model.folding import BUFFER_SIZE, ENGINE_INDEX, LOOP_BOUND, VALUE, LoopVariable
from nacre.nem.model.names import Names
from nacre.nem.model.program import Buffer, Level, Program
from nacre.nem.model.symbols import Kind, Symbol, declared_by
from nacre.nem.spec.decorators import DECORATORS
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.constants import CST08
from nacre.nem.syntax.ast import (
    Attribute,
    Broken,
    BufferDecl,
    Compute,
    ConstDecl,
    Copy,
    Decorator,
    Document,
    Expr,
    LetDecl,
    Loop,
    NameRef,
    Operand,
    RegionDecl,
    RegionExpr,
    Stmt,
    UnitRef,
    Value,
    Wait,
)

_LEVELS: dict[str, Level] = {"DDR": "DDR", "L2": "L2", "L1": "L1"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A program and what resolving it brought up."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]


def resolve(source: Source, document: Document) -> Resolved:
    """Resolve the names and constants of a program."""
    resolver = _Resolver(source)
    resolver.body(document.body, 0)
    program = Program(source, document, resolver.constants, tuple(resolver.buffers))
    return Resolved(program, tuple(resolver.names.found))


@dataclass(slots=True)
class _Resolver:
    source: Source
    constants: dict[str, int] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    names: Names = field(init=False)
    expressions: Expressions = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(self.source)
        self.expressions = Expressions(self.names)

    def body(self, statements: tuple[Stmt, ...], depth: int) -> None:
        """The statements of a program or of a loop's body."""
        upcoming = self.names.scope.upcoming
        for statement in statements:
            symbol = declared_by(statement)
            if symbol is not None:
                upcoming.setdefault(symbol.name, symbol)
        for statement in statements:
            self._statement(statement, depth)

    def _statement(self, node: Stmt, depth: int) -> None:
        if isinstance(node, Copy | Compute):
            self._task(node)
        elif isinstance(node, LetDecl):
            self._let(node)
        elif isinstance(node, RegionDecl):
            region = self.expressions.region(node.region)
            self._decorators(node.decorators)
            self.names.declare(Symbol("region", node.name.name, node.name, region))
        elif isinstance(node, Wait):
            for token in node.tokens:
                self.names.token(token)
        elif isinstance(node, Loop):
            self._loop(node, depth)
        elif isinstance(node, ConstDecl):
            self._const(node, depth)
        elif isinstance(node, BufferDecl):
            self._buffer(node, depth)
        else:
            self._broken(node)

    def _broken(self, node: Broken) -> None:
        if node.declares is not None:
            self.names.declare(Symbol("unknown", node.declares.name, node.declares))

    def _const(self, node: ConstDecl, depth: int) -> None:
        name = node.name.name
        if depth:
            message = f"constant `{name}` is declared inside a loop"
            help_ = "move it before the loop, or use `let` for a value that varies"
            self.names.report(CST08, node.name, message, help=help_)
        self.names.scope.upcoming.pop(name, None)
        value = self.expressions.constant(node.value, name)
        self.names.declare(Symbol("const", name, node.name, value))
        if value is not None:
            self.constants.setdefault(name, value)

    def _let(self, node: LetDecl) -> None:
        value: object
        if isinstance(node.value, NameRef) and node.value.name in ELEMENT_TYPES:
            value = node.value.name
        else:
            value = self.expressions.value(node.value)
        self._decorators(node.decorators)
        kind: Kind = "let" if value is not None else "unknown"
        self.names.declare(Symbol(kind, node.name.name, node.name, value))

    def _buffer(self, node: BufferDecl, depth: int) -> None:
        size = engine = None
        if isinstance(node.size, Expr):
            size = self.expressions.resolve(node.size, BUFFER_SIZE)
        level = _LEVELS[node.level.name] if node.level is not None else None
        if node.level is not None and level == "L1":
            index = node.level.index
            engine = 0 if index is None else self.expressions.resolve(index, ENGINE_INDEX)
        self._decorators(node.decorators)
        buffer = Buffer(
            node.name.name,
            level,
            engine if isinstance(engine, int) else None,
            size if isinstance(size, int) else None,
            node.align.value if node.align is not None else 1,
            depth > 0,
            node,
        )
        self.buffers.append(buffer)
        self.names.declare(Symbol("buffer", buffer.name, node.name, buffer))

    def _loop(self, node: Loop, depth: int) -> None:
        for bound in (node.first, node.last):
            if bound is not None:
                self.expressions.resolve(bound, LOOP_BOUND)
        self._decorators(node.decorators)
        self.names.begin_loop()
        if node.variable is not None:
            variable = LoopVariable(node.variable.name, depth)
            self.names.declare(Symbol("loop", node.variable.name, node.variable, variable))
        self.body(node.body, depth + 1)
        self.names.end_loop()

    def _task(self, node: Copy | Compute) -> None:
        if isinstance(node, Copy):
            for operand in (node.dst, node.src):
                if operand is not None:
                    self._operand(operand)
        else:
            for operand in (*node.inputs, *node.outputs):
                self._operand(operand)
            for attribute in node.attributes:
                self._attribute(node.op.name, attribute)
        for token in node.deps:
            self.names.token(token)
        self._decorators(node.decorators)
        if node.token is not None:
            self.names.declare(Symbol("token", node.token.name, node.token))

    def _operand(self, node: Operand) -> None:
        if isinstance(node.value, RegionExpr):
            self.expressions.region(node.value)
        else:
            self.names.operand(node.value)
        self._decorators(node.decorators)

    def _attribute(self, op: str, node: Attribute) -> None:
        """Names in an attribute are looked up where the registry says that it holds a number."""
        opcode = OPCODES.get(op)
        spec = opcode.attribute(node.name.name) if opcode is not None else None
        if spec is None or spec.type in ("elem_type", "id", "string"):
            return
        self.expressions.value(node.value)

    def _decorators(self, nodes: tuple[Decorator, ...]) -> None:
        for node in nodes:
            spec = DECORATORS.get(node.name.name)
            if spec is None or spec.argument not in ("integer", "unit"):
                continue
            for argument in node.args or ():
                self._argument(argument)

    def _argument(self, node: Value | UnitRef) -> None:
        if isinstance(node, UnitRef):
            self.expressions.resolve(node.index, VALUE)
        else:
            self.expressions.value(node)

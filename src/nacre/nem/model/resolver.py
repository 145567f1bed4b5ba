"""Statements in order: names declared and looked up, everything turned into resolved values."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.source import Source
from nacre.base.terms import LoopVariable, Operation
from nacre.nem.model.folding import BUFFER_SIZE, ENGINE_INDEX, LOOP_BOUND, VALUE
from nacre.nem.model.names import Names
from nacre.nem.model.program import (
    Access,
    Buffer,
    Decorator,
    Let,
    Level,
    Loop,
    Operand,
    Program,
    Region,
    Statement,
    Task,
    UnitIndex,
    Wait,
)
from nacre.nem.model.symbols import Kind, Symbol, declared_symbol
from nacre.nem.model.values import Values
from nacre.nem.spec.decorators import DECORATORS
from nacre.nem.spec.opcodes import OPCODES, Opcode, OperandSpec
from nacre.nem.spec.rules.constants import CST08
from nacre.nem.syntax import ast

_LEVELS: dict[str, Level] = {"DDR": "DDR", "L2": "L2", "L1": "L1"}


class Resolution(Struct, frozen=True):
    """A program and what resolving it brought up."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]


def resolve(source: Source, document: ast.Document, *, is_valid: bool = True) -> Resolution:
    """Resolve the names and constants of a program; `is_valid`: it has no syntax error."""
    resolver = _Resolver(source, is_whole=is_valid)
    body = resolver.body(document.body, ())
    program = Program(
        source,
        document,
        resolver.constants,
        tuple(resolver.buffers),
        body,
        tuple(resolver.regions),
        resolver.is_whole,
        tuple(resolver.lets),
    )
    return Resolution(program, tuple(resolver.names.findings))


@dataclass(slots=True)
class _Resolver:
    source: Source
    constants: dict[str, int] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    lets: list[Let] = field(default_factory=list)
    names: Names = field(init=False)
    expressions: Values = field(init=False)
    position: int = 0
    loops: tuple[Loop, ...] = ()  # around the statement at hand
    is_whole: bool = True

    def __post_init__(self) -> None:
        self.names = Names(self.source)
        self.expressions = Values(self.names)

    def body(
        self, statements: tuple[ast.Stmt, ...], loops: tuple[Loop, ...]
    ) -> tuple[Statement, ...]:
        """The statements of a program or of a loop's body."""
        upcoming = self.names.scope.upcoming
        for statement in statements:
            symbol = declared_symbol(statement)
            if symbol is not None and symbol.name not in upcoming:
                upcoming[symbol.name] = symbol
        resolved = []
        for statement in statements:
            resolved_statement = self._statement(statement, loops)
            if resolved_statement is not None:
                resolved.append(resolved_statement)
        return tuple(resolved)

    def _next_position(self) -> int:
        self.position += 1
        return self.position - 1

    def _statement(self, node: ast.Stmt, loops: tuple[Loop, ...]) -> Statement | None:
        if isinstance(node, ast.Copy | ast.Compute):
            return self._task(node, loops)
        if isinstance(node, ast.Wait):
            return self._wait(node, loops)
        if isinstance(node, ast.Loop):
            return self._loop(node, loops)
        if isinstance(node, ast.LetDecl):
            self._let(node)
        elif isinstance(node, ast.RegionDecl):
            region = self._declared_region(node.region, node.name.name, node.decorators)
            self.names.declare(Symbol("region", node.name.name, node.name, region))
        elif isinstance(node, ast.ConstDecl):
            self._const(node, bool(loops))
        elif isinstance(node, ast.BufferDecl):
            self._buffer(node, bool(loops))
        else:
            self.is_whole = False
            if node.declares is not None:
                self.names.declare(Symbol("unknown", node.declares.name, node.declares))
        return None

    def _const(self, node: ast.ConstDecl, in_loop: bool) -> None:
        name = node.name.name
        if in_loop:
            message = f"constant `{name}` is declared inside a loop"
            help_ = "move it before the loop, or use `let` for a value that varies"
            self.names.report(CST08, node.name, message, help=help_)
        self.names.scope.upcoming.pop(name, None)
        value = self.expressions.constant(node.value, name)
        self.names.declare(Symbol("const", name, node.name, value))
        if value is not None:
            self.constants.setdefault(name, value)

    def _let(self, node: ast.LetDecl) -> None:
        value: object
        if isinstance(node.value, ast.NameRef) and node.value.name in ELEMENT_TYPES:
            value = node.value.name
        elif isinstance(node.value, ast.Quant):
            value = self.expressions.quant(node.value)
            self._decorators(node.decorators)
        elif isinstance(node.value, ast.TypeAttrs):
            value = self.expressions.type_of(node.value)
            self._decorators(node.decorators)
        elif isinstance(node.value, ast.RegionExpr):
            value = self._declared_region(node.value, node.name.name, node.decorators)
        else:
            value = self.expressions.value(node.value)
            self._decorators(node.decorators)
        if not isinstance(value, bool) and isinstance(
            value, int | float | LoopVariable | Operation
        ):
            self.lets.append(Let(node.name.name, value, self.loops))
        kind: Kind = "let" if value is not None else "unknown"
        self.names.declare(Symbol(kind, node.name.name, node.name, value))

    def _declared_region(
        self, node: ast.RegionExpr, name: str | None, decorators: tuple[ast.Decorator, ...]
    ) -> Region:
        resolved_decorators = self._decorators(decorators)
        region = self.expressions.region(node, name, resolved_decorators, self.loops)
        self.regions.append(region)
        return region

    def _buffer(self, node: ast.BufferDecl, in_loop: bool) -> None:
        size = engine = None
        if isinstance(node.size, ast.Expr):
            size = self.expressions.resolve(node.size, BUFFER_SIZE)
        level = _LEVELS[node.level.name] if node.level is not None else None
        if node.level is not None and level == "L1":
            index = node.level.index
            engine = 0 if index is None else self.expressions.resolve(index, ENGINE_INDEX)
        self._decorators(node.decorators)
        buffer = Buffer(
            node.name.name,
            len(self.buffers),
            level,
            engine if isinstance(engine, int) else None,
            size if isinstance(size, int) else None,
            node.align.value if node.align is not None else 1,
            in_loop,
            node,
        )
        self.buffers.append(buffer)
        self.names.declare(Symbol("buffer", buffer.name, node.name, buffer))

    def _loop(self, node: ast.Loop, loops: tuple[Loop, ...]) -> Loop | None:
        bounds = [
            None if bound is None else self.expressions.resolve(bound, LOOP_BOUND)
            for bound in (node.first, node.last)
        ]
        decorators = self._decorators(node.decorators)
        name = node.variable.name if node.variable is not None else ""
        variable = LoopVariable(name, len(loops))
        loop = Loop(
            self._next_position(),
            variable,
            bounds[0],
            bounds[1],
            _window(decorators),
            decorators,
            loops,
            node,
        )
        self.names.begin_loop()
        if node.variable is not None:
            self.names.declare(Symbol("loop", name, node.variable, variable))
        self.loops = (*loops, loop)
        loop.body = self.body(node.body, self.loops)
        self.loops = loops
        loop.end = self._next_position()
        self.names.end_loop()
        return loop

    def _wait(self, node: ast.Wait, loops: tuple[Loop, ...]) -> Wait:
        return Wait(self._next_position(), self._tokens(node.tokens), loops, node)

    def _tokens(
        self, nodes: tuple[ast.NameRef, ...], task_token: ast.NameRef | None = None
    ) -> tuple[int, ...]:
        if not nodes:
            return ()
        symbols = [self.names.token(node, task_token) for node in nodes]
        positions = [symbol.value for symbol in symbols if symbol is not None]
        self.is_whole = self.is_whole and len(positions) == len(nodes)
        return tuple(dict.fromkeys(p for p in positions if isinstance(p, int)))

    def _task(self, node: ast.Copy | ast.Compute, loops: tuple[Loop, ...]) -> Task:
        opcode = OPCODES.get(node.op.name)
        attributes: dict[str, object] = {}
        task_decorators: list[Decorator] = []
        if isinstance(node, ast.Copy):
            operands = self._copy_operands(node, opcode)
        else:
            operands = self._compute_operands(node, opcode, task_decorators)
            for attribute in node.attributes:
                attributes[attribute.name.name] = self._attribute(opcode, attribute)
        deps = self._tokens(node.deps, node.token)
        task_decorators += self._decorators(node.decorators)
        task = Task(
            self._next_position(),
            node.op.name,
            opcode,
            node.is_sync,
            node.token.name if node.token is not None else None,
            operands,
            deps,
            attributes,
            tuple(task_decorators),
            loops,
            node,
        )
        if node.token is not None:
            symbol = Symbol("token", node.token.name, node.token, task.position)
            self.names.declare(symbol)
            self.is_whole = self.is_whole and self.names.scope.find(symbol.name) is symbol
        return task

    def _copy_operands(self, node: ast.Copy, opcode: Opcode | None) -> tuple[Operand, ...]:
        pairs: tuple[tuple[str, ast.Operand | None, Access], ...] = (
            ("dst", node.dst, "write"),
            ("src", node.src, "read"),
        )
        operands = []
        for name, operand, access in pairs:
            if operand is not None:
                spec = opcode.operand(name) if opcode is not None else None
                decorators = self._decorators(operand.decorators)
                operands.append(Operand(spec, access, self._region(operand), decorators, operand))
        return tuple(operands)

    def _compute_operands(
        self, node: ast.Compute, opcode: Opcode | None, task_decorators: list[Decorator]
    ) -> tuple[Operand, ...]:
        operands = []
        lists: tuple[tuple[tuple[ast.Operand, ...], tuple[OperandSpec, ...], Access], ...] = (
            (node.inputs, opcode.inputs if opcode is not None else (), "read"),
            (node.outputs, opcode.outputs if opcode is not None else (), "write"),
        )
        for nodes, specs, access in lists:
            for index, operand in enumerate(nodes):
                spec = _spec_at(specs, index)
                if not operand.decorators:
                    operands.append(Operand(spec, access, self._region(operand), (), operand))
                    continue
                decorators = self._decorators(operand.decorators)
                # A decorator behind the last operand may mean the task; its kind tells.
                task_decorators += [d for d in decorators if not _binds_to_operand(d)]
                operand_decorators = tuple(d for d in decorators if _binds_to_operand(d))
                operands.append(
                    Operand(spec, access, self._region(operand), operand_decorators, operand)
                )
        return tuple(operands)

    def _region(self, node: ast.Operand) -> Region | None:
        if isinstance(node.value, ast.RegionExpr):
            return self._declared_region(node.value, None, ())
        symbol = self.names.operand(node.value)
        value = symbol.value if symbol is not None else None
        return value if isinstance(value, Region) else None

    def _attribute(self, opcode: Opcode | None, node: ast.Attribute) -> object:
        """Names in an attribute are looked up unless the registry says that it holds a word."""
        spec = opcode.attribute(node.name.name) if opcode is not None else None
        if isinstance(node.value, ast.NameRef) and (
            spec is None or spec.type in ("elem_type", "id")
        ):
            symbol = self.names.scope.find(node.value.name)
            if symbol is None or symbol.kind not in ("let", "const"):
                return node.value.name
        return self.expressions.value(node.value)

    def _decorators(self, nodes: tuple[ast.Decorator, ...]) -> tuple[Decorator, ...]:
        return tuple([self._decorator(node) for node in nodes]) if nodes else ()

    def _decorator(self, node: ast.Decorator) -> Decorator:
        if node.args is None:
            return Decorator(node.name.name, None, node)
        spec = DECORATORS.get(node.name.name)
        takes_number = spec is not None and spec.argument in ("integer", "index")
        values = tuple(self._argument(argument, takes_number) for argument in node.args)
        return Decorator(node.name.name, values, node)

    def _argument(self, node: ast.Value | ast.UnitRef, takes_number: bool) -> object:
        if isinstance(node, ast.UnitRef):
            return UnitIndex(node.unit.name, self.expressions.resolve(node.index, VALUE))
        if isinstance(node, ast.NameRef) and not takes_number:
            return node.name
        return self.expressions.value(node)


def _binds_to_operand(decorator: Decorator) -> bool:
    spec = DECORATORS.get(decorator.name)
    return spec is not None and spec.binds_to_operand


def _spec_at(specs: tuple[OperandSpec, ...], index: int) -> OperandSpec | None:
    if index < len(specs):
        return specs[index]
    return specs[-1] if specs and specs[-1].variadic else None


def _window(decorators: tuple[Decorator, ...]) -> int:
    for decorator in decorators:
        if decorator.name == "max_in_flight" and decorator.arguments:
            value = decorator.arguments[0]
            if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
                return value
    return 1

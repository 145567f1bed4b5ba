"""A program with its names resolved: buffers, regions, tasks, waits and loops as values.

Expressions are folded; those that depend on loop variables stay symbolic. None stands for a
part whose mistake has been reported; readers stay silent about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from msgspec import Struct

from nacre.base.compression_forms import MAX_PALETTE_BITS, CompressionForm
from nacre.base.source import Source, Span
from nacre.base.terms import LoopVariable, Term
from nacre.nem.model.folding import Folded
from nacre.nem.spec.opcodes import Opcode, OperandSpec
from nacre.nem.syntax import ast

Level = Literal["DDR", "L2", "L1"]
Access = Literal["read", "write"]


class Buffer(Struct, frozen=True):
    """A storage object."""

    name: str
    index: int  # in the order of declarations
    level: Level | None
    engine: int | None  # of L1 only; an unindexed L1 is engine 0
    size: int | None
    align: int
    in_loop: bool
    node: ast.BufferDecl

    @property
    def memory(self) -> str:
        """The memory that holds it: `DDR`, `L2` or `L1[k]`."""
        return f"L1[{self.engine}]" if self.level == "L1" else str(self.level)

    @property
    def debug_name(self) -> str | None:
        """What `@debug` calls it."""
        return debug_name(self.node.decorators)


@dataclass(frozen=True, slots=True)
class Quant:
    """A quantisation descriptor; scales and zero points are tuples, of one entry per tensor."""

    form: Literal["per_tensor", "per_channel", "per_group"]
    axis: int | None
    group_size: int | None
    scales: tuple[object, ...] | None
    zero_points: tuple[object, ...] | None
    node: ast.Quant = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Decorator:
    """A decorator with its arguments resolved; a unit is a pair of name and index."""

    name: str
    arguments: tuple[object, ...] | None
    node: ast.Decorator = field(repr=False, compare=False)


def debug_name(decorators: Iterable[ast.Decorator]) -> str | None:
    """The name that `@debug` gives an object for tools; None where it has none."""
    for decorator in decorators:
        if decorator.name.name != "debug" or not decorator.args:
            continue
        argument = decorator.args[0]
        if isinstance(argument, ast.NameRef):
            return argument.name
        if isinstance(argument, ast.StringLit):
            return argument.value
    return None


class UnitIndex(Struct, frozen=True):
    """The argument of `@resource`."""

    unit: str
    index: Folded


class Compression(Struct, frozen=True):
    """How a region holds its elements compressed; a figure that was reported is missing."""

    name: Literal["palette", "sparse"]
    bits: int | None  # of a palette
    tables: int
    node: ast.Compressed

    @property
    def form(self) -> CompressionForm | None:
        """As the codec takes it; None where a figure is missing or was reported."""
        if self.name == "sparse":
            return CompressionForm("sparse")
        if self.bits is None or not 1 <= self.bits <= MAX_PALETTE_BITS or self.tables < 1:
            return None
        return CompressionForm("palette", self.bits, self.tables)


class Type(Struct, frozen=True, eq=False):
    """The type attributes of a region, or of a `let` that names them for many."""

    elem: str | None
    shape: tuple[Folded, ...] | None
    layout: str | None
    strides: tuple[Folded, ...] | None
    quant: Quant | None
    node: ast.TypeAttrs


class Region(Struct, frozen=True, eq=False):
    """A view into a buffer; offsets, extents and dimensions may depend on loop variables."""

    name: str | None  # of its `let` or declaration; None where it stands in a task itself
    buffer: Buffer | None
    offset: Folded
    extent: Folded
    elem: str | None
    shape: tuple[Folded, ...] | None
    layout: str | None
    strides: tuple[Folded, ...] | None
    quant: Quant | None
    decorators: tuple[Decorator, ...]
    loops: tuple[Loop, ...]  # around its declaration
    node: ast.RegionExpr
    compression: Compression | None = None  # the type is that of its elements as they become

    @property
    def type_node(self) -> ast.TypeAttrs | None:
        """The type attributes, whether the region is compressed or not."""
        type_ = self.node.type
        return type_.plain if isinstance(type_, ast.Compressed) else type_

    @property
    def has_type(self) -> bool:
        """Whether type attributes stand on it, right or wrong."""
        return self.node.type is not None

    def carries(self, decorator: str) -> bool:
        """Whether a decorator stands on the region's declaration."""
        return any(d.name == decorator for d in self.decorators)

    @property
    def debug_name(self) -> str | None:
        """What `@debug` calls it."""
        return debug_name(d.node for d in self.decorators)


class Let(Struct, frozen=True, eq=False):
    """A `let` that stands for a number, which may depend on loop variables."""

    name: str
    value: Term | float
    loops: tuple[Loop, ...]  # around its declaration


class Operand(Struct, frozen=True, eq=False):
    """A region as a task uses it, bound to the registry's signature by position."""

    spec: OperandSpec | None  # None: one too many
    access: Access
    region: Region | None
    decorators: tuple[Decorator, ...]
    node: ast.Operand

    def carries(self, decorator: str) -> bool:
        """Whether a decorator stands on this use or on the region's declaration."""
        is_on_use = any(d.name == decorator for d in self.decorators)
        return is_on_use or (self.region is not None and self.region.carries(decorator))


class Task(Struct, frozen=True, eq=False):
    """A transfer, store or compute statement."""

    position: int  # among all statements, in the order of the text
    op: str
    opcode: Opcode | None  # None: not in the registry
    is_sync: bool
    token: str | None
    operands: tuple[Operand, ...]
    deps: tuple[int, ...]  # positions of the tasks
    attributes: Mapping[str, object]
    decorators: tuple[Decorator, ...]
    loops: tuple[Loop, ...]  # around it, outermost first
    node: ast.Copy | ast.Compute

    def __repr__(self) -> str:
        # Tasks, loops and regions point at each other: the whole would be most of the program.
        return f"<Task {self.name}>"

    @property
    def name(self) -> str:
        """The token's name, or the opcode and the place in the program."""
        return self.token if self.token is not None else f"{self.op}#{self.position}"

    def decorator(self, name: str) -> Decorator | None:
        """The task's decorator of that name."""
        for decorator in self.decorators:
            if decorator.name == name:
                return decorator
        return None

    @property
    def debug_name(self) -> str | None:
        """What `@debug` calls it: its own name, or that of the innermost loop that has one."""
        name = debug_name([d.node for d in self.decorators])
        for loop in reversed(self.loops):
            if name is not None:
                break
            name = debug_name([d.node for d in loop.decorators])
        return name

    def regions(self, access: Access) -> list[Region]:
        """The regions that the task reads, or writes."""
        return [o.region for o in self.operands if o.access == access and o.region is not None]


class Wait(Struct, frozen=True, eq=False):
    """A `wait` statement."""

    position: int
    tokens: tuple[int, ...]  # positions of the tasks
    loops: tuple[Loop, ...]
    node: ast.Wait

    def __repr__(self) -> str:
        return f"<Wait #{self.position}>"


@dataclass(slots=True)
class Loop:
    """A loop. Its body is filled in when it has been read: tasks inside point back at the loop."""

    position: int
    variable: LoopVariable
    first: Folded
    last: Folded
    window: int  # of `@max_in_flight`; 1 where it is absent or wrong
    decorators: tuple[Decorator, ...]
    loops: tuple[Loop, ...] = field(repr=False)
    node: ast.Loop = field(repr=False)
    body: tuple[Statement, ...] = ()
    end: int = 0  # the position of its `endloop`

    @property
    def depth(self) -> int:
        """How many loops are around it."""
        return len(self.loops)


Statement = Task | Wait | Loop


@dataclass(frozen=True)
class Program:
    """What the rules and the plan look at."""

    source: Source
    document: ast.Document
    constants: Mapping[str, int]
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    regions: tuple[Region, ...]  # every region that is declared or written in a task, once
    # No statement was lost to a syntax error, and every token was found: order can be judged.
    is_whole: bool = True
    lets: tuple[Let, ...] = ()  # of numbers; regions are above

    def span(self, node: ast.Node) -> Span:
        """Where a node stands."""
        return self.source.span(node.start, node.end)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """Every statement in the order of the text."""
        return tuple(_walk(self.body))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every task in the order of the text."""
        return tuple(s for s in self.statements if isinstance(s, Task))

    @cached_property
    def task_at(self) -> dict[int, Task]:
        """The tasks by their positions."""
        return {task.position: task for task in self.tasks}

    @cached_property
    def barriers(self) -> tuple[Statement, ...]:
        """What holds back everything further down: waits, synchronous tasks, loops."""
        return tuple(s for s in self.statements if not isinstance(s, Task) or s.is_sync)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop in the order of the text."""
        return tuple(s for s in self.statements if isinstance(s, Loop))


def _walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    stack = [iter(body)]
    while stack:
        statement = next(stack[-1], None)
        if statement is None:
            stack.pop()
            continue
        yield statement
        if isinstance(statement, Loop):
            stack.append(iter(statement.body))

"""A program as values: what the schedule makes and the emitter writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nacre.base.compression_forms import CompressionForm
from nacre.compile.partition.items import Quant

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Affine:
    """An offset: a number, and multiples of loop variables or of `(variable mod slots)`."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def plus(self, constant: int = 0, *terms: tuple[str, int]) -> Affine:
        """The same with more added."""
        return Affine(self.constant + constant, (*self.terms, *(t for t in terms if t[1])))

    def times(self, factor: int) -> Affine:
        """Every term times a number."""
        terms = tuple((name, n * factor) for name, n in self.terms if n * factor)
        return Affine(self.constant * factor, terms)

    def with_added(self, other: Affine) -> Affine:
        """Two offsets together; multiples of one variable become one."""
        sums: dict[str, int] = {}
        for name, n in (*self.terms, *other.terms):
            sums[name] = sums.get(name, 0) + n
        return Affine(self.constant + other.constant, tuple((k, n) for k, n in sums.items() if n))

    def __str__(self) -> str:
        # Parentheses, for read from left to right the value would be another one.
        products = [f"{name} * {factor}" for name, factor in self.terms]
        text = " + ".join([*products[:1], *(f"({product})" for product in products[1:])])
        if not text:
            return str(self.constant)
        if not self.constant:
            return text
        return f"{text} {'+' if self.constant > 0 else '-'} {abs(self.constant)}"


@dataclass(frozen=True)
class Region:
    """Some bytes of a buffer, and what they hold where that matters."""

    buffer: str
    offset: Affine
    size: int
    elem: str = ""
    shape: Dims = ()
    layout: str = ""
    strides: Dims = ()
    quant: Quant | None = None  # one scale, or one for each index of the last axis
    compressed: CompressionForm | None = None  # how the bytes hold the elements


@dataclass(frozen=True)
class Let:
    """A region with a name."""

    name: str
    region: Region


@dataclass(frozen=True)
class Copy:
    """A transfer or a store."""

    token: str
    op: str
    dst: Region | str
    src: Region | str
    deps: tuple[str, ...] = ()
    debug: str = ""
    ahead: bool = False  # for all tiles of a layer: it may stand among the tasks of another
    engine: int | None = None  # that it counts for, where it touches no L1
    is_early: bool = False  # layers further down need it: nothing had better wait for it now


@dataclass(frozen=True)
class Compute:
    """A compute task; operands are names of regions."""

    token: str
    op: str
    inputs: tuple[str, ...]
    output: str
    deps: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    debug: str = ""
    ahead: bool = False
    value: int | None = None  # of the legal module, which it makes or prepares


@dataclass(frozen=True)
class Wait:
    """Later statements start after these."""

    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Arrived:
    """Tasks that are likely to be complete from here on; it is not written down."""

    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Comment:
    """A line for readers."""

    text: str


@dataclass(frozen=True)
class Loop:
    """Iterations from `first` to `last`, so many of them at a time."""

    variable: str
    first: int
    last: int
    window: int
    body: tuple[Statement, ...]
    debug: str = ""


Statement = Let | Copy | Compute | Wait | Arrived | Comment | Loop


@dataclass(frozen=True)
class Buffer:
    """A buffer of the program."""

    name: str
    level: str
    size: int
    comment: str = ""


@dataclass(frozen=True)
class Program:
    """A whole program."""

    name: str
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...]


def tasks_of(statements: Sequence[Statement]) -> list[Copy | Compute]:
    """Every task, those in loops too."""
    tasks: list[Copy | Compute] = []
    for statement in statements:
        if isinstance(statement, Copy | Compute):
            tasks.append(statement)
        elif isinstance(statement, Loop):
            tasks += tasks_of(statement.body)
    return tasks

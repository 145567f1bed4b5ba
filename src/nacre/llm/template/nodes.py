"""What a template is made of: one frozen class a production, with the line of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, a number, `true`, `false`, `none`."""

    value: str | int | float | bool | None
    line: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list, or a tuple."""

    items: tuple[Expression, ...]
    line: int


@dataclass(frozen=True, slots=True)
class DictLiteral:
    """Pairs in braces."""

    pairs: tuple[tuple[Expression, Expression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Subscript:
    """`value.name` or `value[key]`."""

    value: Expression
    key: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Slice:
    """`value[start:end:step]`."""

    value: Expression
    bounds: tuple[Expression | None, Expression | None, Expression | None]
    line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function with arguments, a method, a filter or a test by its name."""

    kind: str  # `function`, `method`, `filter`, `test`
    name: str
    arguments: tuple[Expression, ...]  # of all but a function the value comes first
    named: tuple[tuple[str, Expression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A sign between or before values; `and`, `or`, `not`, `in` among them."""

    sign: str
    operands: tuple[Expression, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Conditional:
    """`a if condition else b`."""

    condition: Expression
    then: Expression
    otherwise: Expression | None
    line: int


Expression = (
    Constant | Name | ListLiteral | DictLiteral | Subscript | Slice | Call | Operation | Conditional
)


@dataclass(frozen=True, slots=True)
class Text:
    """What is written as it is."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Output:
    """What is written of a value."""

    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class If:
    """Branches in order, each with its condition; of `else` it is None."""

    branches: tuple[tuple[Expression | None, tuple[Statement, ...]], ...]
    line: int


@dataclass(frozen=True, slots=True)
class For:
    """A loop over values, or over those that a condition takes."""

    names: tuple[str, ...]
    values: Expression
    condition: Expression | None
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Set:
    """A variable, or a field of a namespace, gets a value, or what a block writes."""

    name: str
    field: str | None
    value: Expression | tuple[Statement, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` or `continue`."""

    is_break: bool
    line: int


Statement = Text | Output | If | For | Set | Jump

"""Operations as text, in the generic form, with their places and what surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nacre.base.source import Source
from nacre.nem.mlir.operation_spans import OperationSpan
from nacre.nem.mlir.scopes import Scopes
from nacre.nem.mlir.values import quote

# Registered wherever `mlir-opt` is, and content in any body: IRDL knows none of ours for that.
TERMINATOR = "omp.terminator"


class TypedValue(NamedTuple):
    """A value of the module: its name in the text, and its type."""

    name: str
    type: str  # buffer, region, token


class OperationWriter:
    """Writes operations one after the other; knows which names are values."""

    def __init__(
        self, source: Source, written: Sequence[OperationSpan], around: Sequence[list[str]]
    ) -> None:
        self._source = source  # what the user wrote, to which locations point
        self._written = written
        self._around = around  # the attributes that say what surrounds each place
        self._file = quote(source.name)
        self._at = 0
        self._indent = "  "
        self._names: dict[str, int] = {}
        self._numbers = 0
        self._location = ""
        self._values: Scopes[TypedValue] = Scopes()
        self.lines: list[str] = []

    def begin(self) -> list[str]:
        """Go on to the next place; the attributes that say what surrounds it."""
        at = self._at
        self._at += 1
        self._location = self._location_text(self._written[at])
        return self._around[at]

    def _location_text(self, span: OperationSpan) -> str:
        offsets = [span.start, span.end]
        if span.closing is not None:
            offsets.append(span.closing)
        marks = (
            f"{self._file}:{line}:{column}" for line, column in map(self._source.position, offsets)
        )
        return f" loc(fused[{', '.join(marks)}])"

    def write(
        self,
        name: str,
        attributes: Iterable[str],
        operands: Sequence[TypedValue] = (),
        result: TypedValue | None = None,
    ) -> None:
        """An operation without a body."""
        entries = ", ".join(attributes)
        braces = f" {{{entries}}}" if entries else ""
        self.lines.append(
            f"{self._indent}{self._head(name, operands, result)}"
            f"{braces}{_type_text(operands, result)}{self._location}"
        )

    def _head(self, name: str, operands: Sequence[TypedValue], result: TypedValue | None) -> str:
        assignment = f"{result.name} = " if result is not None else ""
        return f'{assignment}"nem.{name}"({", ".join(operand.name for operand in operands)})'

    def open(self, name: str) -> str:
        """Begin an operation with a body; what `close` needs."""
        self.lines.append(f'{self._indent}"nem.{name}"() ({{')
        self._indent += "  "
        self._values.open()
        return self._location

    def close(self, attributes: Iterable[str], location: str) -> None:
        """End it; its attributes stand behind its body."""
        self._values.close()
        self.lines.append(f'{self._indent}"{TERMINATOR}"() : () -> (){location}')
        self._indent = self._indent[:-2]
        entries = ", ".join(attributes)
        braces = f" {{{entries}}}" if entries else ""
        self.lines.append(f"{self._indent}}}){braces} : () -> (){location}")

    def define(self, name: str, type_: str) -> TypedValue:
        """A new value, under a name that resembles the one in the program."""
        count = self._names[name] = self._names.get(name, 0) + 1
        # `$` is in no name of the language: what has one cannot be meant by another.
        value = TypedValue(f"%{name}" if count == 1 else f"%{name}${count}", type_)
        self._values.define(name, value)
        return value

    def define_other(self, name: str) -> None:
        """A name that is no operand: of a constant, or a loop's variable."""
        self._values.define(name, None)

    def unnamed(self, type_: str) -> TypedValue:
        """A new value without a name in the program."""
        self._numbers += 1
        return TypedValue(f"%{self._numbers - 1}", type_)

    def find(self, name: str, type_: str) -> TypedValue:
        """The value of that name; one that is looked up later where no operation defines it."""
        value = self._values.find(name)
        if value is not None and value.type == type_:
            return value
        result = self.unnamed(type_)
        self.write("lookup", [f'name = "{name}"'], result=result)
        return result


def _type_text(operands: Sequence[TypedValue], result: TypedValue | None) -> str:
    types = ", ".join(f"!nem.{operand.type}" for operand in operands)
    return f" : ({types}) -> {f'!nem.{result.type}' if result is not None else '()'}"

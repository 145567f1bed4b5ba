"""What the verifier looks things up in: numbers for types and attributes, places in text."""

from __future__ import annotations

from itertools import accumulate

from nacre.base.source import Source, Span
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import Profile
from nacre.core.rules.signature import dimension_problem, element_problem
from nacre.core.text.operations import operation_text
from nacre.core.values import Attributes


class AttributeNumbers:
    """Numbers for attributes: the same number for the same values of the same types."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[object, int] = {}

    def number(self, given: Attributes) -> int:
        """The number; -1 for what cannot be compared, or not cheaply."""
        number = self._by_identity.get(id(given))
        if number is None:
            try:
                key = None if "data" in given else (*given, *map(_exact_key, given.values()))
                number = -1 if key is None else self._by_value.setdefault(key, len(self._by_value))
            except (TypeError, RecursionError):  # made by hand, of something that has no hash
                number = -1
            self._by_identity[id(given)] = number
        return number


def _exact_key(value: object) -> object:
    """A key for a value that tells `1`, `1.0`, `true` and a word from a string: they are equal."""
    if not isinstance(value, tuple):
        return type(value), value
    kinds = tuple(map(type, value))
    if all(kind is int for kind in kinds):
        return type(value), value
    return type(value), kinds, tuple(map(_exact_key, value))


class TypeNumbers:
    """Numbers for types, and which of them nothing can be built on."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[TensorType, int] = {}
        self._all: list[TensorType] = []
        self._sound: list[bool] = []

    def number(self, type_: TensorType) -> int:
        """The number; equal types have the same one."""
        found = self._by_identity.get(id(type_))
        if found is None:
            found = self._by_identity[id(type_)] = self._new(type_)
        return found

    def _new(self, type_: TensorType) -> int:
        is_sound = (
            dimension_problem(type_) is None and element_problem(type_, self._profile) is None
        )
        number = self._by_value.get(type_) if is_sound else None
        if number is None:
            number = len(self._all)
            self._all.append(type_)
            self._sound.append(is_sound)
            if is_sound:
                self._by_value[type_] = number
        return number

    def type(self, number: int) -> TensorType:
        """The type with a number."""
        return self._all[number]

    def is_sound(self, number: int) -> bool:
        """Whether a type is one of the profile's, with a shape that can be."""
        return self._sound[number]


class CanonicalSpans:
    """Where the parts of a module stand in its canonical text."""

    def __init__(self, module: Module) -> None:
        self._count = len(module.operations)
        lines = [_line(op) for op in module.operations]
        lines += ["outputs:", *("state:" for _ in module.states)]
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self._source = Source("<module>", "\n".join(lines) + "\n")

    def span(self, kind: str, index: int) -> Span:
        """The line of a part."""
        line = index if kind == "operation" else self._count
        if kind == "state":
            line += 1 + index
        return self._source.span(self._starts[line], self._starts[line + 1] - 1)


def _line(op: CoreOperation) -> str:
    try:
        return operation_text(op).replace("\n", " ")
    except (TypeError, ValueError, AttributeError, RecursionError):
        return "# an operation that cannot be printed"  # made by hand, of the wrong types

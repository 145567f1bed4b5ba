"""Which parameter of a model an array comes from: its memory lies inside of the parameter's.

Importers lay weights out anew before anything becomes a constant: they transpose, cut, cast. A view
lies in the memory of what it looks at; of a copy the importer says what it was copied from.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from nacre.core.values import Array

Names = tuple[str, ...]
Span = tuple[int, int]  # the first byte, and that behind the last


@dataclass
class _Parameter:
    """The memory of a parameter, and the parts of it that were asked for."""

    end: int
    names: Names
    parts: dict[Span, int] = field(default_factory=dict)


@dataclass(eq=False)
class Origins:
    """The names of parameters by the memory that they lie in."""

    _starts: list[int] = field(default_factory=list)
    _known: dict[int, _Parameter] = field(default_factory=dict)  # by where they start
    _kept: list[object] = field(default_factory=list)  # an address is only its own while it lives
    _owners: dict[str, str] = field(default_factory=dict)  # by the names of parts

    def add(self, owner: object, span: Span, names: Names) -> None:
        """A parameter lies in the memory of an owner; two in the same memory are tied."""
        start, end = span
        if not names or start >= end:
            return
        parameter = self._containing(span)
        if parameter is None:
            insort(self._starts, start)
            self._known[start] = _Parameter(end, names)
            self._kept.append(owner)
        elif self._known.get(start) is parameter and parameter.end == end:
            parameter.names = tuple(dict.fromkeys((*parameter.names, *names)))

    def of(self, span: Span) -> Names:
        """The names of the parameter that memory belongs to; () where there is none.

        Of several parts of one parameter the first is called after it, others are numbered too.
        """
        parameter = self._containing(span)
        if parameter is None:
            return ()
        number = parameter.parts.setdefault(span, len(parameter.parts))
        if number == 0:
            return parameter.names
        parts = tuple(f"{name}.{number}" for name in parameter.names)
        self._owners.update(zip(parts, parameter.names, strict=True))
        return parts

    def parts_of(self, owners: Container[str], names: Iterable[Names]) -> frozenset[str]:
        """Of parameters and parts of them the first names of those that are of some owners."""
        return frozenset(first for first, *_ in names if self._owner_of(first) in owners)

    def _owner_of(self, name: str) -> str:
        """The name of the parameter that a part of that name belongs to."""
        while name in self._owners:
            name = self._owners[name]
        return name

    def owners(self, span: Span) -> Names:
        """The names of the parameter that memory belongs to, whichever part of it that is."""
        found = self._containing(span)
        return () if found is None else found.names

    def _containing(self, span: Span) -> _Parameter | None:
        at = bisect_right(self._starts, span[0]) - 1
        found = self._known[self._starts[at]] if at >= 0 else None
        return found if found is not None and span[1] <= found.end else None

    def add_array(self, array: Array, names: Names) -> None:
        """The same for an array."""
        self.add(array, array_span(array), names)

    def of_array(self, array: Array) -> Names:
        """The same for an array, which may be a view."""
        return self.of(array_span(array)) if self._starts else ()


def array_span(array: Array) -> Span:
    """The memory that an array lies in."""
    address: int = array.__array_interface__["data"][0]
    return span_of(address, array.shape, array.strides, array.itemsize)


def span_of(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Span:
    """The memory from the first element to the last; strides are in bytes, and may be negative."""
    if 0 in shape:
        return address, address
    reaches = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)]
    low, high = (sum(pick(reach, 0) for reach in reaches) for pick in (min, max))
    return address + low, address + high + itemsize

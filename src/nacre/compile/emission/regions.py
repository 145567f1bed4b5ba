"""Fewer names for regions: none for what one copy uses, one for what a layer's tiles share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace

from nacre.compile.emission.names import layers_of_regions, operand_names
from nacre.compile.program import Compute, Copy, Let, Loop, Region, Statement


def regions_in_copies(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same statements, without names for regions that a single copy beside them uses."""
    uses = Counter(_used_names(statements))
    named = {s.name: s.region for s in statements if isinstance(s, Let) and uses[s.name] == 1}
    beside = {
        name
        for s in statements
        if isinstance(s, Copy)
        for name in operand_names(s)
        if name in named
    }
    return tuple(
        _with_regions(statement, named)
        for statement in statements
        if not (isinstance(statement, Let) and statement.name in beside)
    )


def _used_names(statements: Sequence[Statement]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, Loop):
            yield from _used_names(statement.body)
        elif isinstance(statement, Copy | Compute):
            yield from operand_names(statement)


def _with_regions(statement: Statement, named: Mapping[str, Region]) -> Statement:
    if isinstance(statement, Loop):
        return replace(statement, body=regions_in_copies(statement.body))
    if not isinstance(statement, Copy):
        return statement
    dst, src = (
        named.get(side, side) if isinstance(side, str) else side
        for side in (statement.dst, statement.src)
    )
    if dst is statement.dst and src is statement.src:
        return statement
    return replace(statement, dst=_as_copied(dst, src), src=_as_copied(src, dst))


def _as_copied(side: Region | str, other: Region | str) -> Region | str:
    """A region without its type where the other one has none: bytes are copied then."""
    if isinstance(side, str) or isinstance(other, str) or other.elem or side.compressed:
        return side
    return Region(side.buffer, side.offset, side.size)


def regions_declared_once(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same statements, where tiles of a layer that use a region again use its first name."""
    return tuple(_declared_once(statements, layers_of_regions(statements), {}, {}))


_Declared = MutableMapping[tuple[str, Region], str]  # a layer and a region -> the region's name


def _declared_once(
    statements: Sequence[Statement],
    layers: Mapping[str, str],
    declared: _Declared,
    first_names: MutableMapping[str, str],
) -> Iterator[Statement]:
    for statement in statements:
        if isinstance(statement, Loop):
            # What a body declares ends with it; names of two bodies may be the same.
            inner = _declared_once(statement.body, layers, dict(declared), dict(first_names))
            yield replace(statement, body=tuple(inner))
        elif isinstance(statement, Let):
            name, region = statement.name, statement.region
            first_names[name] = first = declared.setdefault((layers.get(name, ""), region), name)
            if first == name:
                yield statement
        elif isinstance(statement, Copy):
            dst, src = (
                first_names.get(side, side) if isinstance(side, str) else side
                for side in (statement.dst, statement.src)
            )
            yield replace(statement, dst=dst, src=src)
        elif isinstance(statement, Compute):
            inputs = tuple(first_names.get(name, name) for name in statement.inputs)
            output = first_names.get(statement.output, statement.output)
            yield replace(statement, inputs=inputs, output=output)
        else:
            yield statement

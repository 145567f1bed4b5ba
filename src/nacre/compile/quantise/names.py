"""What layers and values are called: in a precision map, in the report, in notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.compile.legalise import Legal
from nacre.compile.origins import source_name
from nacre.compile.rules import CMP10
from nacre.core.module import Labels, Module

_PLACE = whole_file("<quantise>")
_MOST_NAMED = 5  # layers in a help
_MOVES = frozenset({"Transpose", "Reshape", "ExpandDims", "Squeeze", "Broadcast"})


def forced_floats(
    legal: Legal, source: Module, precision_map: Mapping[str | int, str]
) -> frozenset[int]:  # fmt: skip
    """The values that the precision map keeps in floats; InputError for what names no layer."""
    names = {value: _names(legal, source, value) for value in legal.module.by_id}
    found: set[int] = set()
    problems = []
    for layer, precision in precision_map.items():
        if precision != "f16":
            told = f"the precision of `{layer}` is `{precision}`, expected `f16`"
            problems.append(CMP10.at(_PLACE, told))
        hits = {value for value, own in names.items() if _matches(layer, own)}
        if not hits:
            problems.append(_unknown(layer, source, names.values()))
        # What only moves elements about goes with what it is moved for.
        found |= {v for v in hits if legal.module.by_id[v].opcode not in _MOVES} or hits
    if problems:
        raise InputError(problems)
    return frozenset(found)


def _unknown(
    layer: str | int, source: Module, names: Iterable[tuple[str, ...]]
) -> Diagnostic:  # fmt: skip
    """What is wrong with a name: it is misspelt, or of a node that computes nothing."""
    name = f"%{layer}" if isinstance(layer, int) else layer
    labels = source.labels or Labels()
    nodes = {own for op in source.operations for own in labels.names(op.value_id)}
    if name in nodes or name in {f"%{value}" for value in source.by_id}:
        told = f"node `{name}` is in no layer: nothing is left of it to compute"
        return CMP10.at(_PLACE, told, help="name the node before or after it")
    known = sorted({one for own in names for one in own})
    called = [one for one in known if not one.startswith("%")] or known
    more = f" and {len(called) - _MOST_NAMED} more" if len(called) > _MOST_NAMED else ""
    there = ", ".join(f"`{one}`" for one in called[:_MOST_NAMED]) + more
    help_ = did_you_mean(name, known) or f"layers are called {there}" if called else None
    return CMP10.at(_PLACE, f"no layer is called `{name}`", help=help_)


def _matches(layer: str | int, names: tuple[str, ...]) -> bool:
    if isinstance(layer, int):
        return f"%{layer}" in names
    return any(name == layer or fnmatchcase(name, layer) for name in names)


def _names(legal: Legal, source: Module, value: int) -> tuple[str, ...]:
    """What a value of the legal module may be called: after its nodes, and after its numbers."""
    labels = source.labels or Labels()
    origins = legal.origins.get(value, ())
    names = [name for origin in origins for name in labels.names(origin)]
    return (*names, *(f"%{origin}" for origin in origins))


def layer_name(legal: Legal, source: Module, value: int) -> str:
    """A layer in the report: by its first name."""
    return next(iter(_names(legal, source, value)), f"legal %{value}")


def note_name(legal: Legal, source: Module, value: int) -> str:
    """A value for a note, by what it is in the source."""
    number = next(iter(legal.origins.get(value, ())), None)
    return f"legal %{value}" if number is None else source_name(source, number)

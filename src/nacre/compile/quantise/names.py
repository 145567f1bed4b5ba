"""What layers and values are called: in a precision map, in the report, in notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.compile.legalise.legal_module import Legal
from nacre.compile.legalise.origins import source_value_text
from nacre.compile.quantise.roles import Graph
from nacre.compile.rules import CMP10
from nacre.core.module import Labels, Module

_PLACE = whole_file("<quantise>")
LAYER_PRECISIONS = ("f16", "i8")
_MOST_NAMED = 5  # layers in a help
_MOVES = frozenset({"Transpose", "Reshape", "ExpandDims", "Squeeze", "Broadcast"})


class ForcedPrecision(NamedTuple):
    """The values that a precision map keeps in floats, and those that it keeps on integers."""

    floats: frozenset[int] = frozenset()
    integers: frozenset[int] = frozenset()


def forced_values(
    legal: Legal, source: Module, precision_map: Mapping[str | int, str], graph: Graph
) -> ForcedPrecision:
    """What the precision map says; the last entry about a value counts.

    InputError for what names no layer, and for integers where nothing has a form on them.
    """
    names = {value: _names(legal, source, value) for value in legal.module.by_id}
    precisions: dict[int, str] = {}
    problems = []
    for layer, precision in precision_map.items():
        if precision not in LAYER_PRECISIONS:
            message = f"the precision of `{layer}` is `{precision}`, expected `f16` or `i8`"
            problems.append(CMP10.at(_PLACE, message))
        hits = {value for value, own in names.items() if _matches(layer, own)}
        if not hits:
            problems.append(_unknown(layer, source, names.values()))
        elif precision == "i8" and all(graph.roles[value] == "island" for value in hits):
            message = f"`{layer}` has no form on integers: it stays f16"
            problems.append(CMP10.at(_PLACE, message, help="leave it out of the precision map"))
        # What only moves elements about goes with what it is moved for.
        own = {v for v in hits if legal.module.by_id[v].opcode not in _MOVES} or hits
        precisions.update(dict.fromkeys(own, precision))
    if problems:
        raise InputError(problems)
    return ForcedPrecision(*(
        frozenset(value for value, own in precisions.items() if own == precision)
        for precision in LAYER_PRECISIONS
    ))  # fmt: skip


def _unknown(
    layer: str | int, source: Module, names: Iterable[tuple[str, ...]]
) -> Diagnostic:  # fmt: skip
    """What is wrong with a name: it is misspelt, or of a node that computes nothing."""
    name = f"%{layer}" if isinstance(layer, int) else layer
    labels = source.labels or Labels()
    nodes = {own for op in source.operations for own in labels.names(op.value_id)}
    if name in nodes or name in {f"%{value}" for value in source.by_id}:
        message = f"node `{name}` is in no layer: nothing is left of it to compute"
        return CMP10.at(_PLACE, message, help="name the node before or after it")
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
    return f"legal %{value}" if number is None else source_value_text(source, number)

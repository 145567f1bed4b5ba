"""Where the operations of a legal module come from: those of the model, its nodes, its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nacre.base.excerpt import backquote
from nacre.base.source import Span, whole_file
from nacre.compile.legalise.legal_module import Origins
from nacre.core.evaluation.run import value_span
from nacre.core.module import CoreOperation, Module
from nacre.core.rewrite.labels import kind_of

if TYPE_CHECKING:
    from nacre.compile.legalise.legal_module import Legal

# Of nodes in a message: characters of a name, and how many are named.
_LONGEST, _MOST_NAMES = 120, 4
# They say how what was made before them is stored; everything else prepares what follows.
_STORING = frozenset({"Quantize"})


def origins_of(module: Module, source: Module) -> Origins:
    """What the labels of a module say, whose labels are numbers of a source."""
    assert module.labels is not None
    origins: dict[int, tuple[int, ...]] = {}
    for op in module.operations:
        numbers = tuple(map(int, module.labels.names(op.value_id)))
        if numbers:
            origins[op.value_id] = _order_by_kind(op, numbers, source)
    return origins


def _order_by_kind(op: CoreOperation, numbers: tuple[int, ...], source: Module) -> tuple[int, ...]:
    """The operation of the same kind first: parts of an attention are what they were before."""
    kind = kind_of(op)
    alike = [n for n in numbers if n in source.by_id and kind_of(source.by_id[n]) == kind]
    return tuple(dict.fromkeys((*alike[:1], *numbers)))


def complete_origins(module: Module, known: Origins) -> Origins:
    """Origins for every operation: what has none is part of what it is made for.

    What turns floats into integers is part of what made them.
    """
    origins = dict(known)
    for op in reversed(module.operations):
        for operand in op.operands if op.value_id in origins else ():
            if operand not in origins and not _is_storing(module, operand):
                origins[operand] = origins[op.value_id]
    for op in module.operations:
        before = next((origins[o] for o in op.operands if o in origins), None)
        if op.value_id not in origins and before is not None:
            origins[op.value_id] = before
    for op in reversed(module.operations):  # constants beside what has just been named
        for operand in op.operands if op.value_id in origins else ():
            origins.setdefault(operand, origins[op.value_id])
    return origins


def _is_storing(module: Module, value: int) -> bool:
    return module.by_id[value].opcode in _STORING


def nodes_of(legal: Legal, values: Iterable[int]) -> tuple[str, ...]:
    """What the model calls the nodes that some values come from, the main one of each first."""
    source = legal.source
    if source is None or source.labels is None:
        return ()
    origins = [legal.origins.get(value, ()) for value in values]
    mains = [number for numbers in origins for number in numbers[:1]]
    others = [number for numbers in origins for number in numbers[1:]]
    names = [name for number in (*mains, *others) for name in source.labels.names(number)]
    return tuple(dict.fromkeys(names))


def nodes_text(legal: Legal, values: Iterable[int]) -> str:
    """The main nodes of some values for a message: ` (node ..)`; nothing where none has a name."""
    by_value = [nodes_of(legal, (value,))[:1] for value in values]
    names = list(dict.fromkeys(name for names in by_value for name in names))
    if not names:
        return ""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    listed = ", ".join((*(backquote(name, _LONGEST) for name in names[:_MOST_NAMES]), *more))
    return f" (node{'s' if len(names) > 1 else ''} {listed})"


def source_value_text(source: Module, number: int) -> str:
    """A value of the source for a message, with its node, or with that of who uses a constant."""
    labels = source.labels
    if labels is None:
        return f"%{number}"
    users = (op.value_id for op in source.operations if number in op.operands)
    names = labels.names(number) or next(filter(None, map(labels.names, users)), ())
    return f"%{number}" + (f" (node {backquote(names[0], _LONGEST)})" if names else "")


def source_operation_text(legal: Legal, op: CoreOperation) -> str:
    """An operation for a message, by what it is in the source: `ArgMax` %3 (node ..)."""
    number = next(iter(legal.origins.get(op.value_id, ())), None)
    if number is None or legal.source is None:
        return f"`{op.opcode}`"
    return f"`{op.opcode}` {source_value_text(legal.source, number)}"


def legal_operation_text(legal: Legal, op: CoreOperation) -> str:
    """An operation of the legal module, with its node: `ArgMax %12 (node ..)`."""
    return f"{op.opcode} %{op.value_id}{nodes_text(legal, (op.value_id,))}"


def place_of(legal: Legal, values: Iterable[int]) -> Span:
    """Where the model has what the first of some values comes from.

    In its text where it was read from text; as a whole where it is a file of nodes, which the
    message names; else in the line of the module that was given.
    """
    source = legal.source
    number = next((legal.origins[value][0] for value in values if value in legal.origins), None)
    if source is None or number is None:
        return model_place(legal)
    if source.source_spans is None and source.labels is not None and source.labels.source:
        return whole_file(source.labels.source)
    return value_span(source, number)


def model_place(legal: Legal) -> Span:
    """The model as a whole: its file, or the module that was given."""
    source = legal.source
    if source is not None and source.labels is not None and source.labels.source:
        return whole_file(source.labels.source)
    if source is not None and source.source_spans is not None:
        return whole_file(source.source_spans.source.name)
    return whole_file("<module>")

"""What depends on places alone, as tables with a row for each: f16 cannot hold angles."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.core.constants import CONSTANTS
from nacre.core.module import Module
from nacre.core.rewrite.dead_code import dead_code
from nacre.llm.model.problems import refusal
from nacre.llm.rules.graph import LLM31
from nacre.llm.rules.model import LLM06

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PlaceTable:
    """A row for each place, and the axis of the value along which tokens lie."""

    rows: Array  # [places, elements of a token]
    axis: int


@dataclass(frozen=True)
class Positional:
    """Values that follow from places: those in between, and the tables of those that others use."""

    values: Set[int]
    tables: Mapping[int, PlaceTable]


def find_positional(
    name: str, module: Module, positions: str, context: int, tokens: int
) -> Positional:
    """What of a module follows from the input `positions` and constants alone."""
    start = next(op for op in module.inputs if op.attributes["name"] == positions)
    known, found = set[int](), {start.value_id}
    for op in module.operations:
        if op.opcode in CONSTANTS:
            known.add(op.value_id)
        elif op.operands and found.intersection(op.operands) and {*op.operands} <= known | found:
            found.add(op.value_id)
    used = {o for op in module.operations if op.value_id not in found for o in op.operands}
    wanted = sorted(v for v in found & used if module.by_id[v].type.element.kind == "float")
    if not wanted:
        return Positional(frozenset(found), {})
    runs = _runs(name, module, positions, wanted, context, tokens)
    tables = {v: _table(name, runs, at, context, tokens) for at, v in enumerate(wanted)}
    return Positional(frozenset(found), tables)


def _runs(
    name: str, module: Module, positions: str, wanted: list[int], context: int, tokens: int
) -> dict[int, list[Array]]:
    """The values at every place that a chunk may begin at so that all places are met, and at 1."""
    ids, operations = set(wanted), []
    for op in reversed(module.operations):
        if op.value_id in ids and (op.opcode != "Input" or op.attributes["name"] == positions):
            operations.append(op)
            ids.update(op.operands)
    part = dead_code(Module(tuple(reversed(operations)), tuple(wanted)))
    session, offsets = part.session(), np.arange(tokens)
    last = context - tokens
    starts = sorted({min(at, last) for at in range(0, context, tokens)} | {min(1, last)})
    try:
        return {
            at: [np.array(a) for a in session.run({positions: (offsets + at)[None]})]
            for at in starts
        }
    except (InputError, IndexError) as error:
        message = f"tables of positions have no {context:,} rows: {error}"
        raise refusal(LLM06, name, message[:200], "ask for a smaller context") from None


def _table(
    name: str, runs: Mapping[int, list[Array]], at: int, context: int, tokens: int
) -> PlaceTable:
    """The table of a value: its rows at a chunk's places are the value, wherever it begins."""
    shape = next(iter(runs.values()))[at].shape
    for axis in (axis for axis, size in enumerate(shape) if size == tokens):
        parts = {start: np.moveaxis(made[at], axis, 0) for start, made in runs.items()}
        first = parts[0].reshape(tokens, -1)
        rows = np.zeros((context, first.shape[1]), first.dtype)
        for start, part in parts.items():
            rows[start : start + tokens] = part.reshape(tokens, -1)
        is_table = all(
            np.array_equal(rows[start : start + tokens], part.reshape(tokens, -1), equal_nan=True)
            for start, part in parts.items()
        )
        if is_table:
            return PlaceTable(rows, axis)
    message = f"a value of shape {list(shape)} depends on all places of a step, not on each alone"
    raise refusal(LLM31, name, message)

"""Lines of tasks that stand on several: a clause a line, for all tasks of a kind at once.

A clause that does not fit on its line is broken further, one by one (`breaks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nacre.base.binary.column_forms import Integers
from nacre.nem.bytecode.batches import Batch
from nacre.nem.bytecode.breaks import (
    Break,
    Place,
    compute_clause_breaks,
    copy_clause_breaks,
    statement_breaks,
)
from nacre.nem.bytecode.kinds import CODES
from nacre.nem.syntax import ast
from nacre.nem.syntax.layout import INDENT, WIDTH

Flags = npt.NDArray[np.bool_]


class InnerLines(NamedTuple):
    """Lines that begin inside statements, and the statements that they belong to."""

    starts: Integers
    indents: Integers
    drops: Flags
    opens: Flags  # whether the line before opened a block
    closes: Flags
    owners: Integers

    @classmethod
    def of(cls, breaks: Iterable[tuple[int, Break]]) -> InnerLines:
        """Those of breaks that were found one by one."""
        rows = [(*break_, owner) for owner, break_ in breaks]
        columns = list(zip(*rows, strict=True)) or [()] * 6
        kinds = (np.int64, np.int64, np.bool_, np.bool_, np.bool_, np.int64)
        return cls(*(np.array(c, kind) for c, kind in zip(columns, kinds, strict=True)))

    @classmethod
    def join(cls, parts: list[InnerLines]) -> InnerLines:
        """Several as one."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Tasks(NamedTuple):
    """Tasks of one kind that stand on several lines."""

    batch: Batch
    rows: Integers
    indents: Integers
    owners: Integers

    @property
    def starts(self) -> Integers:
        """Where they start, all on one line."""
        return self.batch.starts[self.rows]

    @property
    def ends(self) -> Integers:
        """Where they end."""
        return self.starts + self.batch.widths[self.rows]

    def first(self, name: str) -> tuple[Flags, Integers]:
        """Which have something in a list, and where the first of it starts (elsewhere 0)."""
        children = self.batch.children[name]
        counts = children.counts[self.rows]
        begins = np.zeros(len(self.rows), np.int64)
        has_some = counts > 0
        if has_some.any():
            at = (children.ends[self.rows] - counts)[has_some]
            begins[has_some] = self.starts[has_some] + self.batch.begins[name][at]
        return has_some, begins

    def lines(
        self, starts: Integers, indent: int, drops: bool, opens: bool = False, closes: bool = False
    ) -> InnerLines:
        """A line of each task."""
        count = len(starts)
        marks, opened, closed = (np.full(count, flag) for flag in (drops, opens, closes))
        return InnerLines(starts, self.indents + indent, marks, opened, closed, self.owners)

    def only(self, which: Flags) -> Tasks:
        """Some of them."""
        return Tasks(self.batch, self.rows[which], self.indents[which], self.owners[which])

    def too_wide(self, starts: Integers, ends: Integers) -> Flags:
        """Where a clause does not fit on its line."""
        return ends - starts + (self.indents + 1) * INDENT > WIDTH


def copy_lines(tasks: Tasks) -> list[InnerLines]:
    """Transfers and stores: an argument a line, and the closing parenthesis."""
    batch, rows = tasks.batch, tasks.rows
    dst = tasks.starts + batch.begins["dst"][rows] - len("dst=")
    src = tasks.starts + batch.begins["src"][rows] - len("src=")
    has_deps, deps = tasks.first("deps")
    deps -= len("deps=[")
    is_decorated, decorators = tasks.first("decorators")
    closing = np.where(is_decorated, decorators - len(") "), tasks.ends - 1)
    behind = np.where(has_deps, deps - 1, closing)
    rare = has_deps & tasks.too_wide(deps, closing)
    wide = {"dst": tasks.too_wide(dst, src - 1), "src": tasks.too_wide(src, behind)}
    types = {name: _plain_types(batch.children[name].parts[0].batch) for name in wide}
    for name in wide:  # an operand is the node of its task
        rare |= wide[name] & ~types[name][0][rows]
    easy = {name: wide[name] & ~rare for name in wide}
    return [
        *(tasks.only(easy[name]).lines(types[name][1][rows][easy[name]], 2, True) for name in wide),
        tasks.lines(dst, 1, False, opens=True),
        tasks.lines(src, 1, True),
        tasks.only(has_deps).lines(deps[has_deps], 1, True),
        tasks.lines(closing, 0, False, closes=True),
        _further(tasks.only(rare), copy_clause_breaks),
    ]


def compute_lines(tasks: Tasks) -> list[InnerLines]:
    """Compute tasks: operands, dependences, each attribute and decorators on lines of their own."""
    _, inputs = tasks.first("inputs")
    _, outputs = tasks.first("outputs")
    has_deps, deps = tasks.first("deps")
    has_attributes, attributes = tasks.first("attributes")
    is_decorated, decorators = tasks.first("decorators")
    inputs, outputs, deps = inputs - len("in "), outputs - len("out "), deps - len("deps=[")
    end = np.where(is_decorated, decorators - 1, tasks.ends)
    after_deps = np.where(has_attributes, attributes - 1, end)
    after_outputs = np.where(has_deps, deps - 1, after_deps)
    rare = tasks.too_wide(inputs, outputs - 1) | tasks.too_wide(outputs, after_outputs)
    rare |= has_deps & tasks.too_wide(deps, after_deps)
    each, is_wide = _attribute_lines(tasks, end)
    return [
        tasks.lines(inputs, 1, True),
        tasks.lines(outputs, 1, True),
        tasks.only(has_deps).lines(deps[has_deps], 1, True),
        each,
        tasks.only(is_decorated).lines(decorators[is_decorated], 1, True),
        _further(tasks.only(rare | is_wide), compute_clause_breaks),
    ]


def let_lines(tasks: Tasks) -> list[InnerLines]:
    """Lets: of regions whose type has no quantisation, the type and decorators have lines."""
    all_plain, all_types = _plain_types(tasks.batch)
    is_plain, types = all_plain[tasks.rows], all_types[tasks.rows]
    plain = tasks.only(is_plain)
    is_decorated, decorators = plain.first("decorators")
    return [
        plain.lines(types[is_plain], 1, True),
        plain.only(is_decorated).lines(decorators[is_decorated], 1, True),
        _further(tasks.only(~is_plain), statement_breaks),
    ]


def _plain_types(batch: Batch) -> tuple[Flags, Integers]:
    """Which values are regions with a type but no quantisation, and where that type starts."""
    is_plain, starts = np.zeros(batch.count, bool), np.zeros(batch.count, np.int64)
    for part in batch.children["value"].parts:
        if part.batch.code == CODES[ast.RegionExpr]:
            own = np.arange(part.size) if part.where is None else part.where
            found = part.batch.children["type"]
            for inner in found.parts:
                if inner.batch.code == CODES[ast.Compressed]:
                    continue
                quant = inner.batch.children["quant"].selector
                at = np.arange(found.size) if inner.where is None else inner.where
                if quant is not None:
                    starts[own[at]] = inner.batch.starts[inner.rows]
                    is_plain[own[at]] = quant[inner.rows] == 0
    return is_plain, starts


def statement_lines(tasks: Tasks) -> list[InnerLines]:
    """Declarations and waits, one by one."""
    return [_further(tasks, statement_breaks)]


def _attribute_lines(tasks: Tasks, ends: Integers) -> tuple[InnerLines, Flags]:
    """A line an attribute; and the tasks that have one that is broken further."""
    children = tasks.batch.children["attributes"]
    counts = children.counts[tasks.rows]
    which = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(children.ends[tasks.rows] - counts - (np.cumsum(counts) - counts), counts)
    items = first + np.arange(len(which))
    starts = tasks.starts[which] + tasks.batch.begins["attributes"][items]
    each = Tasks(tasks.batch, tasks.rows[which], tasks.indents[which], tasks.owners[which])
    lines = each.lines(starts, 1, True)
    broken = np.zeros(len(counts), bool)
    if len(which):
        part = children.parts[0]
        nodes = part.offset + items
        widths = part.batch.widths[nodes]
        is_region = np.zeros(part.batch.count, bool)
        values = part.batch.children["value"]
        for value in values.parts:
            if value.batch.code == CODES[ast.RegionExpr]:
                is_region[slice(None) if value.where is None else value.where] = True
        wide = each.too_wide(starts, starts + widths) | is_region[nodes]
        broken[which[wide]] = True
    return lines, broken


def _further(tasks: Tasks, breaks: Callable[[Place, int], Iterator[Break]]) -> InnerLines:
    """What is broken inside the clauses of some tasks."""
    rows = zip(tasks.rows.tolist(), tasks.indents.tolist(), tasks.owners.tolist(), strict=True)
    return InnerLines.of(
        (owner, break_)
        for row, indent, owner in rows
        for break_ in breaks(Place(tasks.batch, row), indent)
    )

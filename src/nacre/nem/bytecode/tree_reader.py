"""Columns to batches: level by level, every count bounded before anything of that size is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.base.binary.columns import ColumnReader
from nacre.base.binary.cursor import Broken, ByteReader
from nacre.base.terms import INT64_MAX, INT64_MIN
from nacre.nem.bytecode.batches import Batch, Children, Part
from nacre.nem.bytecode.kinds import DOCUMENT, ENUMS, Field
from nacre.nem.spec.limits import MAX_BYTECODE_DEPTH
from nacre.nem.spec.rules.bytecode import BYT06, BYT07, BYT08
from nacre.nem.syntax.ast import Compressed, Quant


@dataclass
class ReadTree:
    """The batches of a document, those above before those that they hold."""

    batches: list[Batch] = field(default_factory=list)
    count: int = 0
    levels: int = 0
    widths: Integers = field(default_factory=lambda: np.zeros(0, np.int64))  # of all nodes
    starts: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def document(self) -> Batch:
        """The batch with the document alone."""
        return self.batches[0]


def read_tree(reader: ByteReader, pools: Mapping[str, Sequence[str]]) -> ReadTree:
    """The batches of a document, to the end of its section."""
    return _TreeReader(reader, pools).read()


class _TreeReader:
    def __init__(self, reader: ByteReader, pools: Mapping[str, Sequence[str]]) -> None:
        self._start = reader.at
        self._left = reader.varint("the number of nodes")
        reader.require_most(self._left, "nodes")
        self._most_text = reader.most_text
        self._columns = ColumnReader(reader, "the tree")
        self._pools = pools
        self._pending: list[tuple[Batch, Field, int]] = []  # scalars, and their columns
        self._tree = ReadTree()

    def read(self) -> ReadTree:
        level = [self._batch(DOCUMENT, 1, frozenset((DOCUMENT,)))]
        while level:
            self._tree.levels += 1
            if self._tree.levels > MAX_BYTECODE_DEPTH:
                message = f"nodes stand more than {MAX_BYTECODE_DEPTH:,} levels deep"
                raise Broken(BYT07, self._start, message)
            level = self._read_level(level)
        if self._left:
            raise Broken(BYT06, self._start, f"{self._left:,} of the nodes are not there")
        self._read_scalars()
        return self._tree

    def _batch(self, code: int, count: int, above: frozenset[int] | None) -> Batch:
        if count > self._left:
            message = f"more nodes than the {self._tree.count + self._left:,} that are announced"
            raise Broken(BYT06, self._start, message)
        batch = Batch(code, count, self._tree.count, above)
        self._tree.batches.append(batch)
        self._tree.count += count
        self._left -= count
        return batch

    def _read_level(self, level: list[Batch]) -> list[Batch]:
        following: list[Batch] = []
        merged: dict[int, list[tuple[Children, int, Integers | None]]] = {}
        for batch in level:
            for column in batch.kind.fields:
                if column.scalar:
                    self._pending.append((batch, column, self._columns.skip(batch.count)))
                    continue
                children = self._children(batch, column)
                batch.children[column.name] = children
                self._descend(batch, column, children, following, merged)
        return following + [self._merge(code, merged[code]) for code in sorted(merged)]

    def _bounded(self, count: int, first: int, last: int, what: str) -> tuple[Integers, int | None]:
        values, only = self._columns.take(count)
        if only is None:
            is_within = first <= int(values.min()) and int(values.max()) <= last
        else:
            is_within = first <= only <= last
        if not is_within:
            message = f"{what} has a number outside {first} to {last:,}"
            raise Broken(BYT08, self._start, message)
        return values, only

    def _read_scalars(self) -> None:
        columns = self._columns.finish()
        uses: dict[str, list[Integers]] = {}
        for batch, column, number in self._pending:
            batch.scalars[column.name] = columns[number]
            uses.setdefault(column.scalar, []).append(columns[number])
        for scalar, used in uses.items():
            self._judge(scalar, np.concatenate(used))
        for scalar, pool in self._pools.items():
            if pool and scalar not in uses:
                raise Broken(BYT06, self._start, f"no {scalar} of the file is used")

    def _judge(self, scalar: str, values: Integers) -> None:
        first, last = INT64_MIN, INT64_MAX
        if scalar != "integer":
            first, last = 0, len(ENUMS[scalar] if scalar in ENUMS else self._pools[scalar]) - 1
        if int(values.min()) < first or int(values.max()) > last:
            message = f"there is a {scalar} outside {first} to {last:,}"
            raise Broken(BYT08, self._start, message)
        if scalar not in self._pools:
            return
        lengths = np.array([len(text) for text in self._pools[scalar]], np.int64)
        if int(lengths[values].sum()) > self._most_text:
            message = f"a text of more than {self._most_text:,} characters"
            raise Broken(BYT07, self._start, message)
        known = np.maximum.accumulate(values)
        is_ordered = int(values[0]) == 0 and bool((known[1:] <= known[:-1] + 1).all())
        if not is_ordered or int(known[-1]) != last:
            message = f"{scalar}s are not those of the tree in the order of their first use"
            raise Broken(BYT06, self._start, message)

    def _children(self, batch: Batch, column: Field) -> Children:
        what = f"{batch.kind.name}.{column.name}"
        children = Children(batch.count)
        if column.is_many:
            lengths, _ = self._bounded(batch.count, 0, self._left + 1, what)
            children.lengths = lengths - 1 if column.is_optional else lengths
            children.size = int(children.counts.sum())
            if children.size > self._left:
                message = f"{what} has more nodes than the {self._left:,} that are left"
                raise Broken(BYT06, self._start, message)
        if column.has_selector and children.size:
            first = 0 if column.is_optional and not column.is_many else 1
            children.selector, children.rank = self._bounded(
                children.size, first, len(column.options), what
            )
        return children

    def _descend(
        self,
        batch: Batch,
        column: Field,
        children: Children,
        following: list[Batch],
        merged: dict[int, list[tuple[Children, int, Integers | None]]],
    ) -> None:
        """The batches of what a field holds; of kinds within themselves, one for all at a level."""
        for rank, count in children.ranks():
            code = column.options[rank - 1]
            where = np.flatnonzero(children.selector == rank) if count < children.size else None
            if batch.above is None or code in batch.above:
                merged.setdefault(code, []).append((children, count, where))
                continue
            made = self._batch(code, count, batch.above | {code})
            made.may_be_negative = batch.kind.type in (Quant, Compressed) and column.options == (
                code,
            )
            children.parts.append(Part(made, 0, count, where))
            following.append(made)

    def _merge(self, code: int, uses: list[tuple[Children, int, Integers | None]]) -> Batch:
        merged = self._batch(code, sum(count for _, count, _ in uses), None)
        offset = 0
        for children, count, where in uses:
            children.parts.append(Part(merged, offset, count, where))
            offset += count
        return merged

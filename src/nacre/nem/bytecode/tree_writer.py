"""A document as columns: one a field of each batch of nodes that stand in the same place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.nem.bytecode.kinds import CODES, COMPRESSED, DOCUMENT, ENUMS, KINDS, EndLoop, Field
from nacre.nem.syntax.ast import Document, Loop, Node, Stmt

_RANKS = {name: {word: i for i, word in enumerate(words)} for name, words in ENUMS.items()}


@dataclass(frozen=True, slots=True)
class NodeBatch:
    """Nodes of one kind. `above` are the kinds that they stand in; None: merged with others."""

    code: int
    nodes: list[Node]
    above: frozenset[int] | None


@dataclass(slots=True)
class TreeColumns:
    """What a tree becomes: columns in their order, texts in the order of their first use."""

    columns: list[Integers] = field(default_factory=list)
    batches: list[NodeBatch] = field(default_factory=list)
    pools: dict[str, dict[str, int]] = field(
        default_factory=lambda: {"name": {}, "number": {}, "text": {}}
    )

    @property
    def has_compressed(self) -> bool:
        """Whether regions are compressed."""
        return any(batch.code == COMPRESSED for batch in self.batches)

    @property
    def nodes(self) -> Iterator[Node]:
        """Every node, in the order of the file."""
        return (node for batch in self.batches for node in batch.nodes)


def statements_in_order(body: Sequence[Stmt]) -> Iterator[Node]:
    """The statements of a body and of the loops in it, and where the loops end."""
    stack = [iter(body)]
    loops: list[Loop] = []
    while stack:
        statement = next(stack[-1], None)
        if statement is None:
            stack.pop()
            if loops:
                loop = loops.pop()
                yield EndLoop(loop.endloop, loop.end)
            continue
        yield statement
        if isinstance(statement, Loop):
            loops.append(statement)
            stack.append(iter(statement.body))


def tree_columns(document: Document) -> TreeColumns:
    """The columns of a document, level by level: nodes, then what they hold."""
    columns = TreeColumns()
    level = [NodeBatch(DOCUMENT, [document], frozenset((DOCUMENT,)))]
    while level:
        columns.batches += level
        following: list[NodeBatch] = []
        merged: dict[int, list[Node]] = {}
        for batch in level:
            for column in KINDS[batch.code].fields:
                _add_field(columns, batch, column, following, merged)
        level = following + [NodeBatch(code, merged[code], None) for code in sorted(merged)]
    return columns


def _add_field(
    tree: TreeColumns,
    batch: NodeBatch,
    column: Field,
    following: list[NodeBatch],
    merged: dict[int, list[Node]],
) -> None:
    values = [getattr(node, column.name) for node in batch.nodes]
    if column.scalar:
        tree.columns.append(_scalars(tree, column.scalar, values))
        return
    if batch.code == DOCUMENT and column.name == "body":
        values = [tuple(statements_in_order(values[0]))]
    if column.is_many:
        lengths = [-1 if items is None else len(items) for items in values]
        tree.columns.append(np.array(lengths, np.int64) + column.is_optional)
        values = [item for items in values if items is not None for item in items]
    if column.has_selector and values:
        ranks: dict[type, int] = {KINDS[code].type: i for i, code in enumerate(column.options, 1)}
        ranks[type(None)] = 0
        tree.columns.append(np.array([ranks[type(value)] for value in values], np.int64))
    for code in column.options:
        nodes = [value for value in values if CODES.get(type(value)) == code]
        if not nodes:
            continue
        if batch.above is None or code in batch.above:
            merged.setdefault(code, []).extend(nodes)
        else:
            following.append(NodeBatch(code, nodes, batch.above | {code}))


def _scalars(tree: TreeColumns, scalar: str, values: list[Any]) -> Integers:
    if scalar == "integer":
        return np.array(values, np.int64)
    if scalar in _RANKS:
        ranks = _RANKS[scalar]
        return np.array([ranks[value] for value in values], np.int64)
    pool = tree.pools[scalar]
    return np.array([pool.setdefault(value, len(pool)) for value in values], np.int64)

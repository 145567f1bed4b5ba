"""Batches to nodes: every batch in one go, what is held before what holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nacre.base.binary.column_forms import Integers
from nacre.base.collection import no_collection
from nacre.nem.bytecode.batches import Batch, Children
from nacre.nem.bytecode.foreign import PLACES, Places
from nacre.nem.bytecode.kinds import CODES, DOCUMENT, ENUMS, KINDS, EndLoop
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.syntax.ast import Document, Loop, Node, Stmt

Pools = Mapping[str, Sequence[str]]
Words = Mapping[str, npt.NDArray[np.object_]]  # of pools and enumerations, to be looked up at once

_FIELDS = {
    code: [field.name for field in msgspec.structs.fields(kind.type)[2:]]
    for code, kind in KINDS.items()
}
_PLACES = {
    code: names
    for code, fields in _FIELDS.items()
    if (names := [name for name in fields if name in PLACES])
}
_ENUM_WORDS = {name: np.array(words, object) for name, words in ENUMS.items()}
_LOOP, _END = CODES[Loop], CODES[EndLoop]
_LOOP_COLUMNS = ("variable", "first", "last", "decorators")


def build(tree: ReadTree, pools: Pools, places: Places) -> Document:
    """The document that batches stand for, its nodes at these places."""
    with no_collection():
        return _build(tree, pools, places)


def _build(tree: ReadTree, pools: Pools, places: Places) -> Document:
    starts, ends = places.starts, places.ends
    offsets = {
        first: {name: _offsets(name, column.tolist()) for name, column in found.items()}
        for first, found in words_by_batch(tree, places.words).items()
    }
    words = {**_ENUM_WORDS, **{name: np.array(pool, object) for name, pool in pools.items()}}
    for batch in reversed(tree.batches):
        rows = slice(batch.first, batch.first + batch.count)
        if batch.code == DOCUMENT:
            break
        first, last = starts[rows].tolist(), ends[rows].tolist()
        if batch.code == _LOOP:
            columns = [_column(batch, name, words) for name in _LOOP_COLUMNS]
            batch.nodes = list(zip(first, last, *columns, strict=True))  # type: ignore[arg-type]
        else:
            known = offsets.get(batch.first, {})
            columns = [
                known[name] if name in known else _column(batch, name, words)
                for name in _FIELDS[batch.code]
            ]
            batch.nodes = list(map(batch.kind.type, first, last, *columns))
    return _document(tree.document, words, int(starts[0]), int(ends[0]))


def words_by_batch(tree: ReadTree, words: Integers) -> dict[int, dict[str, Integers]]:
    """Of batches whose nodes say where words stand: those columns, by the first node's number."""
    by_batch: dict[int, dict[str, Integers]] = {}
    at = 0
    for batch in tree.batches:
        for name in _PLACES.get(batch.code, ()):
            size = batch.count * (2 if name == "starts" else 1)
            by_batch[batch.first] = {name: words[at : at + size]}
            at += size
    return by_batch


def _offsets(name: str, words: list[int]) -> list[Any]:
    """What nodes have as the field: of `starts`, two words each."""
    return list(zip(words[::2], words[1::2], strict=True)) if name == "starts" else words


def _column(batch: Batch, name: str, words: Words) -> Iterable[Any]:
    if name in batch.scalars:
        return _scalars(batch, name, words)
    children = batch.children[name]
    if children.lengths is not None:
        return _lists(children)
    return children.nodes() if children.parts else repeat(None, children.size)


def _scalars(batch: Batch, name: str, words: Words) -> list[Any]:
    values = batch.scalars[name]
    scalar = next(field.scalar for field in batch.kind.fields if field.name == name)
    scalars: list[Any] = (values if scalar == "integer" else words[scalar].take(values)).tolist()
    return scalars


def _lists(children: Children) -> Iterable[tuple[Node | None, ...] | None]:
    assert children.lengths is not None
    lengths = children.lengths.tolist()
    shortest, longest = min(lengths), max(lengths)
    if shortest == longest >= 0:
        one = iter(children.nodes())
        return zip(*[one] * longest, strict=True) if longest else repeat((), len(lengths))
    items, ends = tuple(children.nodes()), children.ends.tolist()
    lists = [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    if shortest >= 0:
        return lists
    return [None if length < 0 else one for one, length in zip(lists, lengths, strict=True)]


def _document(batch: Batch, words: Words, start: int, end: int) -> Document:
    includes, configs, device, header, _ = (
        next(iter(_column(batch, name, words))) for name in _FIELDS[DOCUMENT]
    )
    return Document(start, end, includes, configs, device, header, _body(batch.children["body"]))


def _body(children: Children) -> tuple[Stmt, ...]:
    """The statements, those of loops inside them."""
    nodes: list[Any] = children.nodes()
    marks = [
        part.where if part.where is not None else np.arange(part.size)
        for part in children.parts
        if part.batch.code in (_LOOP, _END)
    ]
    if not marks:
        return tuple(nodes)
    bodies: list[list[Any]] = [[]]
    heads: list[Any] = []
    at = 0
    for mark in np.sort(np.concatenate(marks)).tolist():
        bodies[-1] += nodes[at:mark]
        at = mark + 1
        node = nodes[mark]
        if not isinstance(node, EndLoop):
            heads.append(node)
            bodies.append([])
            continue
        begun, header_end, variable, first, last, decorators = heads.pop()
        body = tuple(bodies.pop())
        loop = Loop(
            begun, node.end, variable, first, last, decorators, body, header_end, node.start
        )
        bodies[-1].append(loop)
    return tuple(bodies[0] + nodes[at:])

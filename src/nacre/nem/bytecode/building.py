"""Batches to nodes: every batch in one go, what is held before what holds it."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

import msgspec
import numpy as np

from nacre.nem.bytecode.batches import Batch, Children
from nacre.nem.bytecode.foreign import PLACES, Places
from nacre.nem.bytecode.kinds import CODES, DOCUMENT, ENUMS, KINDS, EndLoop
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.syntax.ast import Document, Loop, Node, Stmt

Pools = Mapping[str, Sequence[str]]

_FIELDS = {
    code: [field.name for field in msgspec.structs.fields(kind.type)[2:]]
    for code, kind in KINDS.items()
}
_PLACES = {
    code: names
    for code, fields in _FIELDS.items()
    if (names := [name for name in fields if name in PLACES])
}
_LOOP, _END = CODES[Loop], CODES[EndLoop]
_LOOP_COLUMNS = ("variable", "first", "last", "decorators")


def build(tree: ReadTree, pools: Pools, places: Places) -> Document:
    """The document that batches stand for, its nodes at these places."""
    is_collecting = gc.isenabled()
    gc.disable()  # nothing of a tree is garbage while it grows, and looking takes a tenth of it
    try:
        return _build(tree, pools, places)
    finally:
        if is_collecting:
            gc.enable()


def _build(tree: ReadTree, pools: Pools, places: Places) -> Document:
    starts, ends = places.starts, places.ends
    words = _share_words(tree, places.words.tolist())
    for batch in reversed(tree.batches):
        rows = slice(batch.first, batch.first + batch.count)
        if batch.code == DOCUMENT:
            break
        first, last = starts[rows].tolist(), ends[rows].tolist()
        if batch.code == _LOOP:
            columns = [_column(batch, name, pools) for name in _LOOP_COLUMNS]
            batch.nodes = list(zip(first, last, *columns, strict=True))  # type: ignore[arg-type]
        else:
            known = words.get(batch.first, {})
            columns = [
                known[name] if name in known else _column(batch, name, pools)
                for name in _FIELDS[batch.code]
            ]
            batch.nodes = list(map(batch.kind.type, first, last, *columns))
    return _document(tree.document, pools, int(starts[0]), int(ends[0]))


def _share_words(tree: ReadTree, words: list[int]) -> dict[int, dict[str, list[Any]]]:
    """Of batches whose nodes say where words stand: those columns, by the first node's number."""
    by_batch: dict[int, dict[str, list[Any]]] = {}
    at = 0
    for batch in tree.batches:
        for name in _PLACES.get(batch.code, ()):
            size = batch.count * (2 if name == "starts" else 1)
            offsets: list[Any] = words[at : at + size]
            at += size
            values = (
                list(zip(offsets[::2], offsets[1::2], strict=True)) if name == "starts" else offsets
            )
            by_batch[batch.first] = {name: values}
    return by_batch


def _column(batch: Batch, name: str, pools: Pools) -> Iterable[Any]:
    if name in batch.scalars:
        return _scalars(batch, name, pools)
    children = batch.children[name]
    if children.lengths is not None:
        return _lists(children)
    return children.nodes() if children.parts else repeat(None, children.size)


def _scalars(batch: Batch, name: str, pools: Pools) -> Iterable[Any]:
    values: list[int] = batch.scalars[name].tolist()
    scalar = next(field.scalar for field in batch.kind.fields if field.name == name)
    if scalar == "integer":
        return values
    words: Sequence[str | bool] = ENUMS[scalar] if scalar in ENUMS else pools[scalar]
    return map(words.__getitem__, values)


def _lists(children: Children) -> Iterable[tuple[Node | None, ...] | None]:
    assert children.lengths is not None
    lengths = children.lengths.tolist()
    longest = max(lengths)
    if longest == min(lengths) >= 0:
        one = iter(children.nodes())
        return zip(*[one] * longest, strict=True) if longest else repeat((), len(lengths))
    items = iter(children.nodes())
    if min(lengths) >= 0:
        return map(tuple, map(islice, repeat(items), lengths))
    return [None if length < 0 else tuple(islice(items, length)) for length in lengths]


def _document(batch: Batch, pools: Pools, start: int, end: int) -> Document:
    includes, configs, device, header, _ = (
        next(iter(_column(batch, name, pools))) for name in _FIELDS[DOCUMENT]
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

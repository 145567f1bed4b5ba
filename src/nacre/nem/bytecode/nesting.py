"""Positions in another text, held to the tree: parts stand within what they are parts of.

Findings join places: from the first bound of a loop to its last, from a key to its value. A file
whose positions no text has would make spans that end before they start.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nacre.base.binary.column_forms import Integers
from nacre.base.binary.cursor import Broken
from nacre.nem.bytecode.batches import Batch, Children
from nacre.nem.bytecode.building import Pools, words_by_batch
from nacre.nem.bytecode.foreign import Places
from nacre.nem.bytecode.kinds import CODES
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.spec.rules.bytecode import BYT05
from nacre.nem.syntax import ast

# Fields that every text has in this order; others, such as `dst` and `src`, are written in any.
_ORDERED: Final = {
    CODES[ast.Binary]: ("left", "right"),
    CODES[ast.RegionExpr]: ("buffer", "offset", "extent", "type"),
    CODES[ast.Loop]: ("variable", "first", "last"),
}
_NAME, _VARIANT = CODES[ast.NameRef], CODES[ast.VariantRef]
_SHORTEST: Final = {
    CODES[ast.Topology]: len("topology{}"),
    CODES[ast.DeviceConfig]: len("device d{}"),
}
_VALUE_OF: Final = {"l1_start": "l1_size", "spec_start": "spec_version"}  # behind its key


def judge_nesting(tree: ReadTree, pools: Pools, canonical: Places, there: Places, at: int) -> None:
    """Broken where no text has its parts at these places."""
    nesting = _Nesting(tree, there, at)
    for batch in tree.batches:
        nesting.judge_children(batch)
        nesting.judge_widths(batch, pools)
    nesting.judge_overlaps()
    nesting.judge_words(canonical)


class _Nesting:
    def __init__(self, tree: ReadTree, there: Places, at: int) -> None:
        self._tree, self._there, self._at = tree, there, at
        self._starts, self._ends = there.starts, there.ends
        self._holders: Integers = np.full(tree.count, -1, np.int64)  # the node that each is part of

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Broken(BYT05, self._at, f"positions that no text has: {what}")

    def judge_children(self, batch: Batch) -> None:
        """Parts lie within their node; items of a list, and some fields, stand in their order."""
        numbers: dict[str, Integers] = {}
        for name, children in batch.children.items():
            numbers[name] = _numbers(children)
            holders = batch.first + _rows(batch, children)
            found = numbers[name] >= 0
            parts, above = numbers[name][found], holders[found]
            self._holders[parts] = above
            is_within = (self._starts[parts] >= self._starts[above]).all()
            is_within &= (self._ends[parts] <= self._ends[above]).all()
            self._require(bool(is_within), f"a part of a {batch.kind.name} lies outside it")
            if children.lengths is not None:
                self._require(self._is_rising(parts, above), f"`{name}` are not in their order")
        for before, after in zip(*_pairs(batch.code), strict=True):
            both = (numbers[before] >= 0) & (numbers[after] >= 0)
            one, two = numbers[before][both], numbers[after][both]
            is_ordered = bool((self._ends[one] <= self._starts[two]).all())
            self._require(is_ordered, f"`{after}` stands before `{before}`")

    def _is_rising(self, parts: Integers, above: Integers) -> bool:
        is_next = above[1:] == above[:-1]
        rises = self._ends[parts[:-1]] <= self._starts[parts[1:]]
        return bool((rises | ~is_next).all())

    def judge_widths(self, batch: Batch, pools: Pools) -> None:
        """Names are as long as they are, and some nodes have words of their own."""
        rows = slice(batch.first, batch.first + batch.count)
        widths = self._ends[rows] - self._starts[rows]
        lengths = np.array([len(name) for name in pools["name"]], np.int64)
        what = f"a {batch.kind.name} is too short or too long"
        if batch.code == _NAME:
            self._require(bool((widths == lengths[batch.scalars["name"]]).all()), what)
        elif batch.code == _VARIANT:
            needed = lengths[batch.scalars["family"]] + lengths[batch.scalars["variant"]] + 1
            self._require(bool((widths >= needed).all()), what)
        else:
            self._require(bool((widths >= _SHORTEST.get(batch.code, 0)).all()), what)

    def judge_overlaps(self) -> None:
        """Parts of one node stand one behind the other, in whichever order."""
        order = np.lexsort((self._ends, self._starts, self._holders))
        is_apart = self._is_rising(order, self._holders[order])
        self._require(is_apart, "two parts of a node share characters")

    def judge_words(self, canonical: Places) -> None:
        """Words without a node stand in theirs, before their value; 0: there is none."""
        is_there = self._there.words != 0
        is_same = bool((is_there == (canonical.words != 0)).all())
        self._require(is_same, "a word without a node is missing, or there is one too many")
        words = words_by_batch(self._tree, self._there.words)
        for batch in self._tree.batches:
            rows = slice(batch.first, batch.first + batch.count)
            for name, offsets in words.get(batch.first, {}).items():
                table = offsets.reshape(batch.count, -1)
                limits = self._ends[rows].copy()
                if name in _VALUE_OF:
                    value = _numbers(batch.children[_VALUE_OF[name]])
                    limits[value >= 0] = self._starts[value[value >= 0]]
                fits = (table >= self._starts[rows, None]) & (table <= limits[:, None])
                what = f"a word of a {batch.kind.name} lies outside it"
                self._require(bool((fits | (table == 0)).all()), what)


def _pairs(code: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = _ORDERED.get(code, ())
    return names[:-1], names[1:]


def _numbers(children: Children) -> Integers:
    """Which node is at each place of a field; -1 where none is."""
    numbers = np.full(children.size, -1, np.int64)
    for part in children.parts:
        first = part.batch.first + part.offset
        found = np.arange(first, first + part.size)
        numbers[slice(None) if part.where is None else part.where] = found
    return numbers


def _rows(batch: Batch, children: Children) -> Integers:
    """Which node of the batch each place of a field belongs to."""
    rows = np.arange(batch.count)
    return rows if children.lengths is None else np.repeat(rows, children.counts)

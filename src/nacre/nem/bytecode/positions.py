"""Where everything stands in the canonical text of a program, worked out without that text.

Statements are first counted as if all stood behind each other on one line (`widths.py`). Lines,
indents, comments and blank lines then push what follows them further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.binary.column_forms import Integers
from nacre.base.binary.cursor import Broken
from nacre.nem.bytecode.clauses import (
    InnerLines,
    Tasks,
    compute_lines,
    copy_lines,
    let_lines,
    statement_lines,
)
from nacre.nem.bytecode.kinds import CODES, EndLoop
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.bytecode.trivia import ABOVE_BLANK, BEHIND, Trivia
from nacre.nem.bytecode.widths import set_starts, set_widths
from nacre.nem.spec.limits import MAX_LOOP_DEPTH, MAX_SOURCE_BYTES
from nacre.nem.spec.rules.bytecode import BYT07, BYT08
from nacre.nem.syntax import ast
from nacre.nem.syntax.layout import INDENT, WIDTH

Flags = npt.NDArray[np.bool_]
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True)
class Positions:
    """Of every node in the order of the file, and of every comment in the order of the text."""

    starts: Integers
    ends: Integers
    comment_starts: tuple[int, ...]
    size: int  # of the text


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of code: where each starts if all stood on one, and what is known of it."""

    starts: Integers
    indents: Integers
    drops: Flags  # whether the blank before it is dropped
    items: Flags  # begins a statement
    opens: Flags
    closes: Flags
    owners: Integers  # the number of its statement; negative: what stands before the statements
    end: int  # of the last one


def derive(tree: ReadTree, pools: Mapping[str, Sequence[str]], trivia: Trivia) -> Positions:
    """Positions in the canonical text; Broken where there is no such text."""
    set_widths(tree, pools)
    if int(tree.document.widths[0]) > MAX_SOURCE_BYTES:
        raise Broken(BYT07, 0, f"the program's text is longer than {MAX_SOURCE_BYTES:,} bytes")
    set_starts(tree)
    lines = _lines(tree, trivia)
    _judge(lines, trivia)
    return _place(tree, lines, trivia)


def _lines(tree: ReadTree, trivia: Trivia) -> Lines:
    body = _Body(tree)
    heads = _head_starts(tree)
    inner = body.inner_lines(trivia.broken)
    outer = np.concatenate([heads, body.starts])
    starts = np.concatenate([outer, inner.starts])
    order = np.argsort(starts, kind="stable")
    none, many = np.zeros(len(heads), np.int64), np.zeros(len(inner.starts), np.int64)
    lacks = np.zeros(len(outer), bool)
    opens = np.concatenate([none, body.is_loop, many])[order] > 0
    opens[:-1] |= np.concatenate([lacks, inner.opens])[order][1:]
    return Lines(
        starts[order],
        np.concatenate([none, body.indents, inner.indents])[order],
        np.concatenate([lacks, inner.drops])[order],
        np.concatenate([none + 1, 1 - body.is_end, many])[order] > 0,
        opens,
        np.concatenate([none, body.is_end, inner.closes])[order] > 0,
        np.concatenate([none - 1, np.arange(len(body.starts)), inner.owners])[order],
        int(tree.document.widths[0]),
    )


def _head_starts(tree: ReadTree) -> Integers:
    """Where includes, the device and the header start."""
    document = tree.document
    includes = document.begins["includes"]
    others = [
        document.begins[name] for name in ("device", "header") if document.children[name].parts
    ]
    return np.concatenate([includes, *others])


class _Body:
    """The statements of a program in their order, those of loops among them."""

    def __init__(self, tree: ReadTree) -> None:
        children = tree.document.children["body"]
        self._children = children
        self.starts = tree.document.begins["body"]
        size = children.size
        self._codes = np.zeros(size, np.int64)
        self._rows = np.zeros(size, np.int64)
        self._batches = {part.batch.code: part.batch for part in children.parts}
        for part in children.parts:
            where = slice(None) if part.where is None else part.where
            self._codes[where] = part.batch.code
            self._rows[where] = np.arange(part.size)
        self.is_loop = (self._codes == CODES[ast.Loop]).astype(np.int64)
        self.is_end = (self._codes == CODES[EndLoop]).astype(np.int64)
        self.indents = np.cumsum(self.is_loop) - self.is_loop - np.cumsum(self.is_end)
        self._judge_loops()

    def _judge_loops(self) -> None:
        if not len(self.starts):
            return
        is_balanced = int(self.indents.min()) >= 0
        is_balanced &= int(self.is_loop.sum()) == int(self.is_end.sum())
        if not is_balanced:
            raise Broken(BYT08, 0, "loops and their ends do not pair up")
        if int((self.indents + self.is_loop).max()) > MAX_LOOP_DEPTH:
            raise Broken(BYT07, 0, f"more than {MAX_LOOP_DEPTH} loops inside each other")

    def inner_lines(self, broken: Sequence[int]) -> InnerLines:
        """The lines that begin inside statements that do not stand on one."""
        widths = self._children.gather() if len(self.starts) else self.starts
        is_long = widths + INDENT * self.indents > WIDTH
        if broken:
            if broken[-1] >= len(is_long):
                raise Broken(BYT08, 0, "a statement is broken that is not there")
            if is_long[list(broken)].any():
                raise Broken(BYT08, 0, "a statement that is too long is said to fit")
            is_long[list(broken)] = True
        parts = [InnerLines.of(())]
        for code, batch in self._batches.items():
            owners = np.flatnonzero(is_long & (self._codes == code))
            if len(owners):
                tasks = Tasks(batch, self._rows[owners], self.indents[owners], owners)
                parts += _LINES.get(code, statement_lines)(tasks)
        return InnerLines.join(parts)


_LINES = {
    CODES[ast.LetDecl]: let_lines,
    CODES[ast.Copy]: copy_lines,
    CODES[ast.Compute]: compute_lines,
}


def _judge(lines: Lines, trivia: Trivia) -> None:
    """Refuse comments and blank lines that no canonical text has so."""
    count = len(lines.starts)
    behind: set[int] = set()
    above: set[int] = set()
    before = (-1, 0)
    for line, place in zip(trivia.lines, trivia.places, strict=True):
        key = (line, place == BEHIND)
        if line > count or (place == BEHIND and line >= count) or key < before or line in behind:
            raise Broken(BYT08, 0, "comments are not in the order of their lines")
        if place == ABOVE_BLANK and line not in above and (not line or lines.opens[line - 1]):
            raise Broken(BYT08, 0, "a blank line stands where a block begins")
        (behind if place == BEHIND else above).add(line)
        before = key
    for line in trivia.blanks:
        if line >= count or not lines.items[line]:
            raise Broken(BYT08, 0, "a blank line stands before no statement")
        if line not in above and (not line or lines.opens[line - 1]):
            raise Broken(BYT08, 0, "a blank line stands where a block begins")
    _judge_broken(lines, trivia, behind, above)


def _judge_broken(lines: Lines, trivia: Trivia, behind: set[int], above: set[int]) -> None:
    """A statement that fits on a line is broken only for comments among its lines."""
    for index in trivia.broken:
        line_numbers = np.flatnonzero(lines.owners == index).tolist()
        if len(line_numbers) < 2 or not (
            behind.intersection(line_numbers) or above.intersection(line_numbers[1:])
        ):
            raise Broken(BYT08, 0, "a statement is broken that has no comments")


def _place(tree: ReadTree, lines: Lines, trivia: Trivia) -> Positions:
    count = len(lines.starts)
    ends: Integers = np.append(lines.starts[1:] - lines.drops[1:], lines.end)[:count]
    above, behind = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    indents = np.append((lines.indents + lines.closes) * INDENT, 0)
    for line, place, text in zip(trivia.lines, trivia.places, trivia.texts, strict=True):
        if place == BEHIND:
            behind[line] = 2 + len(text)
        else:
            above[line] += indents[line] + len(text) + 1 + (place == ABOVE_BLANK)
    before = np.zeros(count + 1, np.int64)
    before[list(trivia.blanks)] = 1
    before[:count] += lines.indents * INDENT
    # From the start of a line's comments to that of the next one's.
    sizes = above[:count] + before[:count] + (ends - lines.starts) + behind[:count] + 1
    tops = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    starts = tops[:count] + above[:count] + before[:count]
    size = int(tops[-1] + above[-1])
    reach = (starts + (ends - lines.starts)).astype(np.int64)
    comments = _comment_starts(trivia, tops, indents, reach)
    nodes, reaches = _moved(tree, lines, starts - lines.starts)
    nodes[0], reaches[0] = 0, size
    return Positions(nodes, reaches, comments, size)


def _moved(tree: ReadTree, lines: Lines, pushed: Integers) -> tuple[Integers, Integers]:
    """Starts and ends of all nodes, moved as far as their lines are pushed.

    Starts are moved where they are: nobody asks again where they would be on one line.
    """
    starts, ends = tree.starts, tree.starts + tree.widths
    count = len(lines.starts)
    if not count:
        return starts, ends
    # By character, and one before them: its line. Few bytes are looked up faster, and blocks of
    # nodes use the same memory again.
    sizes = np.diff(lines.starts, append=lines.end)
    sizes[0] += 1
    line_of = np.repeat(np.arange(count, dtype=np.min_scalar_type(count)), sizes)
    for first in range(0, tree.count, _BLOCK):
        rows = slice(first, first + _BLOCK)
        starts[rows] += pushed[line_of[1:][starts[rows]]]
        ends[rows] += pushed[line_of[ends[rows]]]
    return starts, ends


def _comment_starts(
    trivia: Trivia, tops: Integers, indents: Integers, ends: Integers
) -> tuple[int, ...]:
    starts, at, latest = [], 0, -1
    for line, place, text in zip(trivia.lines, trivia.places, trivia.texts, strict=True):
        if place == BEHIND:
            starts.append(int(ends[line]) + 2)
            continue
        at = int(tops[line]) if line != latest else at
        latest = line
        at += int(indents[line]) + (place == ABOVE_BLANK)
        starts.append(at)
        at += len(text) + 1
    return tuple(starts)

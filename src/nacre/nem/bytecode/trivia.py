"""What a canonical text has beside its tree: comments, blank lines, statements that comments break.

Lines of code are counted in their order, without those that are blank or a comment alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from nacre.nem.bytecode.tree_writer import statements_in_order
from nacre.nem.syntax.ast import Comment, Document, Stmt
from nacre.nem.syntax.formatter import tree_lines
from nacre.nem.syntax.layout import INDENT, Line, fits
from nacre.nem.syntax.printer import SimpleStmt, statement_text

ABOVE, ABOVE_BLANK, BEHIND = range(3)  # where a comment stands; above it may be a blank line


@dataclass(frozen=True, slots=True)
class Trivia:
    """Of a document in canonical form."""

    blanks: tuple[int, ...] = ()  # lines of code with a blank line right above them
    broken: tuple[int, ...] = ()  # statements that would fit on a line, were there no comments
    lines: tuple[int, ...] = ()  # of each comment: the line of code that it belongs to
    places: tuple[int, ...] = ()  # of each comment: ABOVE, ABOVE_BLANK or BEHIND
    texts: tuple[str, ...] = ()

    @property
    def has_comments(self) -> bool:
        """Whether there is any."""
        return bool(self.texts)


def trivia_of(text: str, document: Document, comments: Sequence[Comment]) -> Trivia:
    """What stands between the lines of a canonical text."""
    texts_by_start = {comment.start: comment.text for comment in comments}
    starts = sorted(texts_by_start)
    blanks: list[int] = []
    placed: list[tuple[int, int, str]] = []
    at, line, follows_blank = 0, 0, False
    for raw in _lines(text):
        end = at + len(raw)
        bare = raw.strip()
        if not bare:
            follows_blank = True
        elif bare[0] == "#":
            start = at + len(raw) - len(raw.lstrip())
            placed.append((line, ABOVE_BLANK if follows_blank else ABOVE, texts_by_start[start]))
            follows_blank = False
        else:
            if follows_blank:
                blanks.append(line)
            inside = starts[bisect_right(starts, at - 1) : bisect_right(starts, end - 1)]
            placed += [(line, BEHIND, texts_by_start[start]) for start in inside]
            line, follows_blank = line + 1, False
        at = end
    broken = _broken_indices(text, document)
    lines, places, texts = zip(*placed, strict=True) if placed else ((), (), ())
    return Trivia(tuple(blanks), broken, lines, places, texts)


def _lines(text: str) -> list[str]:
    """Lines as the language has them: only a newline ends one."""
    return [f"{line}\n" for line in text.split("\n")][: text.count("\n")]


def _broken_indices(text: str, document: Document) -> tuple[int, ...]:
    return tuple(
        index
        for index, statement in enumerate(statements_in_order(document.body))
        if isinstance(statement, SimpleStmt)
        and "\n" in text[statement.start : statement.end]
        and fits(statement_text(statement), _indent(text, statement.start))
    )


def _indent(text: str, start: int) -> int:
    return (start - text.rfind("\n", 0, start) - 1) // INDENT


def text_of(document: Document, trivia: Trivia) -> str:
    """The canonical text of a tree and what stands between its lines."""
    broken_indices = set(trivia.broken)
    statements = enumerate(statements_in_order(document.body))
    broken: list[Stmt] = [s for index, s in statements if index in broken_indices]  # type: ignore[misc]
    lines = tree_lines(document, frozenset(map(id, broken)))
    blanks = set(trivia.blanks)
    placed = list(zip(trivia.lines, trivia.places, trivia.texts, strict=True))[::-1]
    out: list[str] = []
    for index, line in enumerate(lines):
        while placed and placed[-1][0] == index and placed[-1][1] != BEHIND:
            _, place, comment = placed.pop()
            out += [""] * (place == ABOVE_BLANK) + [_comment_indent(line) + comment]
        out += [""] * (index in blanks) + [" " * (line.indent * INDENT) + line.text]
        if placed and placed[-1][:2] == (index, BEHIND):
            out[-1] += f"  {placed.pop()[2]}"
    for _, place, comment in reversed(placed):
        out += [""] * (place == ABOVE_BLANK) + [comment]
    return "\n".join(out) + "\n" if out else ""


def _comment_indent(line: Line) -> str:
    return " " * ((line.indent + line.closes) * INDENT)

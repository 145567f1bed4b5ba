"""Comments and empty lines: what stands above an operation, behind it and inside it.

Comments are found by the tokens around them, so that they come back to the same tokens: how a
statement is broken into lines is the formatter's business.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from nacre.base.source import Source
from nacre.nem.mlir.operation_spans import OperationSpan
from nacre.nem.mlir.token_marks import Page
from nacre.nem.mlir.values import quote, strings
from nacre.nem.syntax.ast import Comment
from nacre.nem.syntax.formatter import follows_blank, shares_line
from nacre.nem.syntax.lexer import tokenize

ABOVE, BEHIND, INSIDE = "nem.above", "nem.behind", "nem.inside"
END_ABOVE, END_BEHIND = "nem.end_above", "nem.end_behind"
BLANK = ""  # an empty line, among comments


@dataclass(slots=True)
class Trivia:
    """What surrounds one line.

    `inside` has the number of the token that a comment precedes, whether it stands behind the token
    before that, and its text; where there is none, a line ends there.
    """

    above: list[str] = field(default_factory=list)
    behind: str | None = None
    inside: list[tuple[int, bool, str]] = field(default_factory=list)

    def attributes(self, above: str = ABOVE, behind: str = BEHIND) -> list[str]:
        """As attributes of an operation, in text."""
        texts = [f"{above} = {strings(self.above)}"] if self.above else []
        if self.behind is not None:
            texts.append(f"{behind} = {quote(self.behind)}")
        if self.inside:
            parts = (f"[{at}, {str(b).lower()}, {quote(text)}]" for at, b, text in self.inside)
            texts.append(f"{INSIDE} = [{', '.join(parts)}]")
        return texts


class DocumentTrivia:
    """The trivia of a document, by where lines start; `end` has what follows the last one."""

    def __init__(self, page: Page, comments: Sequence[Comment]) -> None:
        text, spans, tokens = page.source.text, page.spans, page.tokens.starts
        closings = [span.closing for span in spans if span.closing is not None]
        self._text, self._tokens = text, tokens
        self._starts = sorted([span.start for span in spans] + closings)
        self._found: dict[int, Trivia] = {}
        for comment in comments:
            self._put(comment)
        for span in spans:
            if follows_blank(text, span.start):
                self.at(span.start).above.append(BLANK)
            if span.start in self._found:
                self._keep_broken(span)

    def _keep_broken(self, span: OperationSpan) -> None:
        """A statement over several lines stays so because of the comment behind it: say where."""
        here, text = self._found[span.start], self._text[span.start : span.end]
        if here.behind is None or here.inside or "\n" not in text:
            return
        last_line = span.start + text.rfind("\n")
        index = bisect_left(self._tokens, last_line) - bisect_left(self._tokens, span.start)
        here.inside.append((index, True, BLANK))

    def at(self, start: int) -> Trivia:
        """What surrounds the line that starts there."""
        return self._found.setdefault(start, Trivia())

    def attributes(self, span: OperationSpan) -> list[str]:
        """The attributes of the operation that stands there, in text."""
        here = self._found.get(span.start)
        texts = [] if here is None else here.attributes()
        if span.closing is not None and span.closing in self._found:
            texts += self._found[span.closing].attributes(END_ABOVE, END_BEHIND)
        return texts

    @property
    def end(self) -> list[str]:
        """What stands at the end of the document."""
        last = self._found.get(len(self._text))
        return [] if last is None else last.above

    def _put(self, comment: Comment) -> None:
        starts, tokens = self._starts, self._tokens
        following = tokens[bisect_right(tokens, comment.start)]
        at = bisect_right(starts, comment.start)
        begins_line = following >= len(self._text) or starts[at : at + 1] == [following]
        is_behind = bool(at) and shares_line(self._text, comment.start)
        if is_behind and begins_line:
            self.at(starts[at - 1]).behind = comment.text
            return
        lines = [comment.text]
        if not is_behind and follows_blank(self._text, comment.start):
            lines.insert(0, BLANK)
        if begins_line:
            self.at(following).above += lines
            return
        index = bisect_left(tokens, following) - bisect_left(tokens, starts[at - 1])
        self.at(starts[at - 1]).inside += [(index, is_behind, line) for line in lines]


def line_with_comments(text: str, trivia: Trivia, indent: str = "") -> list[str]:
    """Lines of text: comments above, the line with what is inside it, and what is behind."""
    lines = [f"{indent}{line}" if line else "" for line in trivia.above]
    behind = f"  {trivia.behind}" if trivia.behind is not None else ""
    return [*lines, f"{indent}{_with_inside(text, trivia.inside)}{behind}"]


def _with_inside(text: str, inside: Sequence[tuple[int, bool, str]]) -> str:
    if not inside:
        return text
    starts = tokenize(Source("", text)).starts
    parts, done = [], 0
    for at, is_behind, line in inside:
        cut = max(starts[min(max(at, 0), len(starts) - 1)], done)
        code = text[done:cut].rstrip()
        between = "\n" if code and not is_behind else "  " if is_behind and line else ""
        parts.append(f"{code}{between}{line}\n")
        done = cut
    return "".join(parts) + text[done:]

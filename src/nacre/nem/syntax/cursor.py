"""Where the parser stands: the tokens, the one at hand, what was found, and how to go on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NoReturn

from nacre.base.diagnostics import Diagnostic, Fix, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import insertion_fix, removal_fix, respelling_fix
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.nem.spec.limits import MAX_DIAGNOSTICS, MAX_NESTING
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.document import DOC19, DOC20
from nacre.nem.syntax.ast import NameRef, Node
from nacre.nem.syntax.lexer import Tokens

# Words that begin a statement or a top-level construct when the next tokens fit. They are not
# reserved: `const wait = 4` and a family operand called `input` are fine.
STATEMENT_WORDS = frozenset(
    {"buffer", "let", "const", "loop", "endloop", "wait", "include", "program", "device"}
    | {"type_family"}
)
# Arguments of tasks look like assignments (`src=region(..)`); they never begin a statement.
_ARGUMENTS = frozenset({"dst", "src", "deps"})
# Marks that can be added where they are missing, before the next word or behind the last.
_MARKS_BEFORE = frozenset({"(", "["})
_MARKS_BEHIND = {":": ":", ",": ",", ")": ")", "]": "]", "=": " ="}
# Every word that stands before a `=` inside a statement.
ATTRIBUTES = frozenset(
    {"elem", "shape", "layout", "strides", "quant", "size", "align", "op"}
    | _ARGUMENTS
    | {attribute.name for opcode in OPCODES.values() for attribute in opcode.attributes}
)


class Recover(Exception):  # noqa: N818 - a way out, not an error
    """Leaves a statement that cannot be read; the diagnostic has been recorded."""


class Cursor:
    """A position in a token list. `texts` and `i` are public: hot code reads them directly."""

    __slots__ = ("_illegal", "_statement", "depth", "findings", "i", "operators", "source",
                 "starts", "texts")  # fmt: skip

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.source = source
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.i = 0
        self.depth = 0
        self.operators = 0
        self.findings: list[Diagnostic] = []
        self._illegal = tokens.illegal
        self._statement = 0

    def begin_statement(self) -> None:
        """Note that a statement starts here."""
        self._statement = self.i
        self.depth = 0
        self.operators = 0

    def start(self) -> int:
        """Where the token at hand starts."""
        return self.starts[self.i]

    def last_end(self) -> int:
        """Where the token before the one at hand ends."""
        before = self.i - 1
        return self.starts[before] + len(self.texts[before])

    def report(
        self,
        rule: Rule,
        message: str,
        start: int,
        end: int,
        *,
        help: str | None = None,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Record a diagnostic and go on."""
        if len(self.findings) <= MAX_DIAGNOSTICS:
            span = self.source.span(start, end)
            self.findings.append(rule.at(span, message, help=help, related=related, fix=fix))

    def report_token(
        self, rule: Rule, message: str, *, help: str | None = None, fix: Fix | None = None
    ) -> None:
        """Record a diagnostic at the token at hand and go on."""
        start = self.start()
        self.report(rule, message, start, start + len(self.texts[self.i]), help=help, fix=fix)

    def span(self, node: Node) -> Span:
        """Where a node stands."""
        return self.source.span(node.start, node.end)

    def respelling_fix(self, known: Iterable[str]) -> Fix | None:
        """Write the word that the token at hand was meant to be, where it can be one only."""
        start, text = self.start(), self.texts[self.i]
        return respelling_fix(self.source.span(start, start + len(text)), text, known)

    def token_removal_fix(self) -> Fix:
        """Take the token at hand out."""
        return removal_fix(self.source.span(self.start(), self.start() + len(self.texts[self.i])))

    def fail(
        self, rule: Rule, message: str, *, help: str | None = None, fix: Fix | None = None
    ) -> NoReturn:
        """Record a diagnostic at the token at hand and leave the statement."""
        if self._explained_by_illegal_character():
            raise Recover
        if self.i > self._statement and self.starts_line(self.i):
            # What is missing is missing at the end of the line before, not in the next statement.
            end = self.last_end()
            self.report(rule, message, end, end, help=help, fix=fix)
        else:
            self.report_token(rule, message, help=help, fix=fix)
        raise Recover

    def fail_here(
        self, rule: Rule, message: str, *, help: str | None = None, fix: Fix | None = None
    ) -> NoReturn:
        """As `fail`, but at the token itself also where it begins a line: it is what is wrong."""
        if not self._explained_by_illegal_character():
            self.report_token(rule, message, help=help, fix=fix)
        raise Recover

    def starts_line(self, i: int) -> bool:
        """Whether token `i` is the first of its line; the end of the file counts as a line."""
        before = self.starts[i - 1] + len(self.texts[i - 1]) if i else 0
        return (
            i == 0 or not self.texts[i] or "\n" in self.source.lined_text[before : self.starts[i]]
        )

    def fail_expected(
        self, expected: str, *, help: str | None = None, fix: Fix | None = None
    ) -> NoReturn:
        """Leave the statement: `expected` should stand where something else does."""
        self.fail(DOC19, f"expected {expected}, found {self.describe()}", help=help, fix=fix)

    def describe(self) -> str:
        """The token at hand as a message names it."""
        text = self.texts[self.i]
        return backquote(text) if text else "the end of the file"

    def _explained_by_illegal_character(self) -> bool:
        # Characters that the lexer left out break what stands around them: say it once.
        if not self._illegal:
            return False
        before = bisect_right(self._illegal, self.starts[self.i])
        if before == 0:
            return False
        offset = self._illegal[before - 1]
        if offset >= self.starts[self._statement]:
            return True
        return "\n" not in self.source.lined_text[offset : self.starts[self.i]]

    def expect(self, text: str, after: str = "") -> None:
        """Step over a mark or a word that must stand here."""
        if self.texts[self.i] != text:
            after = f" after {after}" if after else ""
            self.fail_expected(f"`{text}`{after}", fix=self._mark_insertion_fix(text))
        self.i += 1

    def _mark_insertion_fix(self, mark: str) -> Fix | None:
        """Add a mark that alone can stand here; it goes with what it is written beside."""
        if mark in _MARKS_BEFORE and self.i and not self.starts_line(self.i):
            return insertion_fix(self.source, self.start(), mark)
        if mark in _MARKS_BEHIND and self.i:
            return insertion_fix(self.source, self.last_end(), _MARKS_BEHIND[mark])
        return None

    def name(self, what: str) -> NameRef:
        """Step over an identifier."""
        text = self.texts[self.i]
        if not text.isidentifier() or (text in STATEMENT_WORDS and self.at_next_statement()):
            self.fail_expected(what)
        start = self.starts[self.i]
        self.i += 1
        return NameRef(start, start + len(text), text)

    def reference(self, what: str) -> NameRef:
        """Step over the name of something; where a `=` follows, the next part has begun."""
        if self.texts[self.i + 1] == "=" and self.is_assigned():
            self.fail_expected(what)
        return self.name(what)

    def is_assigned(self) -> bool:
        """Whether the name at hand goes with the `=` behind it, rather than with what is before."""
        return self.starts_line(self.i) or not self.starts_line(self.i + 1)

    def at_next_statement(self) -> bool:
        """Whether the word at hand, which could be a name, begins the next statement.

        Newlines mean nothing in the language but here: a name stands behind something on its line.
        """
        i = self.i
        if i == self._statement or not begins_statement(self.texts, i):
            return False
        return self.texts[i] == "endloop" or self.starts_line(i)

    def comma(self, closing: str) -> bool:
        """Step over a comma, if there is one; behind it the list goes on."""
        if self.texts[self.i] != ",":
            return False
        self.i += 1
        if self.texts[self.i] == closing:
            self.i -= 1
            fix = self.token_removal_fix()
            self.i += 1
            self.fail_expected("a value", help="take out the last comma", fix=fix)
        return True

    def enter_nesting(self) -> None:
        """Go one level of nesting deeper."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(DOC20, f"more than {MAX_NESTING} levels of nesting")

    def skip_to_statement(self) -> None:
        """Go on at the next token that begins a statement; always moves at least one token."""
        if self.i == self._statement:
            self.i += 1
        texts = self.texts
        while texts[self.i] and not (
            begins_statement(texts, self.i)
            or (self.starts_line(self.i) and _looks_like_statement(texts, self.i))
        ):
            self.i += 1

    def skip_block(self) -> None:
        """Go on behind the braces of the construct at hand, or where the next statement begins."""
        texts, i, depth = self.texts, self._statement + 1, 0
        while texts[i] and not (i >= self.i and self.starts_line(i) and begins_statement(texts, i)):
            depth += (texts[i] == "{") - (texts[i] == "}")
            i += 1
            # The set of a type parameter, `<T: {f16}>`, is not the block.
            if depth <= 0 and texts[i - 1] == "}" and texts[i] not in (",", ">"):
                break
        self.i = max(i, self.i)


def begins_statement(texts: list[str], i: int) -> bool:
    """Whether a statement or a top-level construct begins at token `i`, judged by what follows."""
    text, following = texts[i], texts[i + 1]
    if following == "=":
        return text not in _ARGUMENTS and text.isidentifier() and assigns_statement(texts, i)
    if text == "endloop" or text == ";":
        return True
    if text in STATEMENT_WORDS:
        return _WORD_FOLLOWED_BY[text](following, texts[i + 2], texts[i + 3])
    return is_task_word(text) and (i == 0 or texts[i - 1] != "=")


def _looks_like_statement(texts: list[str], i: int) -> bool:
    """Whether the first token of a line was meant to begin a statement, be it a broken one."""
    text, following = texts[i], texts[i + 1]
    if following == "=":
        return text.isidentifier() and text not in ATTRIBUTES
    if text.isidentifier() and following.isidentifier() and texts[i + 2] in ("=", ":"):
        return True  # a declaration, be its first word misspelt
    if text in STATEMENT_WORDS:
        return following.isidentifier() or following[:1] == '"'
    return text.partition(".")[0] in OPCODES and following in ("in", "IN", "out", "OUT", "(")


def assigns_statement(texts: list[str], i: int) -> bool:
    """Whether `NAME =` at token `i` begins a statement rather than an attribute."""
    value = texts[i + 2]
    if value == "region" or value == "wait":
        return texts[i + 3] == "("
    if is_task_word(value):
        return True
    if texts[i + 3] == "(" or (texts[i + 3] in ("in", "IN") and texts[i + 4] != "="):
        return value.partition(".")[0] in OPCODES  # a task that lacks its form
    return False


def is_task_word(text: str) -> bool:
    """Whether a token is an opcode with its form, known or not."""
    return text.endswith((".async", ".sync"))


_WORD_FOLLOWED_BY: dict[str, Callable[[str, str, str], bool]] = {
    "buffer": lambda a, b, _: a.isidentifier() and b == ":",
    "let": lambda a, b, _: a.isidentifier() and b == "=",
    "const": lambda a, b, _: a.isidentifier() and b in ("=", ":"),
    "loop": lambda a, b, c: a.isidentifier() and b == "in" and c == "[",
    "wait": lambda a, b, _: a == "(",
    "include": lambda a, b, _: a.startswith('"'),
    "program": lambda a, b, _: a.isidentifier() and b == ":",
    "device": lambda a, b, c: a.startswith('"') or (a.isidentifier() and opens_device(b, c)),
    "type_family": lambda a, b, _: a.replace(".", "_").isidentifier() and b in ("<", "{"),
}


def opens_device(text: str, following: str) -> bool:
    """Whether what follows `device NAME` makes it a configuration rather than a reference."""
    return text == "{" or (text == "extends" and following != "=")

"""`.uarch` files: `uarch NAME { GROUP { KEY = VALUE } }`, in the words of device files.

Some figures have another name as well, and one of these stands in no group: `queue_depth = 8`.
A comment behind a figure says what it rests on: `# fact` or `# assumption`, and why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic
from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.bind.uarch.rules import BND10, BND11, BND12
from nacre.nem.model.provenance import figure_bases
from nacre.nem.syntax.cursor import Cursor, Recover
from nacre.nem.syntax.lexer import tokenize
from nacre.tcb.figures import NAMED_FIGURES, Figures, FigureSpec, FigureValue, figure_problem

_GROUPS = tuple(dict.fromkeys(name.partition(".")[0] for name in NAMED_FIGURES if "." in name))
_ALONE = tuple(name for name in NAMED_FIGURES if "." not in name)


class GivenFigure(Struct, frozen=True):
    """A figure that a file gives, and what it rests on."""

    key: str
    value: FigureValue
    basis: str  # "fact", "assumption", or empty where the file does not say
    reason: str


class Uarch(Struct, frozen=True, eq=False):
    """A microarchitecture."""

    name: str
    given: tuple[GivenFigure, ...]
    digest: str  # of the file

    @property
    def figures(self) -> Figures:
        """The figures that hold."""
        return Figures({figure.key: figure.value for figure in self.given})


# Hardware that costs nothing, as the file of that name has it.
IDEAL = Uarch("ideal", (), "")


class UarchResult(Struct, frozen=True, eq=False):
    """What a file says, and what is wrong with it."""

    uarch: Uarch
    diagnostics: tuple[Diagnostic, ...]


def read_uarch(source: Source) -> UarchResult:
    """Read a `.uarch` file; every mistake is found, and figures that are wrong are left out."""
    tokens = tokenize(source)
    reader = _Reader(source, Cursor(source, tokens))
    reader.read()
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:16]
    findings = (*tokens.diagnostics, *reader.cursor.findings)
    ordered = tuple(sorted(findings, key=lambda finding: finding.span.start))
    return UarchResult(Uarch(reader.name, tuple(reader.given), digest), ordered)


class _Reader:
    def __init__(self, source: Source, cursor: Cursor) -> None:
        self.cursor = cursor
        self.name = ""
        self.given: list[GivenFigure] = []
        self._groups: set[str] = set()
        self._source = source
        self._bases = figure_bases(source)

    def read(self) -> None:
        """The whole file."""
        c = self.cursor
        try:
            self._expect_word("uarch", "a microarchitecture: `uarch NAME { ... }`")
            self.name = c.name("a microarchitecture's name").name
            c.expect("{")
            while c.texts[c.i] != "}":
                self._group()
            c.i += 1
            if c.texts[c.i]:
                c.fail(BND10, f"expected the end of the file, found {c.describe()}")
        except Recover:
            return

    def _expect_word(self, word: str, what: str) -> None:
        c = self.cursor
        if c.texts[c.i] != word:
            c.fail(BND10, f"expected {what}, found {c.describe()}")
        c.i += 1

    def _group(self) -> None:
        c = self.cursor
        group = c.texts[c.i]
        if group in _ALONE:
            self._figure("")
            return
        if group not in _GROUPS:
            message = f"expected a group of figures, found {c.describe()}"
            names = (*_GROUPS, *_ALONE)
            c.fail(BND10, message, help=did_you_mean(group, names) or _list(names))
        if group in self._groups:
            span = self._source.span(c.starts[c.i], c.starts[c.i] + len(group))
            c.findings.append(BND12.at(span, f"group `{group}` is given twice"))
        self._groups.add(group)
        c.i += 1
        c.expect("{")
        while c.texts[c.i] != "}":
            self._figure(group)
        c.i += 1

    def _figure(self, group: str) -> None:
        c = self.cursor
        at, name = c.i, c.texts[c.i]
        if not name.isidentifier():
            c.fail(BND10, f"expected a figure or `}}`, found {c.describe()}")
        c.i += 1
        c.expect("=")
        value = self._value()
        span = self._source.span(c.starts[at], c.starts[at] + len(name))
        full_name = f"{group}.{name}" if group else name
        spec = NAMED_FIGURES.get(full_name)
        if spec is None:
            known = [n.partition(".")[2] for n in NAMED_FIGURES if n.startswith(f"{group}.")]
            help_ = did_you_mean(name, known) or _list(known)
            c.findings.append(
                BND11.at(span, f"`{group}` has no figure {backquote(name)}", help=help_)
            )
        else:
            self._take(spec, full_name, value, at)

    def _take(self, spec: FigureSpec, name: str, value: FigureValue, at: int) -> None:
        c = self.cursor
        span = self._source.span(c.starts[at], c.last_end())
        problem = figure_problem(spec, value)
        if any(figure.key == spec.key for figure in self.given):
            c.findings.append(BND12.at(span, f"`{name}` is given twice"))
        elif problem is not None:
            c.findings.append(BND12.at(span, f"`{name}`: {problem}", help=spec.meaning))
        else:
            line = self._source.position(c.starts[at])[0]
            self.given.append(GivenFigure(spec.key, value, *self._bases.get(line, ("", ""))))

    def _value(self) -> FigureValue:
        c = self.cursor
        if c.texts[c.i] == "[":
            c.i += 1
            return " ".join(self._words())
        if c.texts[c.i] == "-" and is_digits(c.texts[c.i + 1]):  # too low, as is said of it
            c.i += 2
            return -1
        text = c.texts[c.i]
        if not text.isidentifier() and not is_digits(text):
            c.fail(BND10, f"expected an integer, a word or a list of words, found {c.describe()}")
        c.i += 1
        return int(text) if is_digits(text) and len(text) < 20 else text

    def _words(self) -> Iterator[str]:
        c = self.cursor
        while c.texts[c.i] != "]":
            yield c.name("a word").name
            if c.texts[c.i] == ",":
                c.i += 1
            elif c.texts[c.i] != "]":
                c.fail(BND10, f"expected `,` or `]`, found {c.describe()}")
        c.i += 1


def _list(names: tuple[str, ...] | list[str]) -> str:
    return f"there are {', '.join(f'`{name}`' for name in names)}"

"""Statements that differ in names and numbers alone: the first are parsed, the others filled in.

Plans repeat a few forms of statements tens of thousands of times. A form is the tokens of a
statement as classes: words and marks that the parser looks at stand for themselves, other names,
integers and floats for their kind. What the parser makes of a form depends on nothing else, so the
tree of one statement is written down as an expression over its tokens, and the next one is that
expression's value. Only statements without a finding become forms, and only where what follows
them surely begins another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from operator import add

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax import ast
from nacre.nem.syntax.ast import BoolLit, FloatLit, IntLit, NameRef, Node, Stmt, StringLit
from nacre.nem.syntax.cursor import ATTRIBUTES, STATEMENT_WORDS, Cursor

Texts = list[str]
Places = list[int]
_Filler = Callable[[Texts, Places, Places], Stmt]

_FIRST_USES = 4  # that are parsed before a form is worth writing down
_MOST_TOKENS = 160  # of a form: longer statements recur seldom
_MOST_FORMS = 4096  # that are counted or kept; then all are forgotten

_NAME, _INTEGER, _FLOAT, _OTHER = "N", "I", "F", "?"
_FLOAT_TEXT = re.compile(r"\d+\.\d+([eE][+-]?\d+)?", re.ASCII)
_SURE_DIGITS = 18  # fit in 64 bits
_MARKS = "+-*/()[]{},:;=@<>"
_TASK_WORDS = tuple(f"{op}.{form}" for op in OPCODES for form in ("async", "sync"))
_WORDS = sorted(
    {*STATEMENT_WORDS, *ATTRIBUTES, *OPCODES, *_TASK_WORDS, *ELEMENT_TYPES}
    | {"in", "IN", "out", "OUT", "region", "mod", "true", "false", "extends", "endloop"}
    | {"per_tensor", "per_channel", "per_group", "scale", "scales", "zero_point", "zero_points"}
    | {"axis", "group_size", "compressed", "palette", "sparse", "bits", "tables", "type"}
    | {"DDR", "L2", "L1", "input", "inputs", "output", "outputs"}
)
_CLASSES: Mapping[str, str] = {
    **{mark: mark for mark in _MARKS},
    "..": "~",
    **{word: chr(0x100 + number) for number, word in enumerate(_WORDS)},
}


def _set_of(words: frozenset[str] | tuple[str, ...]) -> str:
    return "".join(_CLASSES[word] for word in words)


# What surely begins a statement, whatever stands before it.
_BEGINNING = re.compile(
    f"N=(?:[{_set_of(_TASK_WORDS)}]|{_CLASSES['region']}\\()"
    f"|{_CLASSES['let']}N="
    f"|{_CLASSES['const']}N="
    f"|{_CLASSES['buffer']}N:"
    f"|{_CLASSES['wait']}\\("
    f"|{_CLASSES['loop']}N{_CLASSES['in']}\\["
    f"|{_CLASSES['endloop']}(?!=)"
)
# Words that begin statements mean something else at the start of a line, and a name before `=`
# may be given twice: such statements are parsed.
_UNLIKE = re.compile(f".[^?]*[{_set_of(STATEMENT_WORDS)}]|..+N=|.*\\?", re.DOTALL)

_counts: dict[str, int] = {}  # how often a form was met; -1: it has none
_fillers: dict[str, _Filler] = {}


class StatementForms:
    """The statements of some tokens, by their forms."""

    def __init__(self, cursor: Cursor) -> None:
        texts = cursor.texts
        class_of = {text: _class_of(text) for text in set(texts)}
        self._cursor = cursor
        self._texts = texts
        self._classes = "".join([class_of[text] for text in texts])
        self._starts = list(cursor.starts)
        self._ends = list(map(add, self._starts, map(len, texts)))
        begins = [match.start() for match in _BEGINNING.finditer(self._classes)]
        self._next = dict(pairwise(begins))
        if begins:
            self._next[begins[-1]] = _end_of_tokens(texts)

    def fill(self) -> Stmt | None:
        """The statement at hand, which is stepped over; None where it is to be parsed."""
        begin = self._cursor.i
        end = self._next.get(begin, begin)
        filler = _fillers.get(self._classes[begin:end])
        if filler is None:
            return None
        self._cursor.i = end
        return filler(self._texts[begin:end], self._starts[begin:end], self._ends[begin:end])

    def note(self, statement: Stmt, begin: int, findings: int) -> None:
        """Remember the form of a parsed statement, unless there are more findings now."""
        end = self._next.get(begin, begin)
        if self._cursor.i != end or end - begin > _MOST_TOKENS:
            return
        if len(self._cursor.findings) > findings:
            return
        form = self._classes[begin:end]
        count = _counts.get(form, 0)
        if count < 0:
            return
        if len(_counts) >= _MOST_FORMS:
            _counts.clear()
            _fillers.clear()
        _counts[form] = count + 1
        if count + 1 >= _FIRST_USES:
            _counts[form] = -1
            if not _UNLIKE.match(form):
                own = (self._starts[begin:end], self._ends[begin:end])
                _keep_filler(form, statement, self._texts[begin:end], *own)


def _class_of(text: str) -> str:
    fixed = _CLASSES.get(text)
    if fixed is not None:
        return fixed
    if text.isidentifier():
        return _NAME
    if text.isdigit():
        return _INTEGER if len(text) <= _SURE_DIGITS else _OTHER
    return _FLOAT if _FLOAT_TEXT.fullmatch(text) else _OTHER


def _end_of_tokens(texts: Texts) -> int:
    """Where the empty tokens begin that end a source."""
    end = len(texts)
    while end and not texts[end - 1]:
        end -= 1
    return end


# Forms as expressions over the tokens `t`, their starts `s` and their ends `e`


class _NoForm(Exception):  # noqa: N818 - a way out, not an error
    """A statement has a part that does not follow from the classes of its tokens."""


def _keep_filler(form: str, statement: Stmt, texts: Texts, starts: Places, ends: Places) -> None:
    try:
        code = f"lambda t, s, e: {_FormWriter(texts, starts, ends).node(statement)}"
    except _NoForm:
        return
    # The text has classes of nodes, places and words of our own tables, nothing of the source.
    _fillers[form] = eval(code, _NODES)


_NODES = {kind.__name__: kind for kind in vars(ast).values() if isinstance(kind, type)} | {
    "int": int
}


class _FormWriter:
    """Writes the tree of a statement as an expression over its tokens."""

    def __init__(self, texts: Texts, starts: Places, ends: Places) -> None:
        self._texts = texts
        self._starts = {start: index for index, start in enumerate(starts)}
        self._ends = {end: index for index, end in enumerate(ends)}

    def node(self, node: Node) -> str:
        """A node and all below it."""
        parts = [self._start(node), self._end(node), *self._values(node)]
        return f"{type(node).__name__}({', '.join(parts)})"

    def _start(self, node: Node) -> str:
        return f"s[{self._first(node)}]"

    def _first(self, node: Node) -> int:
        index = self._starts.get(node.start)
        if index is None:
            raise _NoForm
        return index

    def _end(self, node: Node) -> str:
        last = self._ends.get(node.end)
        if last is not None:
            return f"e[{last}]"
        first = self._first(node)
        if self._texts[first] not in _CLASSES:  # `transfer` of `transfer.async` ends inside a word
            raise _NoForm
        return f"s[{first}] + {node.end - node.start}"

    def _values(self, node: Node) -> list[str]:
        if isinstance(node, IntLit):
            return [self._integer(node)]
        if isinstance(node, NameRef):
            first = self._first(node)
            is_whole = self._ends.get(node.end) == first
            return [f"t[{first}]" if is_whole else repr(node.name)]
        if isinstance(node, FloatLit):
            return [f"t[{self._first(node)}]"]
        if isinstance(node, BoolLit):
            return [repr(node.value)]
        if isinstance(node, StringLit):
            raise _NoForm
        return [self._value(getattr(node, name)) for name in node.__struct_fields__[2:]]

    def _integer(self, node: IntLit) -> str:
        first, last = self._first(node), self._ends.get(node.end)
        if last == first:
            return f"int(t[{first}])"
        if self._texts[first] != "-" or last != first + 1:
            raise _NoForm
        return f"-int(t[{last}])"

    def _value(self, value: object) -> str:
        if isinstance(value, Node):
            return self.node(value)
        if isinstance(value, tuple):
            return f"({''.join(f'{self._value(item)}, ' for item in value)})"
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, str) and value in _CLASSES:
            return repr(value)
        raise _NoForm

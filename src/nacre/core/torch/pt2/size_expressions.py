"""Expressions of sizes in a `.pt2`: arithmetic on symbols, and no more of it than PyTorch can do.

PyTorch hands them to sympy, whose time grows with the square of the symbols and more: the largest
of 400 takes it minutes. It does so for every place that has one, however often it had the same. So
they are counted first: each text once, while it is not known who needs it, then each place that is
left.
"""

from __future__ import annotations

import ast
import re

# Sums and products of symbols and numbers, and a few functions. Symbols and their powers are taken
# out first; what is left has no quote, no attribute and no power.
_SYMBOL = re.compile(r"Symbol\('([a-z]{1,4}[0-9]+)'(?:, \w+=True)*\)|\b[a-z]{1,4}[0-9]+\b")
_POWER = re.compile(r"Pow\(S, Integer\(-?[0-9]\)\)|S\*\*[0-9]\b")
_WORDS = re.compile(r"[A-Za-z_]\w*")
_EXPRESSION = re.compile(
    r"(?:[A-Za-z_]\w*|[0-9]{1,20}(?:\.[0-9]{1,20})?|\*(?!\*)|[-+/(),<>=&|~! ])*"
)
_LONG_NUMBER = re.compile(r"[0-9]{21}")
_CHEAP = frozenset({"Add", "Mul", "Integer", "Rational", "S", "Identity", "ToFloat"})
_FUNCTIONS = _CHEAP | {
    "FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt",
    "FloorToInt", "CeilDiv", "FloatTrueDiv", "IntTrueDiv", "TruncToInt", "TruncToFloat",
    "RoundToInt", "Max", "Min", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "True",
    "False",
}  # fmt: skip
_EXTREMES = frozenset({"Max", "Min"})
_MOST_SIDES = 3  # two arguments and the name of the function, which is a part as well
_OF_PAIRS = 3
_LONGEST = 4000
_MOST_NODES = 400
_MOST_DEPTH = 40
# In steps of which sympy takes some thousands a second.
MOST_WORK = 3000  # of one expression
FEW_WORK = 200  # expressions of more are few in any model
MOST_OF_THESE = 6000  # of such expressions together
MOST_OF_ALL = 50_000
OF_EACH_PLACE = 20  # whatever stands there


class ExpressionBudget:
    """The work of all expressions of a file."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._all = self._large = self._repeated = 0

    def problem(self, text: object) -> str | None:
        """Why an expression is refused; None where it is not."""
        if not isinstance(text, str):
            return "expected arithmetic"
        if text in self._known:
            return None
        work = _work(text)
        if work is None:
            return "expected arithmetic"
        self._known[text] = work
        self._all += work
        self._large += work if work > FEW_WORK else 0
        if work > MOST_WORK:
            return f"which would take {work:,} steps, at most {MOST_WORK:,} will do"
        if self._large > MOST_OF_THESE or self._all > MOST_OF_ALL:
            return "and with those before it they would take too many steps"
        return None

    def repeated(self, text: str) -> str | None:
        """Why a place with an expression that is not refused is one too many."""
        self._repeated += OF_EACH_PLACE + self._known[text]
        if self._repeated > MOST_OF_ALL:
            return "and with all places before it sizes would take too many steps"
        return None


def _work(text: str) -> int | None:
    """Roughly how much sympy has to do with an expression; None where it is no arithmetic."""
    if len(text) > _LONGEST:
        return None
    left = _POWER.sub("S", _SYMBOL.sub("S", text))
    if _LONG_NUMBER.search(left):
        return None
    if not (_EXPRESSION.fullmatch(left) and _FUNCTIONS.issuperset(_WORDS.findall(left))):
        return None
    try:
        tree = ast.parse(_SYMBOL.sub(lambda m: m[1] or m[0], text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    try:
        return _Counter().work(tree)
    except _TooLargeError:
        return MOST_OF_ALL


class _TooLargeError(Exception):
    """An expression that need not be counted to its end."""


class _Counter:
    """Counts nodes and what functions of many symbols cost."""

    def __init__(self) -> None:
        self._nodes = 0
        self._work = 0

    def work(self, tree: ast.expr) -> int:
        """Steps for an expression."""
        self._count(tree, 0)
        return self._nodes + self._work

    def _count(self, node: ast.AST, depth: int) -> tuple[int, frozenset[str]]:
        """How many nodes there are below one, and which symbols."""
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _MOST_DEPTH:
            raise _TooLargeError
        if isinstance(node, ast.Name):
            return 1, frozenset({node.id} - _FUNCTIONS)
        parts = [
            self._count(part, depth + 1)
            for part in ast.iter_child_nodes(node)
            if isinstance(part, ast.expr)
        ]
        count = 1 + sum(below for below, _ in parts)
        symbols = frozenset[str]().union(*(found for _, found in parts))
        name = (
            node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        )
        if isinstance(node, ast.Compare | ast.BoolOp) or (name and name not in _CHEAP):
            # The largest of three or more is looked for among all pairs of them.
            is_of_many = name in _EXTREMES and len(parts) > _MOST_SIDES
            self._work += count * (1 + len(symbols)) ** 2 * (_OF_PAIRS if is_of_many else 1)
        return count, symbols

"""Mutants of functions: small changes to a body, each of which a test should notice.

A mutant is a pair: a function, by its name and by the shape of its body, and a change, by its
operator and which of its kind it is. Neither says where the function stands: a pair survives the
move of a file. Names and texts are no part of the shape, so it survives renaming as well.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.LShift, ast.RShift)
_DEFAULTS = {"bool": "False", "int": "0", "float": "0.0", "str": "''", "tuple": "()", "list": "[]",
             "dict": "{}", "set": "set()", "frozenset": "frozenset()"}  # fmt: skip
# What nothing computes with: types, and the words of messages.
_UNTOUCHED = ("annotation", "returns", "decorator_list", "type_params", "args")
_WORDS = (ast.JoinedStr, ast.Raise, ast.Assert)


@dataclass(frozen=True)
class Function:
    """A function or a method of the sources."""

    path: Path
    name: str  # as Python qualifies it inside its module
    shape: str
    line: int


@dataclass(frozen=True)
class Mutant:
    """A function with one change."""

    function: Function
    operator: str
    index: int  # among the changes of this operator to this function
    text: str  # what stands there, and what instead

    @property
    def key(self) -> tuple[str, str, int]:
        """What names it apart from the function's name: sorting by a hash of it shuffles."""
        return (self.function.shape, self.operator, self.index)


@dataclass(frozen=True)
class Change:
    """One node of a tree, and what may stand in its place."""

    operator: str
    parent: ast.AST
    field: str
    position: int | None  # in a list
    new: ast.AST

    @property
    def old(self) -> ast.AST:
        """What stands there now."""
        value = getattr(self.parent, self.field)
        node: ast.AST = value if self.position is None else value[self.position]
        return node

    @property
    def text(self) -> str:
        """Both, on one line."""
        return " -> ".join(f"`{' '.join(ast.unparse(n).split())}`" for n in (self.old, self.new))

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The tree with the new node, and afterwards as it was."""
        old = self.old
        self._put(ast.fix_missing_locations(ast.copy_location(self.new, old)))
        try:
            yield
        finally:
            self._put(old)

    def _put(self, node: ast.AST) -> None:
        if self.position is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.position] = node


# Functions and their shapes


def functions_of(path: Path) -> dict[Function, Definition]:
    """The functions and methods of a file; those inside others are parts of these."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {Function(path, name, shape_of(d), d.lineno): d for name, d in _definitions(tree, "")}


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _definitions(child, prefix)


def shape_of(definition: Definition) -> str:
    """A hash of what a function does, without its names, texts, types and docstring."""
    names: dict[str, int] = {}
    parts = [_shape(definition.args, names), *(_shape(n, names) for n in _body(definition))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def _body(definition: Definition) -> list[ast.stmt]:
    return definition.body[1:] if ast.get_docstring(definition) else definition.body


def _shape(value: object, names: dict[str, int]) -> str:
    if isinstance(value, ast.Constant):
        return "text" if isinstance(value.value, str) else repr(value.value)
    if isinstance(value, ast.AST):
        fields = (f for f in ast.iter_fields(value) if f[0] not in ("annotation", "returns"))
        inside = ",".join(_shape(child, names) for _, child in fields)
        return f"{type(value).__name__}({inside})"
    if isinstance(value, list):
        return f"[{','.join(_shape(child, names) for child in value)}]"
    return f"n{names.setdefault(value, len(names))}" if isinstance(value, str) else repr(value)


# Changes


def changes_of(definition: Definition) -> Iterator[tuple[Change, int]]:
    """Every change of a function's body, and which of its operator it is."""
    counts: Counter[str] = Counter()
    default = _default(definition)
    start = len(definition.body) - len(_body(definition))
    for index, statement in enumerate(definition.body[start:], start):
        for change in _changes_at(definition, "body", index, statement, default):
            yield change, counts[change.operator]
            counts[change.operator] += 1


def _changes_at(
    parent: ast.AST, field: str, position: int | None, node: ast.AST, default: ast.expr
) -> Iterator[Change]:
    if isinstance(node, _WORDS):
        return
    for operator, owner, name, new in _variants(node, default):
        if owner is None:
            yield Change(operator, parent, field, position, new)
        else:
            yield Change(operator, owner, name, None, new)
    for name, value in ast.iter_fields(node):
        if name in _UNTOUCHED and not isinstance(node, ast.Call):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.AST):
                yield from _changes_at(node, name, index, child, default)


_Variant = tuple[str, ast.AST | None, str, ast.AST]  # the owner of a field, or the node itself


def _variants(node: ast.AST, default: ast.expr) -> Iterator[_Variant]:
    match node:
        case ast.Compare(left, [op], comparators) if type(op) in _COMPARED:
            yield "compare", None, "", ast.Compare(left, [_COMPARED[type(op)]()], comparators)
        case ast.Constant(value) if type(value) is int:
            yield "number", None, "", ast.Constant(value + 1)
        case ast.BinOp(left, op, right):
            if type(op) in _COMPUTED:
                yield "arithmetic", None, "", ast.BinOp(left, _COMPUTED[type(op)](), right)
            if isinstance(op, _ORDERED):
                yield "swap", None, "", ast.BinOp(right, op, left)
        case ast.BoolOp(op, values):
            yield "boolean", None, "", ast.BoolOp(_other(op), values)
        case ast.If() | ast.IfExp() | ast.While():
            yield "negate", node, "test", ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr(ast.Call() | ast.YieldFrom() | ast.Yield()) | ast.AugAssign():
            yield "drop", None, "", ast.Pass()
        case ast.Return(value) if value is not None and ast.dump(value) != ast.dump(default):
            yield "default", node, "value", default


def _other(op: ast.boolop) -> ast.boolop:
    return ast.Or() if isinstance(op, ast.And) else ast.And()


def _default(definition: Definition) -> ast.expr:
    """What a function returns that does nothing, by its type."""
    named = definition.returns
    word = ast.unparse(named).partition("[")[0] if named else "None"
    return ast.parse(_DEFAULTS.get(word, "None"), mode="eval").body


def mutants_of(function: Function, definition: Definition) -> Iterator[Mutant]:
    """All mutants of a function."""
    for change, index in changes_of(definition):
        yield Mutant(function, change.operator, index, change.text)


# Code


def mutated_code(mutant: Mutant) -> dict[tuple[str, int], CodeType]:
    """The code of the mutant and of what is defined inside it, by name and line.

    Empty where the change leaves no code to put in the place of the other: its closure is another.
    """
    tree = ast.parse(mutant.function.path.read_text(encoding="utf-8"))
    named = dict(_named(tree, mutant.function.line))
    definition = named[mutant.function.name]
    change = next(
        change
        for change, index in changes_of(definition)
        if (change.operator, index) == (mutant.operator, mutant.index)
    )
    before = _codes(tree, mutant.function)
    with change.applied():
        after = _codes(tree, mutant.function)
    fitting = {
        key: code
        for key, code in after.items()
        if key in before and code.co_freevars == before[key].co_freevars
    }
    return fitting if _own(before, mutant.function) in fitting else {}


def _named(tree: ast.AST, line: int) -> Iterator[tuple[str, Definition]]:
    return ((name, found) for name, found in _definitions(tree, "") if found.lineno == line)


def _own(codes: Mapping[tuple[str, int], CodeType], function: Function) -> tuple[str, int] | None:
    return next((key for key in codes if key[0] == function.name), None)


def _codes(tree: ast.Module, function: Function) -> dict[tuple[str, int], CodeType]:
    """Code objects of a function; two of one name on one line are left out."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    for code in _inside(compile(tree, str(function.path), "exec")):
        name = code.co_qualname
        if name == function.name or name.startswith(f"{function.name}.<locals>."):
            found.setdefault((name, code.co_firstlineno), []).append(code)
    return {key: codes[0] for key, codes in found.items() if len(codes) == 1}


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)

"""Whether a tree is one that some text has: what can be said of whole batches without that text.

A tree that gives no reason for doubt is the tree of its own canonical text. One that gives some (a
name that is also a word of the language, say) is printed and parsed, and must come back the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from nacre.base.binary.cursor import Broken
from nacre.base.terms import INT64_MIN
from nacre.nem.bytecode.batches import Batch, Children, Part
from nacre.nem.bytecode.kinds import CODES, ENUMS
from nacre.nem.bytecode.tree_reader import ReadTree
from nacre.nem.spec.limits import MAX_EXPRESSION_OPERATORS, MAX_NESTING
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.bytecode import BYT08
from nacre.nem.syntax import ast
from nacre.nem.syntax.cursor import STATEMENT_WORDS

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_FLOAT = re.compile(r"\d+\.\d+(?:[eE][+-]?\d+)?", re.ASCII)
_UNFIT = re.compile(r"[\r\n\0]")
_COPIES = frozenset({"transfer", "store"})
# Names that mean something else in some places; where they stand, the parser decides.
_WORDS = STATEMENT_WORDS | {
    "in", "IN", "out", "OUT", "mod", "region", "true", "false", "type", "elem", "shape", "layout",
    "quant", "deps", "dst", "src", "per_tensor", "per_channel", "per_group", "extends", "on",
}  # fmt: skip
_EXPRESSIONS = frozenset(
    CODES[kind]
    for kind in (ast.IntLit, ast.FloatLit, ast.NameRef, ast.Negated, ast.Binary, ast.Paren)
)
_CONFIGS = frozenset(
    code for code in CODES.values() if CODES[ast.TypeParam] <= code <= CODES[ast.DeviceConfig]
)
_NARROW = 4 * MAX_EXPRESSION_OPERATORS  # characters: fewer do not hold too many operators
_SUM = 2  # operators below this rank bind less


def judge_texts(pools: Mapping[str, Sequence[str]], comments: Sequence[str]) -> None:
    """Refuse texts that are none of what they are said to be."""
    names = pools["name"]
    if not ("".join(names).isascii() and all(map(str.isidentifier, names))):  # or dotted
        for name in names:
            if not _NAME.fullmatch(name):
                raise _broken(f"{name[:40]!r} is no name")
    for number in pools["number"]:
        if not _FLOAT.fullmatch(number):
            raise _broken(f"{number[:40]!r} is no number")
    for text in pools["text"]:
        if _UNFIT.search(text):
            raise _broken("a string has a character that strings cannot have")
    for text in comments:
        if text[:1] != "#" or _UNFIT.search(text) or text != text.rstrip():
            raise _broken("a comment has another form than comments have")


def has_configs(tree: ReadTree) -> bool:
    """Whether a document has families or devices, which are printed and parsed in any case."""
    return any(batch.code in _CONFIGS for batch in tree.batches)


def is_plain(tree: ReadTree, pools: Mapping[str, Sequence[str]]) -> bool:
    """Whether a tree surely is that of its text; Broken where it surely is not."""
    if not _WORDS.isdisjoint(pools["name"]) or "." in "".join(pools["name"]):
        return False
    merged = [batch for batch in tree.batches if batch.above is None]
    if any(batch.code not in _EXPRESSIONS for batch in merged) or _is_deep(tree):
        return False
    for batch in tree.batches:
        rule = _RULES.get(batch.code)
        if rule is not None:
            rule(batch, pools)
    return _has_plain_values(tree)


def _broken(message: str) -> Broken:
    return Broken(BYT08, 0, message)


def _require(holds: object, message: str) -> None:
    if not holds:
        raise _broken(message)


def _is_deep(tree: ReadTree) -> bool:
    """Whether nesting or operators may be more than the parser takes; levels bound both."""
    operators = sum(batch.count for batch in tree.batches if batch.code == CODES[ast.Binary])
    if tree.levels >= MAX_NESTING:
        return True
    return operators > MAX_EXPRESSION_OPERATORS and int(tree.widths[1:].max()) >= _NARROW


def _has_plain_values(tree: ReadTree) -> bool:
    """No region stands where what follows it could be read as part of it."""
    fields = [(CODES[ast.ListLit], "items"), (CODES[ast.Decorator], "args"),
              (CODES[ast.Attribute], "value")]  # fmt: skip
    region = CODES[ast.RegionExpr]
    return not any(
        part.batch.code == region
        for batch in tree.batches
        for code, name in fields
        if batch.code == code
        for part in batch.children[name].parts
    )


def _is_there(children: Children) -> np.ndarray:
    assert children.selector is not None
    return children.selector > 0


def _parts(batch: Batch, name: str, kind: type[ast.Node]) -> Iterator[Part]:
    code = CODES[kind]
    return (part for part in batch.children[name].parts if part.batch.code == code)


def _integers(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    """Only literals have a sign: what else is negative is written with an operator.

    The least integer is a literal anywhere: its digits alone are none.
    """
    if not batch.may_be_negative:
        values = batch.scalars["value"]
        is_written = ((values >= 0) | (values == INT64_MIN)).all()
        _require(is_written, "an integer of an expression is negative")


def _negated(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    is_sum = any(_parts(batch, "operand", ast.Binary))
    _require(not is_sum, "a sign stands before an operation without parentheses")


def _binary(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    """Operations group to the left, products before sums; all else has parentheses."""
    binds = batch.scalars["op"] >= _SUM
    for name in ("left", "right"):
        for part in _parts(batch, name, ast.Binary):
            operand_binds = binds if part.where is None else binds[part.where]
            inner = part.batch.scalars["op"][part.rows] >= _SUM
            fits = inner | ~operand_binds if name == "left" else inner & ~operand_binds
            _require(fits.all(), "an operation lacks its parentheses")


def _quant(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    form = batch.scalars["form"]
    channel, group = (ENUMS["Form"].index(word) for word in ("per_channel", "per_group"))
    fits = _is_there(batch.children["axis"]) == (form >= channel)
    fits &= _is_there(batch.children["group_size"]) == (form == group)
    fits &= _is_there(batch.children["scales"]) & _is_there(batch.children["zero_points"])
    _require(fits.all(), "a quantisation has other parts than its form")
    for name in ("scales", "zero_points"):
        _numbers(batch, name, "a quantisation")


def _numbers(batch: Batch, name: str, what: str) -> None:
    """A list of expressions, or one: no text, no truth value, no list in a list."""
    for part in batch.children[name].parts:
        codes = {part.batch.code}
        if part.batch.code == CODES[ast.ListLit]:
            codes = {inner.batch.code for inner in part.batch.children["items"].parts}
        _require(codes <= _EXPRESSIONS, f"{what} has a value that is no number")


def _type(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    names = ("name", "elem", "shape", "layout", "strides")
    named, elem, shape, layout, strides = (_is_there(batch.children[name]) for name in names)
    whole = ~named & elem & shape & (layout ^ strides)
    alone = named & ~(elem | shape | layout | strides)
    _require((whole | alone).all(), "a type has other attributes than types have")
    for name in ("shape", "strides"):
        _numbers(batch, name, "a type")
        for part in _parts(batch, name, ast.ListLit):
            lengths = part.batch.children["items"].counts[part.rows]
            _require(lengths.all(), "a shape has no dimension")


def _compressed(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    is_palette = batch.scalars["form"] == ENUMS["Compression"].index("palette")
    bits, tables = (_is_there(batch.children[name]) for name in ("bits", "tables"))
    fits = (bits == is_palette) & (is_palette | ~tables)
    _require(fits.all(), "a compressed region has other parts than its form")


def _buffer(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    level = batch.children["level"].parts[0].batch
    is_l1 = level.scalars["name"] == ENUMS["Level"].index("L1")
    _require((is_l1 | ~_is_there(level.children["index"])).all(), "a shared memory has an index")


def _copy(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    _require(_words(batch, "op", pools) <= _COPIES, "a copy is neither transfer nor store")


def _words(batch: Batch, name: str, pools: Mapping[str, Sequence[str]]) -> set[str]:
    part = batch.children[name].parts[0]
    used = np.unique(part.batch.scalars["name"][part.rows]).tolist()
    return {pools["name"][index] for index in used}


def _wait(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    _require(batch.children["tokens"].counts.all(), "a wait names no token")


def _compute(batch: Batch, pools: Mapping[str, Sequence[str]]) -> None:
    for name in ("inputs", "outputs"):
        _require(batch.children[name].counts.all(), f"a task has no {name}")
    unknown = _words(batch, "op", pools) - (OPCODES.keys() - _COPIES - {"wait"})
    _require(not unknown, f"unknown opcode `{min(unknown, default='')}`")
    attributes = batch.children["attributes"]
    if attributes.size:
        part = attributes.parts[0]
        names = part.batch.children["name"].parts[0].batch.scalars["name"][part.rows]
        owners = np.repeat(np.arange(batch.count), attributes.counts)
        keys = np.sort(owners * len(pools["name"]) + names)
        _require((keys[1:] != keys[:-1]).all(), "a task has an attribute twice")


_Rule = Callable[[Batch, Mapping[str, Sequence[str]]], None]
_RULES: dict[int, _Rule] = {
    CODES[ast.IntLit]: _integers,
    CODES[ast.Negated]: _negated,
    CODES[ast.Binary]: _binary,
    CODES[ast.Quant]: _quant,
    CODES[ast.TypeAttrs]: _type,
    CODES[ast.Compressed]: _compressed,
    CODES[ast.BufferDecl]: _buffer,
    CODES[ast.Copy]: _copy,
    CODES[ast.Wait]: _wait,
    CODES[ast.Compute]: _compute,
}

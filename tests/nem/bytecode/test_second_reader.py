"""The layout as the page says it: a reader that was written from it reads what we write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from nacre.base.source import Source
from nacre.nem.bytecode import kinds
from nacre.nem.bytecode.packing import pack
from nacre.nem.syntax import ast
from nacre.nem.syntax.ast import Loop, Node
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import parse
from tests.nem.bytecode import second_reader
from tests.nem.syntax.strategies import commented_documents

ROOT = Path(__file__).resolve().parents[3]
PLACES = {"start", "end", "header_end", "endloop", "starts", "l1_start", "spec_start",
          "variants_start"}  # fmt: skip


def plain(value: object) -> object:
    """A tree of ours as plain values."""
    if isinstance(value, Node):
        names = [name for name in value.__struct_fields__ if name not in PLACES]
        return {"kind": type(value).__name__, **{n: plain(getattr(value, n)) for n in names}}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def nested(tree: second_reader.Tree) -> second_reader.Tree:
    """A tree of the second reader with the statements of loops inside them."""
    bodies: list[list[Any]] = [[]]
    for statement in tree["body"]:
        if statement["kind"] == "EndLoop":
            body = bodies.pop()
            bodies[-1][-1]["body"] = body
            continue
        bodies[-1].append(statement)
        if statement["kind"] == "Loop":
            bodies.append([])
    return {**tree, "body": bodies[0]}


def require_same(text: str) -> None:
    (found,) = second_reader.read(pack(text))
    parsed = parse(Source("f.nem", text))
    assert nested(found.tree) == plain(parsed.document)
    canonical = parse(Source("f.nem", format_source(Source("f.nem", text))))
    assert [c for _, _, c in found.comments] == [c.text for c in canonical.comments]
    if found.positions is None:
        return
    assert found.positions["size"] == len(text)
    assert found.positions["lines"] == parsed.source.line_starts
    # Of nodes that are no loops, in any order: starts in the text are those in the canonical one,
    # moved.
    moved = sum(found.positions["starts"])
    assert moved == total(parsed.document) - total(canonical.document)


def total(document: ast.Document) -> int:
    """The sum of all starts, that of `endloop` among them."""
    pending: list[object] = [document]
    made = 0
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += node
        elif isinstance(node, Node):
            made += node.start + (node.endloop if isinstance(node, Loop) else 0)
            names = [name for name in node.__struct_fields__ if name not in PLACES]
            pending += [getattr(node, name) for name in names]
    return made


@pytest.mark.parametrize(
    "name",
    ["examples/gemm_int4.nem", "examples/conv2d_maxpool.nem",
     "src/nacre/nem/spec/devices/npm_pro.nem", "src/nacre/nem/spec/nem_baseline_1.0.nem"],
)  # fmt: skip
def test_the_second_reader_finds_the_same_tree(name: str) -> None:
    text = (ROOT / name).read_text()
    require_same(text)
    require_same(text.replace(" = ", "   =   ").replace("\n", "\n\n"))


@pytest.mark.fuzz
@given(commented_documents)
def test_the_second_reader_finds_the_same_tree_of_random_documents(text: str) -> None:
    require_same(text)


def test_the_page_has_the_tables_of_the_code() -> None:
    assert {kind.name: kind.code for kind in kinds.KINDS.values()} == second_reader.CODES
    ours = {
        kind.name: [[field.name, field.type] for field in kind.fields]
        for kind in kinds.KINDS.values()
    }
    assert ours == second_reader.KINDS
    assert {name: list(words) for name, words in kinds.ENUMS.items()} == second_reader.ENUMS


def test_the_table_has_every_node_and_field_of_the_language() -> None:
    classes = {
        value for value in vars(ast).values() if isinstance(value, type) and issubclass(value, Node)
    } - {Node, ast.Broken, ast.Comment}
    assert {kind.type for kind in kinds.KINDS.values()} - {kinds.EndLoop} == classes
    for kind in kinds.KINDS.values():
        fields = [name for name in kind.type.__struct_fields__ if name not in PLACES]
        own = [field.name for field in kind.fields]
        assert own == [name for name in fields if (kind.name, name) != ("Loop", "body")]

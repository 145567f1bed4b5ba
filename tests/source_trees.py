"""Our sources as syntax trees, which are parsed and gone through once for all tests that ask."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from nacre.base.collection import no_collection

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(SRC.rglob("*.py"))}


# Not while tests are collected: they may be others.
@cache
def tree_of(path: Path) -> ast.Module:
    with no_collection():
        return ast.parse(path.read_text(encoding="utf-8"))


Node = TypeVar("Node", bound=ast.AST)


@cache
def nodes_by_kind(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """All nodes of a tree; gone through once, since many tests ask for some of them."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found[type(node)].append(node)
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
    return found


def nodes(tree: ast.AST, kind: type[Node]) -> list[Node]:
    return cast("list[Node]", nodes_by_kind(tree).get(kind, []))


def functions_in(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [*nodes(tree, ast.FunctionDef), *nodes(tree, ast.AsyncFunctionDef)]


def trees() -> dict[str, ast.Module]:
    return {name: tree_of(path) for name, path in SOURCES.items()}

"""Text to a module and back is the canonical text, also by way of upstream's tool."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings

import nacre
from nacre import nem
from nacre.base.source import Source
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import parse
from tests.compile.models import linear_model
from tests.effort import scaled
from tests.nem.mlir.upstream import needs_mlir_opt, through_mlir_opt
from tests.nem.syntax.strategies import commented_documents

pytest.importorskip("xdsl")

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.nem"))
SHIPPED = sorted((ROOT / "src/nacre/nem/spec").rglob("*.nem"))
CASES = sorted((ROOT / "tests/conformance/cases").rglob("*.nem"))


def canonical(text: str) -> str:
    return format_source(Source("p.nem", text))


def text_of(path: Path) -> str:
    """The text of a file that follows the grammar; others are not what a module is made of."""
    text = path.read_text(encoding="utf-8")
    if not parse(Source("p.nem", text)).is_valid:
        pytest.skip("does not follow the grammar")
    return text


@cache
def compiled_plan() -> str:
    return nacre.compile(linear_model(64, 256, 64), "npm4k").program


def names(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", EXAMPLES + SHIPPED, ids=names)
def test_examples_and_devices_come_back(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", CASES, ids=names)
def test_case_files_come_back(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


def test_a_compiled_plan_comes_back() -> None:
    assert nem.from_mlir(nem.to_mlir(compiled_plan())) == canonical(compiled_plan())


@pytest.mark.fuzz
@settings(max_examples=scaled(100))
@given(commented_documents)
def test_random_documents_come_back(text: str) -> None:
    assert nem.from_mlir(nem.to_mlir(text)) == canonical(text)


@needs_mlir_opt
@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_examples_come_back_through_mlir_opt(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@needs_mlir_opt
@pytest.mark.sampled(40)
@pytest.mark.parametrize("path", SHIPPED + CASES, ids=names)
def test_devices_and_case_files_come_back_through_mlir_opt(path: Path) -> None:
    text = text_of(path)
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@needs_mlir_opt
def test_a_compiled_plan_comes_back_through_mlir_opt() -> None:
    module = through_mlir_opt(nem.to_mlir(compiled_plan()))
    assert nem.from_mlir(module) == canonical(compiled_plan())


@needs_mlir_opt
@pytest.mark.fuzz
@settings(max_examples=scaled(40))
@given(commented_documents)
def test_random_documents_come_back_through_mlir_opt(text: str) -> None:
    assert nem.from_mlir(through_mlir_opt(nem.to_mlir(text))) == canonical(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_xdsl_prints_a_module_that_comes_back(path: Path) -> None:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    from nacre.nem.mlir.dialect import nem_context

    text = text_of(path)
    module = Parser(nem_context(), nem.to_mlir(text)).parse_module()
    module.verify()
    printed = io.StringIO()
    Printer(printed, print_generic_format=True).print_op(module)
    assert nem.from_mlir(printed.getvalue()) == canonical(text)

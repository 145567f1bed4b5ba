"""Findings about a module stand where its locations say: in what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from nacre import nem
from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.mlir.importing import import_source
from nacre.nem.mlir.operation_spans import operation_spans
from nacre.nem.mlir.origins import origin_source
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.lexer import tokenize
from nacre.nem.syntax.parser import ParseResult, parse
from tests.effort import scaled
from tests.nem.mlir.upstream import needs_mlir_opt, through_mlir_opt
from tests.nem.syntax.strategies import commented_documents

pytest.importorskip("xdsl")

BROKEN = sorted((Path(__file__).resolve().parents[3] / "examples/broken").glob("*.nem"))


def told(found: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(str(d), str([str(r.location) for r in d.related])) for d in found]


def findings(text: str, name: str) -> list[Diagnostic]:
    return list(check_source(Source(name, text), CheckOptions()).diagnostics)


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
def test_findings_are_those_of_the_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = nem.check_mlir(nem.to_mlir(text, path.name))
    assert found
    assert told(found) == told(findings(text, path.name))


@needs_mlir_opt
def test_locations_survive_mlir_opt() -> None:
    path = BROKEN[0]
    text = path.read_text(encoding="utf-8")
    module = through_mlir_opt(nem.to_mlir(text, path.name))
    assert told(nem.check_mlir(module)) == told(findings(text, path.name))


UGLY = """

buffer   A:L2(size = 64,
   align=48)
buffer B : L2 (size=0) ; const X = 1 # one
loop i in
 [0 .. X]: t = transfer.async (dst = region(A,0, 64) ,
   # two
   src=region(C,  X+ - 8,64)) wait(t) endloop
"""


def test_findings_about_what_was_written_otherwise_have_its_places() -> None:
    found = nem.check_mlir(nem.to_mlir(UGLY, "ugly.nem"))
    assert {d.code for d in found} >= {"BUF01", "BUF03"}
    assert told(found) == told(findings(UGLY, "ugly.nem"))


@pytest.mark.fuzz
@settings(max_examples=scaled(60))
@given(commented_documents)
def test_statements_of_any_document_are_put_back_to_their_places(text: str) -> None:
    source = Source("p.nem", text)
    imported = import_source(Source("m.mlir", nem.to_mlir(text, "p.nem")))
    before, after = parse(source), parse(origin_source(imported, "p.nem"))
    assert same_meaning(before.document, after.document)
    assert lines(before) == lines(after)


def lines(parsed: ParseResult) -> list[int]:
    """The lines on which statements, headers and bodies of loops included, begin."""
    tokens = tokenize(parsed.source).starts
    spans = operation_spans(parsed.document, tokens)
    return [parsed.source.position(span.start)[0] for span in spans]


def test_names_of_files_may_have_any_letter() -> None:
    found = nem.check_mlir(nem.to_mlir("buffer B : L2 (size=0)\n", 'näher "x".nem'))
    assert str(found[0].location).startswith('näher "x".nem:1:')


@needs_mlir_opt
def test_names_of_files_may_have_any_letter_behind_mlir_opt_too() -> None:
    module = through_mlir_opt(nem.to_mlir("buffer B : L2 (size=0)\n", "näher.nem"))
    assert str(nem.check_mlir(module)[0].location).startswith("näher.nem:1:")


@pytest.mark.parametrize(
    "location",
    [
        "",
        " loc(unknown)",
        ' loc("a.py":1:1)',
        ' loc(callsite("f" at "a.py":1:1))',
        ' loc(fused<"tag">["a.py":9:1, "b.py":1:1])',
        ' loc("a.py":999999999999:1)',
    ],
)
def test_other_locations_are_read_and_do_no_harm(location: str) -> None:
    first = '%0 = "nem.buffer_decl"() {name = "A", level = "L2", size = 0} : () -> !nem.buffer'
    other = '%1 = "nem.buffer_decl"() {name = "B", level = "L2", size = 4} : () -> !nem.buffer'
    found = nem.check_mlir(f"module {{\n{first}{location}\n{other}\n}}", name="m.mlir")
    assert [(d.code, d.location.file) for d in found] == [("BUF01", "m.mlir")]

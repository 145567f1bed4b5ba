"""Findings about a module stand where its locations say: in what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre import nem
from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, check_source
from tests.nem.mlir.upstream import needs_mlir_opt, through_mlir_opt

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


def test_a_statement_that_was_written_otherwise_is_found_on_its_line() -> None:
    text = "\n\nbuffer   A:L2(size = 64,\n   align=48)\nbuffer B : L2 (size=0) ; const X = 1\n"
    found = nem.check_mlir(nem.to_mlir(text, "ugly.nem"))
    assert [(d.code, str(d.location)) for d in found][:2] == [
        ("BUF03", "ugly.nem:3:31"),
        ("BUF01", "ugly.nem:5:21"),
    ]


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

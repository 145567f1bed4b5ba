"""Findings about a module stand where its locations say: in what was written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from nacre import nem
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.mlir.importing import import_source
from nacre.nem.mlir.operation_spans import operation_spans
from nacre.nem.mlir.origins import origin_source
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.lexer import tokenize
from nacre.nem.syntax.parser import ParseResult, parse
from tests.cli.runner import invoke
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


@pytest.mark.parametrize("deps", ["", ", deps=[t]"])
def test_findings_about_a_source_that_stands_before_its_destination(deps: str) -> None:
    text = f"""program p:
buffer A : L2 (size=64)
t = transfer.async(dst=region(A, 0, 32), src=region(A, 32, 32))
    s = transfer.async( src=region(A,  0, 128), dst=region(Q, 0,   128){deps} )
store.async(dst=region(A, 0, 32),src=region(B, 0, 32))
store.async(src=region(A, 0, 32), dst=region(R, 0, 32))
"""
    found = nem.check_mlir(nem.to_mlir(text, "p.nem"))
    assert {str(d.location) for d in found} >= {"p.nem:4:60", "p.nem:5:45", "p.nem:6:46"}
    assert told(found) == told(findings(text, "p.nem"))


@pytest.mark.fuzz
@settings(max_examples=scaled(60))
@given(commented_documents)
def test_statements_of_any_document_are_put_back_to_their_places(text: str) -> None:
    source = Source("p.nem", text)
    imported = import_source(Source("m.mlir", nem.to_mlir(text, "p.nem")))
    before, after = parse(source), parse(origin_source(imported) or Source("p.nem", imported.text))
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


BARE = """\
module {
  "nem.program"() {name = "p"} : () -> ()
  %x = "nem.buffer_decl"() {name = "X", level = "L2", size = 4096, align = 64} : () -> !nem.buffer
  "nem.loop"() ({
    %r = "nem.region_decl"(%x) {name = "r", offset=0, extent = 5000} : (!nem.buffer) -> !nem.region
    "omp.terminator"() : () -> ()
  }) {variable = "i", first = 0, last = 3} : () -> ()
}
"""


def test_findings_without_locations_stand_at_the_operations() -> None:
    found = nem.check_mlir(BARE, name="m.mlir")
    lines_found = {(d.code, d.location.file, d.location.line) for d in found}
    assert ("EXT01", "m.mlir", 5) in lines_found
    assert {line for _, _, line in lines_found} <= {3, 4, 5}
    related = [r.location for d in found for r in d.related]
    assert {(place.file, place.line) for place in related} <= {("m.mlir", 3), ("m.mlir", 4)}


def test_a_text_that_does_not_parse_is_reported_at_its_operation() -> None:
    nested = "#nem.paren<" * 120 + "1" + ">" * 120
    consts = (f'"nem.const"() {{name = "A", value = {v}}} : () -> ()' for v in ("1", nested))
    module = "\n".join(["module {", *consts, "}"])
    with pytest.raises(InputError) as refused:
        nem.check_mlir(module, name="m.mlir")
    assert {(d.location.file, d.location.line) for d in refused.value.diagnostics} == {
        ("m.mlir", 3)
    }


def test_values_that_nothing_defines_are_reported_where_they_are_used() -> None:
    module = BARE.replace('"nem.region_decl"(%x)', '"nem.region_decl"(%y)')
    with pytest.raises(InputError) as refused:
        nem.check_mlir(module, name="m.mlir")
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.location.line, finding.location.column) == ("MLR02", 5, 28)
    assert finding.message == "nothing defines `%y`"


@pytest.mark.parametrize(
    "module",
    [
        "module {",
        'module {\n"nem.nothing"() : () -> ()\n}',
        'module {\n"nem.wait"() : () -> ()\n}',
        'module {\n"builtin.module"() ({}) : () -> ()\n}',
        "#a = 1\nmodule {}",
        BARE.replace("(%x)", "(%y)"),
    ],
)
def test_findings_about_modules_say_how_to_mend_them(module: str) -> None:
    with pytest.raises(InputError) as refused:
        nem.check_mlir(module, name="m.mlir")
    assert all(d.help for d in refused.value.diagnostics)


@pytest.mark.parametrize("has_locations", [True, False])
def test_a_programs_own_includes_are_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_locations: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plans", "out", "devices"):
        (tmp_path / name).mkdir()
    (tmp_path / "devices/mine.nem").write_text(
        'include "npm4k.nem"\ndevice mine extends npm4k {\n}\n'
    )
    text = 'include "../devices/mine.nem"\ndevice mine\nprogram p:\nconst X = 1\n'
    (tmp_path / "plans/p.nem").write_text(text)
    module = nem.to_mlir(text, "plans/p.nem")
    if not has_locations:
        module = re.sub(r" loc\(fused\[.*?\]\)", "", module)
    (tmp_path / "out/m.mlir").write_text(module)
    outcome = invoke(capsys, "nem", "from-mlir", "out/m.mlir", "--check")
    assert outcome.status == 0, outcome.text
    (tmp_path / "far").mkdir()
    (tmp_path / "out/sub/sub").mkdir(parents=True)
    (tmp_path / "out/sub/sub/m.mlir").write_text(
        module.replace("../devices", "../../../devices").replace("plans/p.nem", "gone/p.nem")
    )
    deep = ("nem", "from-mlir", "out/sub/sub/m.mlir", "--check")
    refused = invoke(capsys, *deep)
    assert "INC08" in refused.text
    outcome = invoke(capsys, *deep, "--include-root", "devices")
    assert outcome.status == 0, outcome.text


def test_locations_of_a_stranger_do_not_choose_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.nem").write_text("const = hidden\n")
    text = 'include "secret.nem"\nprogram p:\nconst X = 1\n'
    found = nem.check_mlir(nem.to_mlir(text, str(tmp_path / "p.nem")))
    assert [d.code for d in found] == ["INC02"]

"""Modules from strangers: refused with a code and a place, or read to what they say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Source
from nacre.nem.mlir import reading
from nacre.nem.mlir.lowering import lower_matmuls
from nacre.nem.syntax.formatter import format_source
from tests.effort import scaled

pytest.importorskip("xdsl")

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/conv2d_relu.nem"
BUFFER = '%b = "nem.buffer_decl"() {name = "B", level = "L1", size = 64} : () -> !nem.buffer'
REGION = (
    '"nem.region_decl"(%b) {name = "R", offset = 0, extent = 64} : (!nem.buffer) -> !nem.region'
)


def refusals(text: str) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        nem.from_mlir(text, "m.mlir")
    return list(caught.value.diagnostics)


def codes_or_text(text: str) -> set[str]:
    """The groups of the codes with which a text is refused; none where it is read."""
    try:
        read = nem.from_mlir(text)
    except InputError as error:
        return {d.code[:3] for d in error.diagnostics}
    assert format_source(Source("p.nem", read)) == read
    return set()


def module(*lines: str) -> str:
    return "\n".join(["module {", *lines, "}"])


def test_a_text_that_is_no_module_is_refused_where_it_stops_to_be_one() -> None:
    (found,) = refusals('module {\n  "nem.wiat"() : () -> ()\n}')
    assert (found.code, found.location.line) == ("MLR02", 2)
    assert found.message == "this is no module of MLIR: there is no operation `nem.wiat`"


@pytest.mark.parametrize(
    "text", ["$x", "`", "\x01", '"open', "%%", "\ud800", "module {}$", "@", "", "  "]
)
def test_a_text_whose_first_token_is_none_is_refused_there(text: str) -> None:
    for read in (nem.from_mlir, nem.check_mlir, lower_matmuls):
        if read is lower_matmuls and text == "module {}$":
            continue
        with pytest.raises(InputError) as caught:
            read(text, name="m.mlir")
        (found,) = caught.value.diagnostics
        assert (found.code, found.location.line, found.location.file) == ("MLR02", 1, "m.mlir")


@pytest.mark.parametrize("text", ["# a comment\nconst X = 1\n", "const X = 1\n", "program p:\n"])
def test_a_nem_document_is_told_from_a_module(text: str) -> None:
    (found,) = refusals(text)
    assert (found.code, found.message) == ("MLR02", "this is a NEM document, no module of MLIR")
    assert found.help == "`nacre nem to-mlir` makes one"


def test_broken_operations_are_all_told_with_their_lines() -> None:
    text = module(
        '"nem.program"() : () -> ()', '"nem.wait"() : () -> ()', '"nem.const"() : () -> ()'
    )
    assert [(d.code, d.location.line) for d in refusals(text)] == [("MLR03", 2), ("MLR03", 4)]
    (found,) = refusals(module('"nem.wait"() : () -> ()'))
    assert (found.code, found.message) == ("MLR03", "`nem.wait` names no token")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (['"builtin.module"() ({\n}) : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "a b"} : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "p:\\0Await"} : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "p", nem.above = ["wait(t)"]} : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "p", nem.behind = "const X = 1"} : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "p", nem.inside = [[0, true, "x"]]} : () -> ()'], "MLR03"),
        (['"nem.program"() <{x = 1}> {name = "p"} : () -> ()'], "MLR03"),
        (['"nem.const"() {name = "X", value = #nem.float<"1e3">} : () -> ()'], "MLR03"),
        (['"nem.const"() {name = "X", value = 5 : i32} : () -> ()'], "MLR03"),
        (['"nem.const"() {name = "X", value = "\\FF"} : () -> ()'], "MLR03"),
        (['"nem.const"() {name = "X", value = 1, other = 1} : () -> ()'], "MLR03"),
        (['"nem.program"() {name = "p"} : () -> ()', '"nem.include"() {path = "x"} : () -> ()'],
         "MLR03"),
        (['"nem.program"() {name = "p"} : () -> ()', '"nem.program"() {name = "q"} : () -> ()'],
         "MLR03"),
        (['"nem.topology"() ({\n"omp.terminator"() : () -> ()\n}) : () -> ()'], "MLR03"),
        ([BUFFER, f"%r = {REGION}", f"%s = {REGION}",
          '"nem.relu"(%r, %s) {form = "async"} : (!nem.region, !nem.region) -> ()'], "MLR04"),
        ([f"%r = {REGION}", BUFFER], "MLR04"),
        (['"nem.loop"() ({', BUFFER, '"omp.terminator"() : () -> ()',
          '}) {variable = "i", first = 0, last = 3} : () -> ()', f"%r = {REGION}"], "MLR02"),
        ([BUFFER, f"%r = {REGION}",
          '"nem.relu"(%r, %r) {form = "async", saturate = 3} : (!nem.region, !nem.region) -> ()'],
         "MLR03"),
        ([BUFFER, f"%r = {REGION}",
          '"nem.relu"(%r, %r) {form = "async", token = "t"} : (!nem.region, !nem.region) -> ()'],
         "MLR03"),
    ],
)  # fmt: skip
def test_what_no_program_can_say_is_refused(lines: list[str], code: str) -> None:
    assert {d.code for d in refusals(module(*lines))} == {code}


LOOP = '"nem.loop"() ({{\n{}\n}}) {{variable = "i", first = 0, last = 3}} : () -> ()'
CONST = '"nem.const"() {name = "X", value = 1} : () -> ()'
END = '"omp.terminator"() : () -> ()'


def test_a_body_that_upstream_ends_is_read() -> None:
    text = "loop i in [0..3]:\n    const X = 1\nendloop\n"
    assert nem.from_mlir(module(LOOP.format(f"{CONST}\n{END}"))) == text
    assert nem.from_mlir(module(LOOP.format(f"^bb0:\n{CONST}"))) == text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LOOP.format(f"^bb0(%i: index):\n{CONST}"), "takes 1 arguments, expected none"),
        (LOOP.format(f"^a:\n{CONST}\n^b:\n{CONST}"), "expected a single block, but got 2"),
        (LOOP.format(f"{END}\n{CONST}"), "`omp.terminator` alone ends the body"),
        (CONST.replace("() {", "() ({}) {"), "Expected 0 regions"),
        (CONST.replace("() {", '() <{more = "y"}> {'), "property 'more' is not defined"),
        (LOOP.format(CONST).replace("}) {", "}, {}) {"), "Expected 1 region"),
        (f"^bb0(%i: index):\n{CONST}", "`builtin.module` takes 1 arguments, expected none"),
        (END, "`omp.terminator` alone ends the body"),
        ('"nem.topology"() ({^b(%i: index):}) : () -> ()', "takes 1 arguments, expected none"),
    ],
)
def test_bodies_are_what_the_dialect_says_of_them(lines: str, message: str) -> None:
    found = refusals(module(lines))
    assert {d.code for d in found} == {"MLR03"}
    assert message in found[0].message


@pytest.mark.parametrize("lines", ["[1]", '"#"', '["wait(t)"]', '["# a\\0Ab"]'])
def test_lines_at_the_end_that_are_no_comments_are_refused(lines: str) -> None:
    text = f"module attributes {{nem.end = {lines}}} {{\n{BUFFER}\n}}"
    assert [d.code for d in refusals(text)] == ["MLR03"]


def test_a_name_that_is_none_is_told_where_it_is_given() -> None:
    text = module(BUFFER.replace('"B"', '"a b"'), f"%r = {REGION}")
    assert {d.code for d in refusals(text)} == {"MLR03"}


def test_names_that_the_grammar_refuses_are_refused_by_it() -> None:
    text = module('"nem.const"() {name = "endloop", value = #nem.name<"loop">} : () -> ()')
    assert codes_or_text(text) <= {"DOC", "MLR"}


def test_depth_is_bounded_and_deep_programs_are_read() -> None:
    terms = " + ".join(["1"] * 400)
    nested = "(" * 95 + "1" + ")" * 95
    text = f"const X = {terms}\nconst Y = {nested}\n"
    assert nem.from_mlir(nem.to_mlir(text)) == text
    deep = "#nem.paren<" * 30_000 + "1" + ">" * 30_000
    (found,) = refusals(module(f'"nem.const"() {{name = "X", value = {deep}}} : () -> ()'))
    assert found.code == "MLR02"


def test_aliases_that_multiply_are_refused_and_locations_that_do_are_cut() -> None:
    doubled = "\n".join(f"#a{at} = [#a{at - 1}, #a{at - 1}]" for at in range(1, 64))
    const = '"nem.const"() {name = "X", value = #a63} : () -> ()'
    (found,) = refusals(f"#a0 = [1]\n{doubled}\nmodule {{\n{const}\n}}")
    assert (found.code, found.location.line) == ("MLR02", 1)
    fused = "\n".join(f"#loc{at} = loc(fused[#loc{at - 1}, #loc{at - 1}])" for at in range(1, 64))
    const = '"nem.const"() {name = "X", value = 1} : () -> () loc(#loc63)'
    text = f'module {{\n{const}\n}}\n#loc0 = loc("a.py":1:1)\n{fused}\n'
    assert nem.from_mlir(text) == "const X = 1\n"


def test_a_region_that_is_used_too_often_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from nacre.nem.mlir import read_document

    monkeypatch.setattr(read_document, "MAX_SOURCE_BYTES", 1000)
    region = '%r = "nem.region_decl"(%b) {offset = 0, extent = 64} : (!nem.buffer) -> !nem.region'
    use = '"nem.relu"(%r, %r) {form = "sync"} : (!nem.region, !nem.region) -> ()'
    (found,) = refusals(module(BUFFER, region, *[use] * 40))
    assert found.code == "MLR03"


def test_large_numbers_are_refused() -> None:
    (found,) = refusals(module(f'"nem.const"() {{name = "X", value = {"9" * 5000}}} : () -> ()'))
    assert found.code == "MLR02"


def test_a_text_beyond_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from nacre.nem.api import mlir

    monkeypatch.setattr(mlir, "MAX_SOURCE_BYTES", 10)
    assert [d.code for d in refusals(module(BUFFER))] == ["MLR02"]


def test_without_xdsl_a_module_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "find_spec", lambda name: None)
    (found,) = refusals(module(BUFFER))
    assert (found.code, found.help) == ("MLR06", 'pip install "nacre[mlir]"')


def test_results_without_names_get_new_ones() -> None:
    copy = '"nem.relu"(%r, %r{}) {{form = "async"}} : (!nem.region, !nem.region{}) -> !nem.token'
    lines = [BUFFER, f"%r = {REGION}", f"%t = {copy.format('', '')}"]
    lines.append(f"%u = {copy.format(', %t', ', !nem.token')}")
    lines.append('"nem.wait"(%t, %u) : (!nem.token, !nem.token) -> ()')
    assert nem.from_mlir(module(*lines)).splitlines()[2:] == [
        "token_0 = relu.async in R out R",
        "token_1 = relu.async in R out R deps=[token_0]",
        "wait(token_0, token_1)",
    ]


def test_expressions_get_the_parentheses_that_they_need() -> None:
    inner = '#nem.plus<#nem.name<"a">, -1>'
    expressions = {
        f"#nem.times<{inner}, 2>": "(a + -1) * 2",
        "#nem.times<2, #nem.times<3, 4>>": "2 * (3 * 4)",
        f"#nem.minus<1, {inner}>": "1 - (a + -1)",
        f"#nem.plus<{inner}, 2>": "a + -1 + 2",
        f"#nem.negated<{inner}>": "-(a + -1)",
        "#nem.plus<1, #nem.modulo<5, 3>>": "1 + 5 mod 3",
    }
    for given, wanted in expressions.items():
        text = module(f'"nem.const"() {{name = "X", value = {given}}} : () -> ()')
        assert nem.from_mlir(text) == f"const X = {wanted}\n"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(scaled(12)))
def test_damaged_modules_are_refused_or_read_to_a_document(seed: int) -> None:
    draw = random.Random(seed)
    text = nem.to_mlir(EXAMPLE.read_text(encoding="utf-8"))
    lines = text.splitlines()
    kept = [line for line in lines if draw.random() < 0.4 or line in (lines[0], lines[-1])]
    damaged = list("\n".join(kept))
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(damaged))
        damaged[at] = draw.choice(["", '"', "<", "%", "1", "{", "}", "#", "\\", damaged[at] * 2])
    assert codes_or_text("".join(damaged)) <= {"MLR", "DOC", "CST", "LEX"}

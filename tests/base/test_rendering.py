from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nacre.base.diagnostics import Diagnostic, Related, Severity
from nacre.base.excerpt import backquote, excerpt, safe
from nacre.base.rendering import render_json, render_text, summary
from nacre.base.source import Source

ANSI = re.compile(r"\x1b\[[\d;]*m")
TAB_CELLS = 4


def error(
    text: str, start: int, end: int, message: str = "something is wrong", name: str = "a.nem"
) -> Diagnostic:
    return Diagnostic("DOC19", "error", message, Source(name, text).span(start, end))


def with_everything() -> Diagnostic:
    source = Source(
        "kernels/fc.nem",
        "buffer B : L2 (size=4)\n" * 8
        + "bias = region(B, 0, 4) elem=f16, shape=[2], layout=C\n"
        + "t = gemm.async in a, w, bias out y accum_type=i32\n",
    )
    use, declaration = source.text.index("bias out"), source.text.index("bias =")
    return Diagnostic(
        "TYP06",
        "error",
        "operand `C` of `gemm` has element type `f16`, but the variant takes `i32`",
        source.span(use, use + 4),
        (Related(source.span(declaration, declaration + 4), "declared `f16` here"),),
        "convert it first with `cast`",
    )


EXCERPTS = {
    "related_place_and_help": with_everything(),
    "tabs": error("\tconst\tX = $\n", 11, 12),
    "wide_characters_before_the_caret": error('let 名前 = "深い学習" $ é\u0301x\n', 16, 17),
    "several_lines": error("wait(\n  a,\n  b\n", 0, 13),
    "end_of_file": error("const X =", 9, 9, "expected an expression, found the end of the file"),
    "empty_file": error("", 0, 0),
    "long_line_middle": error("x + " * 2500 + "$ + 1", 5000, 5001),
    "long_line_start": error("$" + " + x" * 2500, 0, 1),
    "long_line_end": error("x + " * 2500 + "$", 10_000, 10_001),
    "control_characters": error("let s = \x1b[31m\x07\x00\x7f\u202e 'x'\r\n", 8, 13),
}


@pytest.mark.parametrize("diagnostic", EXCERPTS.values(), ids=EXCERPTS)
def test_a_diagnostic_shows_its_source(diagnostic: Diagnostic, golden: Callable[..., None]) -> None:
    golden(render_text([diagnostic]))


def test_diagnostics_are_separated_by_blank_lines() -> None:
    one = render_text([error("ab", 0, 1)])
    assert render_text([error("ab", 0, 1), error("ab", 0, 1)]) == f"{one}\n{one}"
    assert render_text([]) == ""


@pytest.mark.parametrize("diagnostic", EXCERPTS.values(), ids=EXCERPTS)
def test_colour_comes_only_when_asked_for_and_changes_nothing_else(diagnostic: Diagnostic) -> None:
    plain, coloured = render_text([diagnostic]), render_text([diagnostic], colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[" in coloured
    assert ANSI.sub("", coloured) == plain


ANY_TEXT = st.text(max_size=60)


@pytest.mark.heavy("long texts, each rendered in every way")
@given(ANY_TEXT, st.text(min_size=1, max_size=60), ANY_TEXT, st.data())
def test_no_input_can_drive_the_terminal(
    text: str, message: str, name: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    span = Source(name, text).span(start, end)
    diagnostic = Diagnostic("DOC19", "error", message, span, (Related(span, message),), message)
    rendered = render_text([diagnostic])
    assert all(c.isprintable() or c in "\n\t" for c in rendered)
    assert rendered.count("\n") == 10, "no line of the source becomes two"


def test_control_characters_are_made_visible() -> None:
    assert safe("a\x1b[1mb\nc\x7f\x9b\u202e\u200b") == "a␛[1mb␊c\ufffd\ufffd\ufffd\ufffd"
    assert safe("déjà vu 学") == "déjà vu 学"


def test_what_a_message_quotes_is_cut_when_long() -> None:
    assert backquote("x" * 40) == f"`{'x' * 40}`"
    assert backquote("x" * 41) == f"`{'x' * 40}...`"
    assert backquote("a\nb", most=2) == "`a␊...`"


@given(st.text(st.sampled_from("ab \t学é字\u0301"), max_size=40), st.data())
def test_the_caret_stands_under_its_characters(line: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    shown, cell, cells = excerpt(line, start, end)
    assert shown == line.replace("\t", " " * TAB_CELLS)
    assert cell == cell_len(line[:start].replace("\t", " " * TAB_CELLS))
    assert cells == max(1, cell_len(line[start:end].replace("\t", " " * TAB_CELLS)))


@given(st.integers(0, 999), st.integers(1, 30))
def test_a_cut_line_still_shows_what_is_pointed_at(start: int, length: int) -> None:
    line = "".join(chr(ord("a") + i % 26) for i in range(1000))
    shown, cell, cells = excerpt(line, start, min(1000, start + length), width=80)
    assert len(shown) <= 80 + len("...") * 2
    assert shown[cell : cell + cells] == line[start : start + length]


@given(st.integers(0, 299))
def test_a_cut_line_of_wide_characters_is_not_wider_than_the_window(start: int) -> None:
    shown, cell, _ = excerpt("学" * 300, start, start + 1, width=80)
    assert cell_len(shown) <= 80 + len("...") * 2
    assert cell < cell_len(shown)


@pytest.mark.parametrize("width", [60, 80])
def test_a_span_longer_than_the_window_is_underlined_to_its_edge(width: int) -> None:
    shown, cell, cells = excerpt("x" * 500, 10, 400, width)
    assert cell + cells <= len(shown)


def test_the_machine_form_has_the_documented_shape() -> None:
    diagnostic = with_everything()
    place = {"file": "kernels/fc.nem", "line": 10, "column": 25, "end_line": 10, "end_column": 29}
    related = {"file": "kernels/fc.nem", "line": 9, "column": 1, "end_line": 9, "end_column": 5}
    expected = {
        "code": "TYP06",
        "severity": "error",
        "message": diagnostic.message,
        **place,
        "related": [{"message": "declared `f16` here", **related}],
        "help": "convert it first with `cast`",
    }
    document = json.loads(render_json([diagnostic]))
    assert document == {"diagnostics": [expected]}
    assert list(document["diagnostics"][0]) == list(expected), "the order of keys is stable"


def test_the_machine_form_has_every_key_even_where_there_is_nothing_to_say() -> None:
    (only,) = json.loads(render_json([error("ab", 0, 0)], indent=None))["diagnostics"]
    assert (only["related"], only["help"]) == ([], None)
    assert (only["line"], only["column"], only["end_line"], only["end_column"]) == (1, 1, 1, 1)
    assert json.loads(render_json([])) == {"diagnostics": []}


@given(ANY_TEXT)
def test_the_machine_form_keeps_messages_as_they_are(message: str) -> None:
    (only,) = json.loads(render_json([error("ab", 0, 1, message)]))["diagnostics"]
    assert only["message"] == message


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ([], "no problems"),
        (["error"], "1 error"),
        (["error", "warning", "error"], "2 errors, 1 warning"),
        (["warning", "warning"], "2 warnings"),
        (["info", "info"], "2 info"),
        (["info", "error"], "1 error, 1 info"),
    ],
)
def test_the_summary_counts_by_severity(severities: list[Severity], expected: str) -> None:
    span = Source("f", "x").span(0, 1)
    assert summary([Diagnostic("DOC19", s, "m", span) for s in severities]) == expected

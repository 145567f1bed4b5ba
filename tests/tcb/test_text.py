"""Assembler text: the exact inverse of an image, and every mistake in one go."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Source
from nacre.base.terms import operation
from nacre.tcb.block_table import BLOCK, RECORDS, Record
from nacre.tcb.image import Image, Tag, counter
from nacre.tcb.limits import MAX_DEPTH, MAX_FINDINGS, MAX_TERM_DEPTH, MAX_TERM_OPERATIONS
from nacre.tcb.text.assembly import assemble
from nacre.tcb.text.disassembly import disassemble
from nacre.tcb.text.terms import address_text, term_text
from nacre.tcb.text.written import tag_text
from tests.effort import scaled
from tests.tcb.samples import TEXT, sample
from tests.tcb.strategies import images


def findings(text: str) -> tuple[Diagnostic, ...]:
    try:
        assemble(Source("f.tcbs", text))
    except InputError as error:
        return error.diagnostics
    return ()


def test_the_text_of_the_sample_is_canonical() -> None:
    assert disassemble(sample()) == TEXT


@settings(max_examples=scaled(60))
@given(images())
def test_text_and_image_are_inverses(image: Image) -> None:
    text = disassemble(image)
    again = assemble(Source("f.tcbs", text)).image
    assert again == image
    assert disassemble(again) == text


def test_constants_may_be_left_out_and_given_again() -> None:
    image = sample()
    text = disassemble(image, inline_constants=False)
    assert "data sha256" in text
    (found,) = findings(text)
    assert found.code == "TCB07"
    digest = text.partition('sha256 "')[2].partition('"')[0]
    assert assemble(Source("f.tcbs", text), {digest: image.constants[0].data}).image == image


def test_blanks_order_and_numbers_of_a_text_are_free() -> None:
    odd = TEXT.replace("size 4096", "size 0x1000").replace("\n  join", "\r\n\tjoin # here\n")
    odd = odd.replace("on DMA 20+4 shared 4 signal e0.t0", "signal e0.t0 shared 4 on DMA 20 + 4")
    assert odd != TEXT
    assert disassemble(assemble(Source("f.tcbs", odd)).image) == TEXT


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (operation("+", operation("+", 1, 2), 3), "1 + 2 + 3"),
        (operation("+", 1, operation("+", 2, 3)), "1 + (2 + 3)"),
        (operation("*", operation("mod", counter(0), 2), 64), "(c0 mod 2)*64"),
        (operation("*", operation("*", counter(1), 2), -3), "c1*2*-3"),
        (operation("-", -1, operation("/", counter(0), 2)), "-1 - c0/2"),
        (operation("/", 7, operation("-", counter(0), 2)), "7/(c0 - 2)"),
    ],
)
def test_terms_are_written_with_the_parentheses_that_they_need(term: object, text: str) -> None:
    assert term_text(term) == text  # type: ignore[arg-type]


def test_summands_of_addresses_are_hexadecimal() -> None:
    assert address_text(operation("+", 1024, operation("*", counter(0), 64))) == "0x400 + c0*64"
    assert tag_text(Tag(-1, 7)) == "d.t7"
    assert tag_text(Tag(3, operation("mod", counter(0), 2))) == "e3.t(c0 mod 2)"


# The table


def nested(record: Record) -> Iterator[tuple[Record, Record]]:
    for field in record.fields:
        if field.of is not None:
            yield record, RECORDS[field.of]
            yield from nested(RECORDS[field.of])


def test_keywords_of_a_record_are_none_of_those_inside_it() -> None:
    for outer in RECORDS.values():
        for _, inner in nested(outer):
            words = {field.keyword for field in inner.fields if field.keyword.isidentifier()}
            assert words.isdisjoint(field.keyword for field in outer.fields), (outer.of, inner.of)


def test_every_field_of_a_value_has_a_row_and_a_meaning() -> None:
    elsewhere = {"items", "machine", "placements", "ports", "streams", "constants", "origins"}
    for record in RECORDS.values():
        fields = set(record.of.__annotations__) - (elsewhere if record is not BLOCK else set())
        assert {field.name for field in record.fields} == fields, record.of
        assert all(field.meaning for field in record.fields)


# Mistakes


def test_every_mistake_is_found_in_one_go() -> None:
    text = (
        TEXT.replace("size 8192", "sise 8192")
        .replace("elem i8 dims [64, 64]", "elem i8 dims [64, 64")
        .replace("repeat @4 count 8", "repeat @4 cuont 8")
        .replace("set e0.t1=2", "set e0.1=2")
        .replace("wait @9 wait d.t0>=1", "wait @9 on DMA 1+2")
        .replace("origin @6", "orgin @6")
    )
    found = findings(text)
    assert [(d.code, d.location.line) for d in found] == [
        ("TCB03", 9), ("TCB02", 12), ("TCB02", 16), ("TCB03", 17), ("TCB03", 36), ("TCB03", 47),
    ]  # fmt: skip
    helps = [d.help for d in found]
    assert "did you mean `size`?" in helps
    assert "did you mean `count`?" in helps
    assert "did you mean `origin`?" in helps


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("tcb 1", "tcb 2", "TCB05", "the text begins with version 2, expected `tcb 1`"),
        ("tcb 1", "", "TCB05", "the text begins with `image`, expected `tcb 1`"),
        ("place X", "place ;", "TCB01", "`;` begins nothing that an assembler text has"),
        ('"round_robin"', '"round_robin', "TCB01", "the string does not end on its line"),
        ('"round_robin"', '"\\q"', "TCB04", 'has an escape that there is not'),
        ('"round_robin"', '"\\ud800"', "TCB04", 'has an escape that there is not'),
        ("size 8192", "size 9223372036854775808", "TCB04", "does not fit in 64 bits"),
        ("size 8192", f"size {'9' * 5000}", "TCB04", "does not fit in 64 bits"),
        ("size 8192", "", "TCB03", "`place` lacks `size`"),
        ("size 8192", "size 8192 size 3", "TCB03", "`size` is there twice"),
        ("AAECAwQFBgc=", "AAECAwQFBgc", "TCB04", "these bytes are no base64"),
        ("stream d {", "stream x {", "TCB02", "found `x`, expected an engine such as `e0`"),
        ("port input", "port inptu", "TCB02", "found `inptu`, expected `input` or `output`"),
        ("c0 + 1 signal", "(c0 + 1 signal", "TCB02", "found `signal`, expected `)` or an operator"),
        ("c0 + 1 signal", "x + 1 signal", "TCB02", "expected an integer, a counter"),
        ("image conv", "image conv\nimage conv", "TCB02", "2 statements `image`, expected one"),
        ("stream d {", "", "TCB02", "found `wait`, expected a statement such as `stream`"),
        ("join @4 wait e0.t0>=1 set", "task @4 wait e0.t0>=1 set", "TCB03", "`task` has no `set`"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(old: str, new: str, code: str, message: str) -> None:
    assert old in TEXT
    found = findings(TEXT.replace(old, new, 1))
    assert found[0].code == code
    assert message in found[0].message


def test_what_is_open_at_the_end_is_named() -> None:
    (found,) = findings(TEXT.partition("\nstream d")[0].rstrip().removesuffix("}"))
    assert found.code == "TCB02"
    assert found.message == "found the end of the text, expected `}`, for the braces are open"


# Texts from strangers


def test_depth_size_and_number_of_findings_are_bounded() -> None:
    deep = "tcb 1\nstream e0 {" + "repeat @1 count 1 {" * (2 * MAX_DEPTH)
    assert "TCB06" in [d.code for d in findings(deep)]
    long = "1" + " + 1" * (MAX_TERM_DEPTH + 1)
    assert [d.code for d in findings(TEXT.replace("c0 + 1 signal", f"{long} signal"))] == ["TCB06"]
    many = "(" * (MAX_TERM_OPERATIONS + 9)
    assert [d.code for d in findings(TEXT.replace("c0 + 1 signal", many))] == ["TCB06"]
    assert len(findings("tcb 1\n" + "place\n" * 5000)) == MAX_FINDINGS
    assert len(findings("tcb 1\n" + "; " * 5000)) == MAX_FINDINGS


def test_the_deepest_term_that_is_read_is_written_again() -> None:
    text = "1" + " + 1" * MAX_TERM_DEPTH
    image = assemble(Source("f.tcbs", TEXT.replace("c0 + 1 signal", f"{text} signal"))).image
    assert f"wait e0.t1>={text}\n" in disassemble(image)
    right = "(1 + " * MAX_TERM_DEPTH + "1" + ")" * MAX_TERM_DEPTH
    assert findings(TEXT.replace("c0 + 1 signal", f"{right} signal")) == ()


PIECES = ("{", "}", "[", "]", "(", ")", ",", ":", "@", "-", ">=", '"', "task", "wait", "repeat",
          "e0.t", "d.t1", "0x", "1e9", "c0", "mod", "\n", "stream", "_", "#", "\0")  # fmt: skip


def mutated(draw: random.Random, text: str) -> str:
    """A text with a few pieces cut out, put in or doubled."""
    for _ in range(draw.choice((1, 1, 2, 5))):
        start = draw.randrange(len(text))
        end = min(len(text), start + draw.choice((0, 0, 1, 3, 40)))
        text = text[:start] + draw.choice((*PIECES, "", text[start:end] * 2)) + text[end:]
    return text


@pytest.mark.fuzz
def test_mutated_texts_are_refused_with_codes_or_read() -> None:
    draw = random.Random(27)
    accepted = 0
    for _ in range(scaled(600)):
        text = mutated(draw, TEXT)
        found = findings(text)
        assert all(d.code.startswith("TCB0") for d in found)
        if not found:
            accepted += 1
            again = disassemble(assemble(Source("f.tcbs", text)).image)
            assert disassemble(assemble(Source("f.tcbs", again)).image) == again
    assert accepted

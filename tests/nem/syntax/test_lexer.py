from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.syntax.lexer import LOOKAHEAD, Tokens, tokenize
from tests.nem.syntax.strategies import commented_documents


def lex(text: str) -> Tokens:
    return tokenize(Source("f", text))


def texts_of(text: str) -> list[str]:
    return lex(text).texts[:-LOOKAHEAD]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("0..5", "0 .. 5"),
        ("[0..1.5]", "[ 0 .. 1.5 ]"),
        ("1.5..2.5", "1.5 .. 2.5"),
        ("a..b", "a .. b"),
        ("a.b..c.d", "a.b .. c.d"),
        ("i0..T-1", "i0 .. T - 1"),
        ("transfer.async(dst=a)", "transfer.async ( dst = a )"),
        ("opcode.mandatory{", "opcode.mandatory {"),
        ("gemm.float<bf16>.no_bias", "gemm.float < bf16 > . no_bias"),
        ("1.0e-5", "1.0e-5"),
        ("1.0E+5+e5", "1.0E+5 + e5"),
        ("4-e", "4 - e"),
        ("2*(i+1)mod 4", "2 * ( i + 1 ) mod 4"),
        ("x=-1", "x = - 1"),
        ("@resource(CSTL[0])", "@ resource ( CSTL [ 0 ] )"),
        ("a;b,c:d", "a ; b , c : d"),
        ("const\tX\r\n=\n4", "const X = 4"),
        ("_a1 __ A_", "_a1 __ A_"),
        ("deps=[t]#no", "deps = [ t ]"),
    ],
)
def test_token_boundaries(text: str, expected: str) -> None:
    found = lex(text)
    assert found.texts[:-LOOKAHEAD] == expected.split()
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    "literal",
    ['""', '"a b"', r'"say \"hi\""', r'"\\"', r'"c:\dir"', '"# no comment"', '"é学"', '"a\tb"'],
)
def test_a_string_is_one_token_whatever_it_holds(literal: str) -> None:
    assert texts_of(f"include {literal} x") == ["include", literal, "x"]
    assert lex(literal).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "code", "column", "end", "message"),
    [
        ('include "abc', "LEX02", 9, 13, 'string `"abc` is not closed before the end of the line'),
        ('include "abc\r\nX', "LEX02", 9, 13, 'string `"abc` is not closed'),
        (r'include "abc\" x', "LEX02", 9, 17, r'string `"abc\" x` is not closed'),
        ('"', "LEX02", 1, 2, 'string `"` is not closed'),
        ("let a = 1.", "LEX03", 9, 11, "`1.` is not a number"),
        ("let a = .5", "LEX03", 9, 11, "`.5` is not a number"),
        ("let a = 1e-5", "LEX03", 9, 13, "`1e-5` is not a number"),
        ("let a = 1e5", "LEX03", 9, 12, "`1e5` is not a number"),
        ("let a = 1.0e", "LEX03", 9, 13, "`1.0e` is not a number"),
        ("let a = 0x1F", "LEX03", 9, 13, "`0x1F` is not a number"),
        ("let 2nd = 4", "LEX03", 5, 8, "`2nd` is not a number"),
        ("const X = 4 $ 2", "LEX01", 13, 14, "unexpected character `$`"),
        ("const X = 4 && 2", "LEX01", 13, 15, "unexpected character `&&`"),
        ("const é = 4", "LEX01", 7, 8, "unexpected character `é`"),
        ("const X\u00a0= 4", "LEX01", 8, 9, "unexpected character U+00A0 (no-break space)"),
        ("const X\x0c= 4", "LEX01", 8, 9, "unexpected character U+000C (control character)"),
        ("const X = 4\x1b", "LEX01", 12, 13, "unexpected character U+001B"),
        ("const \ufeffX = 4", "LEX01", 7, 8, "unexpected character U+FEFF"),
    ],
)
def test_what_cannot_be_read_is_reported_at_its_place(
    text: str, code: str, column: int, end: int, message: str
) -> None:
    (found,) = lex(text).diagnostics
    assert (found.code, found.location.column, found.location.end_column) == (code, column, end)
    assert message in found.message


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("1.", "a float needs digits on both sides of the point: `1.0`"),
        (".5", "a float needs digits on both sides of the point: `0.5`"),
        ("1e-5", "a float needs a point: `1.0e-5`"),
        ("0x1F", "integers are written in decimal"),
        ("2nd", "a name cannot start with a digit; the number would be `2`"),
        ("a % b", "the operators are `+`, `-`, `*`, `/` and `mod`"),
        ("'a'", 'strings stand between `"` and `"`'),
        ("\u201ca", 'strings stand between `"` and `"`'),
    ],
)
def test_the_help_says_how_to_mend_it(text: str, help_: str) -> None:
    assert lex(text).diagnostics[0].help == help_


def test_illegal_characters_are_left_out_and_remembered() -> None:
    found = lex("a $$ b ! c")
    assert found.texts[:-LOOKAHEAD] == ["a", "b", "c"]
    assert list(found.starts)[:-LOOKAHEAD] == [0, 5, 9]
    assert list(found.illegal) == [2, 7]


def test_malformed_numbers_and_strings_stay_for_the_parser() -> None:
    assert texts_of('1. .5 "x') == ["1.", ".5", '"x']


def test_comments_are_kept_apart_with_their_places() -> None:
    text = 'a # one  \r\n#\n"#" ## two # three\t\n# é学'
    found = lex(text)
    assert found.texts[:-LOOKAHEAD] == ["a", '"#"']
    assert [c.text for c in found.comments] == ["# one", "#", "## two # three", "# é学"]
    assert [text[c.start : c.end] for c in found.comments] == [c.text for c in found.comments]


def test_the_list_ends_with_empty_tokens_at_the_end_of_the_text() -> None:
    found = lex("a b ")
    assert found.texts == ["a", "b", *[""] * LOOKAHEAD]
    assert list(found.starts) == [0, 2, *[4] * LOOKAHEAD]


def test_a_long_text_is_read_as_its_lines_are() -> None:
    line = 'const X_1 = (a + 0..1.5) "s # t" # note\n'
    found = lex(line * 20_000)
    assert found.texts[:-LOOKAHEAD] == texts_of(line) * 20_000
    assert len(found.comments) == 20_000
    assert found.starts[len(texts_of(line)) * 12_345] == len(line) * 12_345


def test_a_flood_of_illegal_characters_is_reported_only_so_often() -> None:
    found = lex("$ \n" * (MAX_DIAGNOSTICS + 50))
    assert len(found.diagnostics) == MAX_DIAGNOSTICS
    assert found.texts == [""] * LOOKAHEAD
    assert len(found.illegal) == MAX_DIAGNOSTICS + 50


ANY_TEXT = st.text() | st.text(st.sampled_from('ab_09.eE+-"\\#\r\n\t é$;=[(@<'), max_size=40)


@given(ANY_TEXT)
@example("#\r'")
def test_every_character_is_in_a_token_or_is_blank_comment_or_illegal(text: str) -> None:
    found = lex(text)
    covered = bytearray(len(text))
    for token, start in zip(found.texts, found.starts, strict=True):
        assert text[start : start + len(token)] == token
        covered[start : start + len(token)] = b"\1" * len(token)
    for comment in found.comments:
        assert text[comment.start : comment.end] == comment.text
        # Blanks at the end of a comment are no part of its text.
        end = comment.start + len(re.split("[\r\n]", text[comment.start :], maxsplit=1)[0])
        covered[comment.start : end] = b"\1" * (end - comment.start)
    reported = {
        offset
        for d in found.diagnostics
        if d.code == "LEX01"
        for offset in range(d.span.start, d.span.end)
    }
    left = {i for i, c in enumerate(text) if not covered[i] and c not in " \t\r\n"}
    assert left == reported
    assert {d.span.start for d in found.diagnostics if d.code == "LEX01"} == set(found.illegal)


@given(ANY_TEXT)
def test_tokens_come_in_order_and_hold_no_line_end(text: str) -> None:
    found = lex(text)
    real = list(zip(found.starts, found.texts, strict=True))[:-LOOKAHEAD]
    assert all(token and "\n" not in token for _, token in real)
    assert all(a + len(token) <= b for (a, token), (b, _) in pairwise(real))


@given(commented_documents)
def test_documents_that_follow_the_grammar_have_no_lexical_mistakes(text: str) -> None:
    assert lex(text).diagnostics == ()


@given(commented_documents)
def test_line_ends_of_either_kind_give_the_same_tokens(text: str) -> None:
    unix = text.replace("\r\n", "\n")
    assert texts_of(unix) == texts_of(unix.replace("\n", "\r\n")) == texts_of(text)

"""The text of plans: names, pools, and what is wrong with it, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac.format.values import constant
from nacre.nac.mep import assemble, disassemble
from nacre.nac.mep.program import program_of, read
from tests.nac.mep.running import codes_of

WRONG = [
    ("src_constnt %a, 1", "NAC80", 1, 1, "there is no instruction `src_constnt`"),
    ("src_constant %a", "NAC80", 1, 16, "found the end of the line, expected `,`"),
    ("src_constant 3, 1", "NAC80", 1, 14, "found `3`, expected slot `out`, as in `%name`"),
    ("halt now", "NAC80", 1, 6, "found `now`, expected the end of the line"),
    ("src_constant %a, \"x", "NAC80", 1, 18, "found a text without an end, expected an operand"),
    (r'src_constant %a, "\q"', "NAC80", 1, 18, "the text has an unknown escape"),
    (r'src_constant %a, "\ud800"', "NAC80", 1, 18, "the text has half a character"),
    ("src_constant %a, what", "NAC80", 1, 18, "found `what`, expected a constant"),
    ("src_user_prompt %a, int, 3", "NAC80", 1, 26, "`prompt` is no text"),
    ("src_user_prompt %a, bool, \"\"", "NAC80", 1, 21,
     "`type` is `bool`, expected `str`, `int`, `float`"),
    ("math_binary plus, %a, %b, %c", "NAC80", 1, 13,
     "`op` is `plus`, expected `add`, `sub`, `mul`, `div`, `pow`, `max`, `min`"),
    ("return %a", "NAC80", 1, 8, "found `%a`, expected `values`, as in `[%a, %b]`"),
    (".text 3", "NAC80", 1, 1, "found `.text`, expected `.const`"),
    ('.const 1 = raw 9 0 ""', "NAC80", 1, 12, "there is no type 9 of constants"),
    ('.const 1 = raw 1 0 "02"', "NAC80", 1, 12, "these bytes are no bool"),
    ('.const 1 = raw 3 0 "00"', "NAC80", 1, 12,
     "constant 0 is float64 of length 1, expected 8"),
    ("x: halt\nx: halt", "NAC81", 2, 1, "label `x` is defined twice"),
    (".const a = 1\n.const a = 2", "NAC81", 2, 8, "constant `a` is defined twice"),
    ("src_constant %a, $name", "NAC81", 1, 18, "there is no constant `$name`"),
    ("src_constant %a, $7", "NAC81", 1, 18, "there is no constant `$7`"),
    ("branch_if %a, away", "NAC81", 1, 15, "there is no label `away`"),
    ("sys_copy %a, %256", "NAC83", 1, 14, "slot 256 is one of 256, which count from 0"),
    ("res_load_model 256, \"\"", "NAC83", 1, 16, "`model` is `256`, expected 0 to 255"),
    (".const 70000 = 1", "NAC83", 1, 8, "the id of a constant is `70000`, expected 0 to 65,535"),
    (f"src_constant %a, {2**63}", "NAC83", 1, 18,
     "the number does not fit: 64 bits for one, 32 for those of a list"),
    (f"src_constant %a, [{2**31}]", "NAC83", 1, 18,
     "the number does not fit: 64 bits for one, 32 for those of a list"),
    ("src_constant %a, [1e300]", "NAC83", 1, 18,
     "the number does not fit: 64 bits for one, 32 for those of a list"),
    (f"src_constant %a, {'9' * 5000}", "NAC83", 1, 18, "the number does not fit in 64 bits"),
    (f'src_constant %a, "{"x" * 70000}"', "NAC83", 1, 18,
     "the constant has length 70,000, at most 65,535"),
    ("a: halt\n" * 1 + "halt\n" * 40000 + "branch_if %1, a", "NAC83", 40002, 15,
     "label `a` is -40,005 bytes away, at most 32,767"),
]  # fmt: skip


@pytest.mark.heavy("one case is a very long program")
@pytest.mark.parametrize(
    ("text", "code", "line", "column", "message"), WRONG, ids=[f"{row[0][:30]}" for row in WRONG]
)
def test_what_is_wrong_has_a_code_and_a_place(
    text: str, code: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        assemble(text, "a.mep")
    (found,) = caught.value.diagnostics
    place = found.location
    assert (found.code, place.file, place.line, place.column) == (code, "a.mep", line, column)
    assert found.message == message


def test_mistakes_of_all_lines_come_at_once_with_hints() -> None:
    with pytest.raises(InputError) as caught:
        assemble("halts\nsrc_constant %a, 1\nmath_unary sqr, %a, %a\n")
    found = caught.value.diagnostics
    assert [(d.location.line, d.help) for d in found] == [
        (1, "did you mean `halt`?"),
        (3, "did you mean `sqrt`?"),
    ]


def test_slots_with_names_get_the_lowest_free_numbers() -> None:
    program = program_of(assemble("sys_copy %a, %1\nsys_copy %b, %0\nsys_copy %a, %c"))
    assert [step.fields for step in program.steps] == [(2, 1), (3, 0), (2, 4)]


def test_more_slots_than_there_are() -> None:
    lines = [f"src_constant %s{i}, 1" for i in range(257)]
    with pytest.raises(InputError, match="`%s256` is one slot too many, at most 256"):
        assemble("\n".join(lines))


def test_equal_literals_share_a_constant_and_different_kinds_do_not() -> None:
    text = "\n".join(f"src_constant %a, {v}" for v in ("1", "1.0", "true", '"1"', "1", "[1]", "0x"))
    with pytest.raises(InputError):
        assemble(text)
    plan = read(assemble(text.removesuffix("\nsrc_constant %a, 0x")))
    assert [c.value for c in plan.constants] == [1, 1.0, True, "1", (1,)]
    assert [c.id for c in plan.constants] == [0, 1, 2, 3, 4]


def test_numbers_that_are_words() -> None:
    text = "src_constant %a, [1, inf, -inf, nan]\nsrc_constant %a, inf\nsrc_constant %a, nan"
    shown = [repr(c.value) for c in read(assemble(text)).constants]
    assert shown == ["(1.0, inf, -inf, nan)", "inf", "nan"]


def test_ids_that_the_text_gives_are_kept() -> None:
    plan = read(
        assemble('.const 1 = "b"\n.const name = 2.5\nsrc_constant %a, 7\nsrc_constant %a, $name')
    )
    assert plan.constants == (constant(1, "b"), constant(0, 2.5), constant(2, 7))


def test_case_comments_and_blank_lines() -> None:
    raw = assemble("\n  ; nothing\n\tHALT;end\r\nl: k:\n;\nbranch_if %0, k")
    assert read(raw).bytecode == b"\xff\xa8\x00\xfc\xff"


def test_an_empty_text_is_an_empty_plan() -> None:
    assert assemble("") == b"ORCH" + bytes(8)
    assert disassemble(assemble("")) == ""


LINES = st.lists(
    st.sampled_from(
        ["src_constant", "loop_start", "math_unary", "return", "%a", "%1", "$x", ",", "[", "]", ":",
         "=", ".const", "raw", "1", "-2.5e3", '"t"', '"', "x", "softmax", "\\", "\n", ";", "é",
         "\0"]
    ),
    max_size=30,
)  # fmt: skip


@given(LINES)
def test_any_text_is_assembled_or_refused(words: list[str]) -> None:
    found = codes_of(lambda: assemble(" ".join(words)))
    assert set(found) <= {"NAC80", "NAC81", "NAC83"}

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.spec.limits import MAX_EXPRESSION_OPERATORS, MAX_LOOP_DEPTH, MAX_NESTING
from nacre.nem.syntax.ast import (
    BoolLit,
    Broken,
    Compute,
    Copy,
    LetDecl,
    Loop,
    NameRef,
    Negated,
    Node,
    RegionDecl,
    RegionExpr,
    Stmt,
    same_meaning,
)
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import ParseResult, parse
from nacre.nem.syntax.printer import value_text
from tests.nem.syntax.strategies import (
    CONTEXTUAL_WORDS,
    PLAIN_NAMES,
    STATEMENT_WORDS,
    Held,
    Tokens,
    commented_documents,
    documents,
    lines_of_programs,
    on_one_line,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

RECOVERY = sorted((Path(__file__).parent / "recovery").glob("*.nem"))


def read(text: str) -> ParseResult:
    return parse(Source("f.nem", text))


def codes(text: str) -> list[str]:
    return [d.code for d in read(text).diagnostics]


def only_statement(text: str) -> Stmt:
    parsed = read(text)
    assert parsed.diagnostics == ()
    (statement,) = parsed.document.body
    return statement


def children(node: Node) -> Iterator[Node]:
    for name in node.__struct_fields__:
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield part


def descendants(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from descendants(child)


def all_statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from all_statements(statement.body)


# Documents that follow the grammar


@given(commented_documents)
def test_what_follows_the_grammar_is_read_without_errors(text: str) -> None:
    parsed = read(text)
    assert parsed.is_valid, [str(d) for d in parsed.diagnostics]
    assert not any(isinstance(s, Broken) for s in all_statements(parsed.document.body))


@given(documents)
def test_every_node_lies_within_its_parent(text: str) -> None:
    for node in descendants(read(text).document):
        assert 0 <= node.start <= node.end <= len(text)
        for child in children(node):
            assert node.start <= child.start <= child.end <= node.end, (node, child)


@given(documents)
def test_every_name_stands_where_it_says(text: str) -> None:
    names = [n for n in descendants(read(text).document) if isinstance(n, NameRef)]
    assert [text[n.start : n.end] for n in names] == [n.name for n in names]


@pytest.mark.full
@given(documents)
def test_statements_come_one_after_the_other(text: str) -> None:
    document = read(text).document
    bodies = [document.body]
    bodies += [s.body for s in all_statements(document.body) if isinstance(s, Loop)]
    for body in bodies:
        places = [place for s in body for place in (s.start, s.end)]
        assert places == sorted(places)


@given(commented_documents)
def test_comments_and_layout_do_not_change_the_meaning(text: str) -> None:
    parsed = read(text)
    without = list(text)
    for comment in parsed.comments:
        without[comment.start : comment.end] = " " * (comment.end - comment.start)
    assert same_meaning(parsed.document, read("".join(without)).document)


# What the grammar leaves open, as decided

CONTEXTUAL = [
    "loop = region(B, 0, 4)",
    "wait = transfer.async(dst=wait, src=region, deps=[deps, loop])",
    "const = relu.async in in out out",
    "endloop = region(B, 0, 4)",
    "in = relu.async in out, in out out, in",
    "relu.async in out @materialized out Y",
    "relu.async IN in OUT OUT",
    "relu.async in loop out in",
    "relu.async in relu out relu mode=relu in=3",
    "gemm.async in a, b out c op=gemm accum_type=i32 strides=[1]",
    "const mod = mod mod mod",
    "let let = let",
    "let wait = [wait, const, true, region]",
    "loop in in [in..in] @max_in_flight(in):\nendloop",
    "loop loop in [0..loop]:\n    wait(wait)\nendloop",
    "buffer buffer : L1[buffer] (align=4, size=size)",
    "region = region(region, region, region) elem=i8, shape=shape, layout=layout",
    "elem = region(B, 0, 4, elem=i8, shape=[elem], layout=C)",
    "const device = include\nconst program = device\nconst const = program",
    "const a = let\nt = region(B, 0, 4)",
    "relu.async in X out out\nlayout = region(B, 0, 4)",
    "relu.async in X out region(B, 0, 4)\nelem = region(B, 0, 4)",
    "relu.async in X out Y mode=relu\nin = region(B, 0, 4)",
    "let flag = true\nmod = region(B, 0, 4)",
    "device d\nextends = region(B, 0, 4)",
    "device device\nprogram program:\nwait(program)",
    "device = region(B, 0, 4)",
    "let x = 1 @wait(wait)",
    "; ; const a = 1;; const b = 2;",
]


@pytest.mark.parametrize("text", CONTEXTUAL)
def test_words_of_the_language_can_be_names(text: str) -> None:
    parsed = read(text)
    assert parsed.is_valid, [str(d) for d in parsed.diagnostics]
    again = read(format_source(parsed.source))
    assert same_meaning(parsed.document, again.document)


@pytest.mark.parametrize("word", [*CONTEXTUAL_WORDS, *STATEMENT_WORDS])
def test_a_word_can_name_a_constant_a_region_and_a_token(word: str) -> None:
    text = (
        f"const {word} = 4\nlet {word} = {word} + 1\n{word} = region({word}, {word}, ({word}))\n"
        f"{word} = transfer.async(dst={word}, src={word}, deps=[{word}])\nwait({word})\n"
        f"{word} = relu.async in {word}, X out {word} @x\nloop {word} in [0..{word}]:\nendloop\n"
    )
    parsed = read(text)
    assert parsed.is_valid, [str(d) for d in parsed.diagnostics]
    assert len(parsed.document.body) == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 * 2 + 3", "((1 * 2) + 3)"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("8 / 4 / 2", "((8 / 4) / 2)"),
        ("a mod b * c", "((a mod b) * c)"),
        ("a + b mod c - d", "((a + (b mod c)) - d)"),
        ("-a * b", "(-a * b)"),
        ("a - -b", "(a - -b)"),
        ("(1 + 2) * 3", "((1 + 2) * 3)"),
        ("- - 1", "--1"),
    ],
)
def test_products_bind_before_sums_and_both_to_the_left(text: str, expected: str) -> None:
    statement = only_statement(f"let x = {text}")
    assert isinstance(statement, LetDecl)
    assert grouped(statement.value) == expected


def grouped(node: Node) -> str:
    """An expression with parentheses around every operation."""
    parts = [grouped(child) for child in children(node)]
    if len(parts) == 2:
        return f"({parts[0]} {node.op} {parts[1]})"  # type: ignore[attr-defined]
    if isinstance(node, Negated):
        return f"-{parts[0]}"
    return parts[0] if parts else value_text(node)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', r"a\b"),
        (r'"\n"', r"\n"),
        (r'"\\\""', r"\""),
        ('""', ""),
    ],
)
def test_strings_know_two_escapes(literal: str, value: str) -> None:
    parsed = read(f"include {literal}")
    assert parsed.document.includes[0].path.value == value


def test_booleans_are_values_unless_an_operator_follows() -> None:
    plain, sum_ = (only_statement(f"let x = {text}") for text in ("true", "true + 1"))
    assert isinstance(plain, LetDecl)
    assert isinstance(plain.value, BoolLit)
    assert isinstance(sum_, LetDecl)
    assert not isinstance(sum_.value, BoolLit)


def test_a_boolean_before_a_name_called_mod_is_a_boolean() -> None:
    first, second = read("let x = false\nmod = region(B, 0, 4)").document.body
    assert isinstance(first, LetDecl)
    assert isinstance(first.value, BoolLit)
    assert isinstance(second, RegionDecl)


def test_type_attributes_mean_the_same_inside_and_outside() -> None:
    types = "elem=i8, shape=[4], layout=C, quant=per_tensor(scale=0.5, zero_point=-3)"
    inside = only_statement_of_warned(f"r = region(B, 0, 4, {types})", ["DOC22"])
    outside = only_statement(f"r = region(B, 0, 4) {types}")
    assert same_meaning(inside, outside)


def only_statement_of_warned(text: str, expected: list[str]) -> Stmt:
    parsed = read(text)
    assert [d.code for d in parsed.diagnostics] == expected
    assert parsed.is_valid
    (statement,) = parsed.document.body
    return statement


def test_named_arguments_come_in_any_order() -> None:
    canonical = only_statement("t = store.sync(dst=a, src=b, deps=[c])")
    for text in ("deps=[c], src=b, dst=a", "src=b, dst=a, deps=[c]"):
        other = only_statement_of_warned(f"t = store.sync({text})", ["DOC23"])
        assert same_meaning(canonical, other)


def test_in_and_out_may_be_upper_case() -> None:
    canonical = only_statement("relu.async in a out b")
    assert same_meaning(canonical, only_statement_of_warned("relu.async IN a OUT b",
                                                            ["DOC21", "DOC21"]))  # fmt: skip


def test_a_region_after_compute_attributes_is_a_statement_of_its_own() -> None:
    task, region = read("relu.async in a out b axis=1\nr = region(B, 0, 4)").document.body
    assert isinstance(task, Compute)
    assert [a.name.name for a in task.attributes] == ["axis"]
    assert isinstance(region, RegionDecl)


def test_decorators_behind_the_last_operand_are_its_own_and_those_after_attributes_the_tasks() -> (
    None
):
    task = only_statement("relu.async in a out b @readonly axis=1 @resource(CSTL[0])")
    assert isinstance(task, Compute)
    assert [d.name.name for d in task.outputs[0].decorators] == ["readonly"]
    assert [d.name.name for d in task.decorators] == ["resource"]


def test_strides_behind_a_region_without_a_type_belong_to_the_task() -> None:
    task = only_statement("maxpool.async in a out region(B, 0, 4) strides=[2, 2] pads=[0, 0]")
    assert isinstance(task, Compute)
    region = task.outputs[0].value
    assert isinstance(region, RegionExpr)
    assert region.type is None
    assert [a.name.name for a in task.attributes] == ["strides", "pads"]


@pytest.mark.parametrize(
    ("text", "is_program"),
    [
        ("", False),
        ("# only a comment\n", False),
        ('include "a.nem"', False),
        ("device d { }", False),
        ("type_family f { variants: }", False),
        ("device d { }\nprogram p:", True),
        ("device d { }\nconst a = 1", True),
        ("device d", True),
        ('device "d.nem"', True),
        ("const a = 1", True),
    ],
)
def test_a_document_is_a_program_once_it_has_a_header_a_statement_or_a_device(
    text: str, is_program: bool
) -> None:
    parsed = read(text)
    assert parsed.diagnostics == ()
    assert parsed.document.is_program is is_program


# Single mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("buffer B : L2 (size=4,)", ["DOC19"]),
        ("transfer.async(dst=a, src=b,)", ["DOC19"]),
        ("let x = [1,]", ["DOC19"]),
        ("let x = 1 @debug(a,)", ["DOC19"]),
        ("wait(a,)", ["DOC19"]),
        ('device "a"\ndevice d { }\nprogram p:', ["DOC03"]),
        ("device a\ndevice b\nprogram p:", ["DOC03"]),
        ("device d { }\ndevice a\nprogram p:", ["DOC03"]),
        ("loop i in [0..3]:\nwait(t)", ["DOC06"]),
        ("const a = \n", ["DOC19"]),
        ("relu.async in out Y", ["DOC10"]),
        ("wait.async(t)", ["SIG20"]),
        ("transfer.async(dst=a, dst=b, src=c)", ["DOC17"]),
        ("const a = 9223372036854775808", ["CST16"]),
    ],
)
def test_a_mistake_is_reported_once(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


def test_what_is_missing_is_missed_at_the_end_of_the_line_before() -> None:
    (found,) = read("const a = b +\nt = region(B, 0, 4)\n").diagnostics
    assert (found.location.line, found.location.column) == (1, 14)
    assert found.message == "expected an expression, found `t`"


# Files with ten mistakes each; the comments say where and which


def expected_errors(text: str) -> list[tuple[int, str]]:
    return [
        (number, code)
        for number, line in enumerate(text.split("\n"), 1)
        for code in re.findall(r"error\[(\w+)\]", line)
    ]


@pytest.mark.parametrize("path", RECOVERY, ids=lambda p: p.stem)
def test_each_of_ten_mistakes_is_reported_once_where_it_is(path: Path) -> None:
    source = Source(path.name, path.read_text())
    parsed = parse(source)
    expected = expected_errors(source.text)
    assert len(expected) == 10
    found = [(d.location.line, d.code) for d in parsed.diagnostics if d.severity == "error"]
    assert sorted(found) == sorted(expected), [str(d) for d in parsed.diagnostics]


@pytest.mark.parametrize("path", RECOVERY, ids=lambda p: p.stem)
def test_what_is_whole_between_the_mistakes_is_read(path: Path) -> None:
    source = Source(path.name, path.read_text())
    wrong_lines = {line for line, _ in expected_errors(source.text)}
    for statement in all_statements(parse(source).document.body):
        line, _ = source.position(statement.start)
        assert not isinstance(statement, Broken) or line in wrong_lines


# Programs with one token deleted, inserted or replaced

SOUP = (
    *PLAIN_NAMES, *CONTEXTUAL_WORDS, *STATEMENT_WORDS, "endloop", "transfer.async", "relu.sync",
    "wait.async", "a.b", "0", "1.5", "99999999999999999999", '"s"', "+", "-", "*", "/", "(", ")",
    "[", "]", "{", "}", "<", ">", ",", ":", ";", "=", "@", "..", ".", "$", "1e5", '"open',
)  # fmt: skip


# A broken header or `endloop` changes what is inside of what. And after a mistake, a line that
# begins with `src=region(` is taken for the rest of a transfer, not for a region called `src`.
NOT_RECOVERED = ("loop", "endloop", "dst", "src", "deps")


@st.composite
def corrupted_programs(draw: st.DrawFn) -> tuple[list[Tokens], set[int]]:
    """The lines of a program, one of which has a token too many, too few or a wrong one.

    Names are no words that begin statements: after a mistake those are read as what they look like.
    """
    lines = [[PLAIN_NAMES[0] if isinstance(token, Held) else token for token in line]
             for line in draw(lines_of_programs)]  # fmt: skip
    index = draw(st.integers(0, len(lines) - 1))
    at = draw(st.integers(0, len(lines[index]) - 1))
    kind = draw(st.sampled_from(["delete", "insert", "replace"]))
    new = [] if kind == "delete" else [draw(st.sampled_from(SOUP))]
    lines[index][at : at + (kind != "insert")] = new
    # Newlines mean nothing: what no longer begins a statement may continue the one before it, and
    # the line below is the rest of a `const` that has nothing behind it.
    is_open = bool(lines[index]) and lines[index][-1] in STATEMENT_WORDS
    below = {index + 1} if is_open else set[int]()
    return lines, {index, *below} | ({index - 1} if at == 0 else set())


@given(corrupted_programs())
def test_one_wrong_token_gives_few_diagnostics_and_costs_no_other_line(
    corrupted: tuple[list[Tokens], set[int]],
) -> None:
    lines, wrong = corrupted
    text = "\n".join(map(on_one_line, lines))
    parsed = read(text)
    # An attribute that a program happens to give twice has nothing to do with the wrong token.
    errors = [d for d in parsed.diagnostics if d.severity == "error" and d.code != "DOC17"]
    # The most that was found: `@ wait.async ( ) :`, whose token begins a statement with two faults.
    assert len(errors) <= 4, ([str(d) for d in errors], text)
    read_whole = {
        (s.start, s.end) for s in all_statements(parsed.document.body) if not isinstance(s, Broken)
    }
    offset = 0
    for index, line in enumerate(map(on_one_line, lines)):
        if index not in wrong and lines[index][0] not in NOT_RECOVERED:
            assert (offset, offset + len(line)) in read_whole, f"lost: {line}\n\n{text}"
        offset += len(line) + 1


# Whatever the text is


@given(st.text())
def test_no_text_makes_the_parser_raise(text: str) -> None:
    assert read(text).document.end == len(text)


@given(st.lists(st.sampled_from([*SOUP, "\n", "#", "device", "program p :", "loop i in [ 0"])))
def test_no_heap_of_tokens_makes_the_parser_raise(tokens: list[str]) -> None:
    text = " ".join(tokens)
    parsed = read(text)
    for node in descendants(parsed.document):
        assert 0 <= node.start <= node.end <= len(text)
        assert all(node.start <= c.start <= c.end <= node.end for c in children(node)), node
    if parsed.is_valid:
        assert read(format_source(parsed.source)).is_valid
    else:
        with pytest.raises(InputError):
            format_source(parsed.source)


HOSTILE = {
    "parentheses": ("const a = " + "(" * 10_000 + "1" + ")" * 10_000, ["DOC20"]),
    "open parentheses": ("const a = " + "(" * 10_000, ["DOC20"]),
    "lists": ("let a = " + "[" * 10_000 + "]" * 10_000, ["DOC20"]),
    "minuses": ("const a = " + "-" * 5_000 + "1", ["DOC20"]),
    "sum": ("const a = " + " + ".join(["1"] * 100_000), ["DOC20"]),
    "loops": ("loop i in [0..1]:\n" * 10_000 + "endloop\n" * 10_000, ["DOC20"]),
    "loops on one line": ("loop i in [0..1]: " * 10_000 + "endloop " * 10_000, ["DOC20"]),
    "broken loops on one line": ("loop i in " * 10_000, ["DOC06", "DOC19"]),
    "parentheses in lists": ("let a = " + "[" * 50 + "(" * 10_000, ["DOC20"]),
    "minuses in a region": ("let a = region(B, 0, (" + "-(" * 10_000, ["DOC20"]),
    "lists in decorators": ("let a = 1 @d(" + "[" * 10_000, ["DOC20"]),
    "device braces": ("device d " + "{ topology " * 10_000, ["DOC19"]),
    "quotes": ('"' * 10_001, ["DOC19", "LEX02"]),
    "statements": ("const a = ;" * 5_000, ["DOC19"] * 1_001),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_gets_a_diagnostic_quickly(text: str, expected: list[str]) -> None:
    began = time.perf_counter()
    found = codes(text)
    assert found == expected
    assert time.perf_counter() - began < 10, "about a hundred times what it takes"
    with pytest.raises(InputError):
        format_source(Source("f", text))


def nested(opening: str, closing: str, depth: int) -> str:
    return f"let a = {opening * depth}1{closing * depth}"


AT_THE_LIMITS = {
    "parentheses": nested("(", ")", MAX_NESTING),
    "lists": nested("[", "]", MAX_NESTING),
    "minuses": nested("-", "", MAX_NESTING),
    "sum": "let a = 1" + " + 1" * MAX_EXPRESSION_OPERATORS,
    "product": "let a = 1" + " * 1" * MAX_EXPRESSION_OPERATORS,
    "sums in parentheses": nested("(1 + ", " - 1" * 3 + ")", MAX_NESTING),
    "sums in lists": nested("[1 + 1 * 1, ", "]", MAX_NESTING),
    "a sum in lists": nested("[", "]", MAX_NESTING - 1)[:-99] + " + 1" * 400 + "]" * 99,
    "loops": "loop i in [0..1]:\n" * MAX_LOOP_DEPTH + "endloop\n" * MAX_LOOP_DEPTH,
}


@pytest.mark.parametrize("text", AT_THE_LIMITS.values(), ids=AT_THE_LIMITS)
def test_what_is_just_within_the_limits_is_read_printed_and_compared(text: str) -> None:
    parsed = read(text)
    assert parsed.diagnostics == ()
    again = read(format_source(parsed.source))
    assert same_meaning(parsed.document, again.document)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("const a = 1", "const a = 2"),
        ("const a = 1", "let a = 1"),
        ("let a = 1", "let a = 1.0"),
        ("let a = 1.0", "let a = 1.00"),
        ("let a = [1, 2]", "let a = [1]"),
        ("let a = (1)", "let a = 1"),
        ("let a = 1", "let a = 1 @debug(x)"),
        ("let a = 1 @debug", "let a = 1 @debug()"),
        ("const a = 1", ""),
    ],
)
def test_different_trees_have_different_meanings(one: str, other: str) -> None:
    assert not same_meaning(read(one).document, read(other).document)
    assert same_meaning(read(one).document, read(f"\n {one}  # c").document)


def test_the_form_of_a_task_without_one_is_not_guessed_from_its_name() -> None:
    parsed = read("t = transfer(dst=a, src=b)")
    assert [d.code for d in parsed.diagnostics] == ["DOC11"]
    (task,) = parsed.document.body
    assert isinstance(task, Copy)
    assert task.op.name == "transfer"


@pytest.mark.parametrize("word", ["regoin", "Region", "regions", "regin"])
@pytest.mark.parametrize(
    "line",
    [
        "t = transfer.async(dst={0}(B, 0, 64), src=a)",
        "t = transfer.async(dst=a, src={0}(B, 0, 64))",
        "t = relu.async in {0}(B, 0, 64) out a",
        "t = relu.async in a out {0}(B, 0, 64)",
        "a = {0}(B, 0, 64)",
        "let a = {0}(B, 0, 64) elem=i8, shape=[64], layout=C",
    ],
)
def test_a_misspelt_region_is_told_wherever_one_may_stand(line: str, word: str) -> None:
    found = read("program p:\nbuffer B : L1 (size=64)\n" + line.format(word) + "\n").diagnostics
    assert [(d.code, d.help) for d in found] == [("DOC19", "did you mean `region`?")]
    assert f"found `{word}`" in found[0].message

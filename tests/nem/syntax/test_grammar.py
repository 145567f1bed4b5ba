"""The table of the grammar is the language that the parser reads, both ways."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.rules import RULES as CODES
from nacre.base.source import Source
from nacre.nem.checks import catalogue
from nacre.nem.spec.grammar import CONDITIONS, GRAMMAR, TERMINALS
from nacre.nem.syntax.parser import parse
from tests.compile.models import convolution_model, linear_model
from tests.nem.syntax.grammar_table import RULES, Node, Text, Writer, mutants, nodes_in, read
from tests.nem.syntax.strategies import documents

pytestmark = pytest.mark.sampled(2)  # together they take long

ROOT = Path(__file__).parents[3]
# Limits stop the recogniser as they stop the parser; texts at them are left out.
FILES = [
    path
    for folder in ("examples", "src/nacre/nem/spec", "tests")
    for path in sorted((ROOT / folder).rglob("*.nem"))
    if not path.name.startswith("DOC20")
]
BESIDES = {condition.code for condition in CONDITIONS}
PRODUCTIONS = [row for rows in GRAMMAR.values() for row in rows]
STARTS = ("document", "library", "statement", "let", "compute", "family", "device")

catalogue.load()


def difference(text: str) -> str | None:
    """In what the table and the parser differ about a text; None where they agree."""
    errors = [d for d in parse(Source("text.nem", text)).diagnostics if d.severity == "error"]
    refused = [str(d) for d in errors if d.code not in BESIDES]
    is_sentence = Text(text).is_sentence()
    if is_sentence and refused:
        return f"the table derives what the parser refuses: {refused[0]}\n{text}"
    if not is_sentence and not errors:
        return f"the parser reads what the table does not derive:\n{text}"
    return None


# The table itself


def names_in(node: Node, kind: str) -> set[str]:
    return {part[1] for part in nodes_in(node) if part[0] == kind}


def test_every_production_is_used_and_every_name_is_declared_once() -> None:
    assert len(RULES) == len(PRODUCTIONS)
    used = set().union(*(names_in(node, "production") for node in RULES.values()))
    assert used | {"document"} == set(RULES)
    terminals = set().union(*(names_in(node, "terminal") for node in RULES.values()))
    assert terminals == {row.name for row in TERMINALS}


def test_no_production_begins_with_itself() -> None:
    def begins(name: str, within: tuple[str, ...]) -> None:
        assert name not in within, within
        for first in firsts(RULES[name]):
            begins(first, (*within, name))

    def firsts(node: Node) -> set[str]:
        kind = node[0]
        if kind == "production":
            return {node[1]}
        if kind in ("?", "*", "-"):
            return firsts(node[1])
        if kind in ("choice", "any order"):
            return {name for part in node[1:] if isinstance(part, tuple) for name in firsts(part)}
        if kind != "sequence":
            return set()
        found = set()
        for part in node[1:]:
            found |= firsts(part)
            if part[0] not in ("?", "*"):
                break
        return found

    begins("document", ())


def test_what_the_reader_asks_besides_is_a_rule() -> None:
    assert [row.code for row in CONDITIONS if row.code not in CODES] == []


@pytest.mark.parametrize(
    ("definition", "node"),
    [
        ('"a" B c', ("sequence", ("word", "a"), ("terminal", "B"), ("production", "c"))),
        ("a | b c?", ("choice", ("production", "a"),
                      ("sequence", ("production", "b"), ("?", ("production", "c"))))),
        ("(a &, b)*", ("*", ("any order", ",", ("production", "a"), ("production", "b")))),
        ('A - "x"', ("-", ("terminal", "A"), ("word", "x"))),
    ],
)  # fmt: skip
def test_right_hand_sides_are_read(definition: str, node: Node) -> None:
    assert read(definition) == node


# From the table to the parser


@pytest.mark.parametrize("rule", STARTS)
def test_the_parser_reads_every_sentence_of_the_table(rule: str) -> None:
    random = Random(rule)
    drawn = filter(None, (Writer(random).sentence(rule) for _ in range(60)))
    for text in drawn:
        assert Text(text).is_sentence(), text
        assert difference(text) is None


@pytest.mark.full
@pytest.mark.fuzz
def test_the_parser_reads_many_sentences_of_the_table() -> None:
    for seed in range(2000):
        random = Random(seed)
        text = Writer(random).sentence(random.choice(STARTS))
        assert text is None or (Text(text).is_sentence() and difference(text) is None), text


# From the parser to the table


def test_there_are_files() -> None:
    assert len(FILES) > 500
    assert sum(Text(path.read_text(encoding="utf-8")).is_sentence() for path in FILES) > 400


@pytest.mark.parametrize("part", range(8))
def test_the_table_and_the_parser_agree_about_every_file(part: int) -> None:
    """Those that are right, and those that are wrong."""
    for path in FILES[part::8]:
        assert difference(path.read_text(encoding="utf-8", errors="replace")) is None, path.name


@pytest.mark.parametrize("part", range(24))
@pytest.mark.sampled(4)
def test_they_agree_about_files_with_a_word_out_of_place(part: int) -> None:
    for path in FILES[part::24]:
        text = path.read_text(encoding="utf-8", errors="replace")
        for mutant in mutants(text, Random(path.name), 4):
            assert difference(mutant) is None, path.name


@pytest.mark.full
@pytest.mark.fuzz
def test_they_agree_about_many_files_with_words_out_of_place() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8", errors="replace")
        for mutant in mutants(text, Random(f"many {path.name}"), 20):
            assert difference(mutant) is None, path.name


@given(documents, st.integers(0, 999))
def test_they_agree_about_drawn_documents(text: str, seed: int) -> None:
    for each in (text, *mutants(text, Random(seed), 3)):
        assert difference(each) is None


@pytest.mark.heavy("compiles two networks")
def test_the_table_derives_what_the_compiler_writes() -> None:
    for module, device in ((linear_model(64, 32, 48), "npm_lite"), (convolution_model(), "npm4k")):
        text = nacre.compile(module, device).program
        assert Text(text).is_sentence()
        for mutant in mutants(text, Random(device), 4):
            assert difference(mutant) is None


# Where a word could be two things

CORNERS = [
    ("let a = let x = region(B, 0, 4)", True),
    ("let a =\nlet x = region(B, 0, 4)", False),
    ("const endloop = 4", True),
    ("loop i in [0..1]: const a = endloop endloop", False),
    ("relu.sync in out out in", True),
    ("relu.sync in A out let x = region(B, 0, 4)", True),
    ("relu.sync in A out\nlet x = region(B, 0, 4)", False),
    ("relu.sync in A out B elem=i8", True),
    ("relu.sync in A out region(B, 0, 4) elem=i8", False),
    ("relu.sync in A out region(B, 0, 4) type=4", True),
    ("relu.sync in A out region(B, 0, 4) elem = region(B, 0, 4)", True),
    ("relu.sync in A out B alpha=C mod=3", True),
    ("r = region(B, 0, 4) quant=q, type=T", False),
    ("r = region(B, 0, 4) type=T, quant=per_tensor", False),
    ("device X extends = region(B, 0, 4)", True),
    ("; include \"npm_lite.nem\" ; device npm_lite ; program p: ;", True),
    ("const a = 1 include \"npm_lite.nem\"", False),
    ("device A {} device B {}", True),
    ("device A {} device B {} program p:", False),
    ("wait(t) @debug(\"x\")", False),
    ("device A { opcode.extended { . <i8>.x } }", False),
    ("", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "is_right"), CORNERS)
def test_a_corner_is_read_alike(text: str, is_right: bool) -> None:
    assert difference(text) is None
    assert Text(text).is_sentence() == is_right
